"""Situs decides on which device each operator of a neural network runs, and runs it that way."""

__version__ = "0.1.0"
