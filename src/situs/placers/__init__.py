"""Placers: heuristic, exact and learned, behind one protocol and one registry."""

from situs.placers.parameters import parameter_texts
from situs.placers.placer import Placer
from situs.placers.registry import get_placer, placer_names

__all__ = ["Placer", "get_placer", "parameter_texts", "placer_names"]
