"""Placers that prove how good their answer is."""
