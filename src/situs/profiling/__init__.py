"""Measuring: executors fill cost tables."""
