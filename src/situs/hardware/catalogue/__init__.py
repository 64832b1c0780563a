"""Described machines, with the public source of every figure; nothing here was measured."""

from __future__ import annotations

import difflib
from importlib.resources import files

from situs.errors import ClusterError
from situs.hardware.cluster import Cluster, cluster_from_toml


def catalogue_names() -> tuple[str, ...]:
    """Names of the described machines, sorted."""
    folder = files("situs.hardware.catalogue")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def catalogue(name: str) -> Cluster:
    """A described machine by name: whatever is computed from it is simulated.

    Raises:
        ClusterError: If there is no such machine; lists all, and a near match.
    """
    names = catalogue_names()
    if name not in names:
        near = difflib.get_close_matches(name.lower(), names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ClusterError(f"no machine {name!r} in the catalogue of {', '.join(names)}{hint}")
    text = (files("situs.hardware.catalogue") / f"{name}.toml").read_text(encoding="utf-8")
    return cluster_from_toml(text, name)
