"""Recorded searches on the real engine: trials that survive crashes, racing, resuming."""
