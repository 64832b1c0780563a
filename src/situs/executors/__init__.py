"""Engines that really run a placed model."""
