"""Placers that learn a policy from evaluations (extra ``learn``)."""
