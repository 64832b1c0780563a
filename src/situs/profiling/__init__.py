"""Measuring: executors fill cost tables, and placements get times that can be trusted."""
