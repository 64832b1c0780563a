"""Placers by name: ours, and third parties' through the entry-point group ``situs.placers``."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec

from situs.errors import MissingExtraError, ParameterError, require_extra
from situs.placers.parameters import split_spec, with_parameters
from situs.placers.placer import Placer

ENTRY_POINT_GROUP = "situs.placers"


def _single() -> type[Placer]:
    from situs.placers.heuristic.single import Single

    return Single


def _openvino_auto() -> type[Placer]:
    from situs.placers.heuristic.openvino_auto import OpenVINOAuto

    return OpenVINOAuto


def _greedy() -> type[Placer]:
    from situs.placers.heuristic.greedy import Greedy

    return Greedy


def _local_search() -> type[Placer]:
    from situs.placers.heuristic.local_search import LocalSearch

    return LocalSearch


def _heft() -> type[Placer]:
    from situs.placers.heuristic.heft import HEFT

    return HEFT


def _peft() -> type[Placer]:
    from situs.placers.heuristic.peft import PEFT

    return PEFT


def _cpop() -> type[Placer]:
    from situs.placers.heuristic.cpop import CPoP

    return CPoP


def _etf() -> type[Placer]:
    from situs.placers.heuristic.etf import ETF

    return ETF


def _m_etf() -> type[Placer]:
    from situs.placers.heuristic.m_etf import MemoryETF

    return MemoryETF


def _m_sct() -> type[Placer]:
    from situs.placers.heuristic.m_sct import MemorySCT

    return MemorySCT


def _m_topo() -> type[Placer]:
    from situs.placers.heuristic.m_topo import MemoryTopo

    return MemoryTopo


def _critical_path() -> type[Placer]:
    from situs.placers.heuristic.critical_path import CriticalPath

    return CriticalPath


def _metis() -> type[Placer]:
    require_extra("solve", "pymetis")
    from situs.placers.heuristic.metis import Metis

    return Metis


def _mincut() -> type[Placer]:
    from situs.placers.exact.mincut import MinCut

    return MinCut


def _contiguous() -> type[Placer]:
    from situs.placers.exact.contiguous import Contiguous

    return Contiguous


def _segments() -> type[Placer]:
    from situs.placers.exact.segments import Segments

    return Segments


def _milp() -> type[Placer]:
    from situs.placers.exact.milp import MILP

    return MILP


def _cpsat() -> type[Placer]:
    require_extra("solve", "ortools")
    from situs.placers.exact.cpsat import CPSAT

    return CPSAT


def _offload() -> type[Placer]:
    require_extra("solve", "ortools")
    from situs.placers.exact.offload import OffloadCalls

    return OffloadCalls


def _auto() -> type[Placer]:
    from situs.placers.auto import Auto

    return Auto


def _search() -> type[Placer]:
    from situs.placers.search import Search

    return Search


def _need_torch() -> None:
    if find_spec("torch") is None or find_spec("safetensors") is None:
        raise MissingExtraError("torch", "learn")


def _hsdag() -> type[Placer]:
    _need_torch()
    from situs.placers.learned.hsdag import HSDAG

    return HSDAG


def _placeto() -> type[Placer]:
    _need_torch()
    from situs.placers.learned.placeto import Placeto

    return Placeto


def _rnn() -> type[Placer]:
    _need_torch()
    from situs.placers.learned.rnn import RNN

    return RNN


def _doppler() -> type[Placer]:
    _need_torch()
    from situs.placers.learned.doppler import Doppler

    return Doppler


def _gdp() -> type[Placer]:
    _need_torch()
    from situs.placers.learned.gdp import GDP

    return GDP


def _random() -> type[Placer]:
    from situs.placers.learned.random_search import RandomSearch

    return RandomSearch


def _hill_climbing() -> type[Placer]:
    from situs.placers.learned.hill_climbing import HillClimbing

    return HillClimbing


def _cross_entropy() -> type[Placer]:
    from situs.placers.learned.cross_entropy import CrossEntropy

    return CrossEntropy


LOADERS: dict[str, Callable[[], type[Placer]]] = {
    "single": _single,
    "openvino-auto": _openvino_auto,
    "greedy": _greedy,
    "mincut": _mincut,
    "local-search": _local_search,
    "heft": _heft,
    "peft": _peft,
    "cpop": _cpop,
    "etf": _etf,
    "m-etf": _m_etf,
    "m-sct": _m_sct,
    "m-topo": _m_topo,
    "critical-path": _critical_path,
    "metis": _metis,
    "contiguous": _contiguous,
    "segments": _segments,
    "milp": _milp,
    "cp-sat": _cpsat,
    "offload": _offload,
    "search": _search,
    "auto": _auto,
    "hsdag": _hsdag,
    "placeto": _placeto,
    "rnn": _rnn,
    "doppler": _doppler,
    "gdp": _gdp,
    "random": _random,
    "hill-climbing": _hill_climbing,
    "cross-entropy": _cross_entropy,
}


def placer_names() -> list[str]:
    """Names of all placers, ours first."""
    extra = sorted(entry_points(group=ENTRY_POINT_GROUP).names - LOADERS.keys())
    return [*LOADERS, *extra]


def get_placer(spec: str) -> Placer:
    """The placer of ``name`` or ``name{key=value,...}``.

    Raises:
        ParameterError: For an unknown name (lists all, with a near match) or bad parameters.
        MissingExtraError: If it needs a package that is not installed.
    """
    name, values = split_spec(spec)
    if name in LOADERS:
        return with_parameters(LOADERS[name](), name, values)
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        third_party: type[Placer] = entry.load()
        return with_parameters(third_party, name, values)
    near = difflib.get_close_matches(name, placer_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ParameterError(f"unknown placer {name!r}; placers are {', '.join(placer_names())}{hint}")
