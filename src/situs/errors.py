"""Every exception that Situs raises on purpose, and the statuses of expected failure.

Tree::

    SitusError                  one clear line; the command line exits with 2 unless noted
    ├── InputError              a file, option or value that the user gave is not usable
    │   ├── ModelError          a model file cannot be read or has an unfixed dimension
    │   ├── GraphError          arrays that do not form a valid graph
    │   ├── ClusterError        a cluster description or device name is not usable
    │   ├── PlacementError      a placement that does not belong to this graph or these devices
    │   ├── ProblemError        costs, limits and graph do not fit together
    │   ├── ParameterError      an unknown placer or a parameter out of its range
    │   └── OutputError         a path that cannot be written
    ├── MissingExtraError       a feature needs an optional package that is not installed
    └── WorkError               correct input, failed work (the command line exits with 1)
        ├── CompileError        a device refused to compile a placed model
        ├── RunError            a compiled model failed at inference
        └── StrictError         a placement was not realised as planned under ``--strict``
"""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec


class SitusError(Exception):
    """Base of all errors whose message is meant for the user: one line, ending in what to do."""

    exit_code = 2


class InputError(SitusError):
    """Something that the user gave cannot be used."""


class ModelError(InputError):
    """A model file cannot be read, or needs a shape that was not given."""


class GraphError(InputError):
    """Arrays that do not form a valid graph."""


class ClusterError(InputError):
    """A cluster description or a device name cannot be used."""


class PlacementError(InputError):
    """A placement does not belong to the graph or the devices at hand."""


class ProblemError(InputError):
    """Graph, cluster, costs and limits do not fit together."""


class ParameterError(InputError):
    """An unknown placer, or a parameter outside its range."""


class OutputError(InputError):
    """A path cannot be written."""


class MissingExtraError(SitusError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'situs[{extra}]'")


def require_extra(extra: str, *packages: str) -> None:
    """Check that packages of an optional extra are installed, without importing them.

    Raises:
        MissingExtraError: If one is not.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra)


class WorkError(SitusError):
    """The input was right, but the work failed."""

    exit_code = 1


class CompileError(WorkError):
    """A device refused to compile a placed model."""


class RunError(WorkError):
    """A compiled model failed at inference."""


class StrictError(WorkError):
    """A placement was not realised as planned."""


class Status(Enum):
    """How a piece of work ended; the value is the next step to advise."""

    OK = "done"
    OPTIMAL = "proven optimal under the stated execution model"
    STOPPED = "stopped by its budget; give more time to improve it"
    INTERRUPTED = "interrupted; the best found so far was kept"
    INFEASIBLE = "no placement satisfies the limits; relax memory, pins or devices"
    OUT_OF_MEMORY = "a device ran out of memory; lower its memory limit or move ops off it"
    UNSUPPORTED = "a device does not support some op; let another device take it"
    COMPILE_FAILED = "a device refused to compile its sub-graphs; exclude the op it names"
    RUN_FAILED = "compiled, but failed at inference; exclude the op it names"
    TIMEOUT = "took longer than its time limit; raise the limit"
    CRASHED = "the measuring process died; see the recorded reason"
    MISMATCH = "outputs differ from the single-device run beyond the tolerance; not used"

    @property
    def found(self) -> bool:
        """Whether a usable result comes with this status."""
        return self in (Status.OK, Status.OPTIMAL, Status.STOPPED, Status.INTERRUPTED)
