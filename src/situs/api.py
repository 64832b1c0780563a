"""The public functions of Situs: the only place that sees loader, costs, placer and executor."""
