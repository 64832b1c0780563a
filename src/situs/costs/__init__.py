"""Cost tables and the formulas that fill them; measuring lives in ``profiling``."""

from situs.costs.links import link_matrices
from situs.costs.roofline import op_traffic_bytes, roofline
from situs.costs.table import MEASURED, MODELLED, CostTable

__all__ = ["MEASURED", "MODELLED", "CostTable", "link_matrices", "op_traffic_bytes", "roofline"]
