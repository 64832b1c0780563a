"""A saved placement with everything that is needed to look at it: graph, problem, record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from situs.core import Problem
from situs.core.placement_file import PlacementFile, read_with_graph
from situs.core.problem_record import problem_from_record
from situs.errors import ProblemError
from situs.graph.arrays import Ints


@dataclass(frozen=True, slots=True)
class Saved:
    """A placement file as the rooms above read it.

    Attributes:
        file: Placement, devices and record.
        problem: The problem as the engine of the placement saw it.
    """

    file: PlacementFile
    problem: Problem

    @property
    def assignment(self) -> Ints:
        """``int32[N]`` device of each op."""
        return self.file.placement.assignment

    @property
    def labels(self) -> tuple[str, ...]:
        """Device names as people see them; virtual ones say so."""
        return self.problem.cluster.labels

    @property
    def record(self) -> dict[str, Any]:
        """How the placement was found."""
        return self.file.record

    def op(self, name: str) -> int:
        """Number of an op by its name, or by a part of it that only one op has.

        Raises:
            ProblemError: If no op, or more than one, is meant; names near or matching ops.
        """
        import difflib

        graph = self.problem.graph
        if name in graph.op_index:
            return graph.op_index[name]
        parts = [i for i, full in enumerate(graph.op_names) if name.lower() in full.lower()]
        if len(parts) == 1:
            return parts[0]
        near = (
            [graph.op_names[i] for i in parts[:5]]
            if parts
            else difflib.get_close_matches(name[:200], [n[:200] for n in graph.op_names], n=3)
        )
        what = f"{len(parts)} ops contain {name[:80]!r}" if parts else f"no op {name[:80]!r}"
        hint = f"; near names: {', '.join(text[:80] for text in near)}" if near else ""
        raise ProblemError(f"{what}{hint}; give the name that situs inspect or the report shows")


def read_saved(path: str | Path) -> Saved:
    """Read a placement file with its graph and costs.

    Raises:
        PlacementError: If it cannot be read, or an earlier version wrote it without them.
    """
    file, graph = read_with_graph(Path(path))
    return Saved(file, problem_from_record(file.record.get("problem"), graph, file.devices))
