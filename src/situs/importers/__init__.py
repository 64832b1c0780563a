"""Model files to graphs."""

from situs.importers.json import load_graph
from situs.importers.openvino import Imported, load_model

__all__ = ["Imported", "load_graph", "load_model"]
