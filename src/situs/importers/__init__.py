"""Model files to graphs."""
