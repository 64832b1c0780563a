"""The dataflow model written by other means, to compare speed and values with."""
