"""Placers by rules and local moves: fast, without proof."""
