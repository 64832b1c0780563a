"""The public functions: the only place that sees loader, costs, placer, executor and store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from situs.core import (
    AnyOf,
    Dataflow,
    Flag,
    Limits,
    MaxEvaluations,
    Objective,
    Placement,
    Problem,
    Progress,
    Result,
    Sequential,
    Stop,
    Watched,
    violation,
)
from situs.core import place as bind
from situs.core.placement_file import (
    PlacementFile,
    check_writable,
    read_placement,
    write_placement,
)
from situs.core.rules import Rules
from situs.errors import ParameterError, Status, require_extra
from situs.executors import DeviceSpec, Executor, discover, parse_device
from situs.executors.openvino_hetero import HeteroExecutor, PlacedModel
from situs.executors.openvino_parallel import ParallelExecutor, ParallelModel
from situs.graph import Graph
from situs.hardware import Cluster
from situs.importers import Imported, load_model
from situs.placers import Placer, get_placer, parameter_texts
from situs.profiling.costs import cost_table, fused_classes
from situs.profiling.inputs import random_inputs
from situs.profiling.links import LinkCosts, measure_links
from situs.profiling.objective import MeasuredObjective, RecordedObjective
from situs.profiling.outcome import Outcome
from situs.profiling.profile import Profile, profile
from situs.profiling.running import RunReport, run_placement
from situs.profiling.trial import Candidate, run_trials
from situs.simulate import SimulatedObjective

if TYPE_CHECKING:
    import openvino as ov

    from situs.importers.torch.ops import TorchImported

EXECUTORS = ("hetero", "parallel", "auto")
DEFAULT_PLACERS = ("openvino-auto", "greedy", "mincut", "heft", "local-search")
REWARDS = ("simulated", "measured")
OnEvent = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Searching:
    """How placers search.

    Attributes:
        reward: ``simulated``: placers ask the cost model; ``measured``: they ask the engine itself.
        evaluations: Placements that one placer may value; None = 100,000 simulated, 500 measured.
        folder: Where every measurement and the learners' checkpoints are kept; a search that is
            started again with the same folder goes on where it was. None = not kept.
        watch: Called with the progress of the placer that runs.

    Raises:
        ParameterError: If a value is not allowed.
    """

    reward: str = "simulated"
    evaluations: int | None = None
    folder: Path | None = None
    watch: Callable[[Progress], None] = lambda progress: None

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise ParameterError(f"reward {self.reward!r} is not one of {', '.join(REWARDS)}")
        if self.evaluations is not None and self.evaluations < 1:
            raise ParameterError(f"evaluations must be >= 1, got {self.evaluations}")

    @property
    def limit(self) -> int:
        """Placements that one placer may value."""
        return self.evaluations or (500 if self.reward == "measured" else 100_000)


def _silent(stage: str, done: int, total: int) -> None:
    pass


def load(
    model: str | Path | ov.Model, shapes: Mapping[str, Sequence[int]] | None = None
) -> Imported:
    """Load a model file (ONNX, OpenVINO IR, TensorFlow, TFLite, Paddle) or an ``ov.Model``.

    Args:
        model: Path or model; the model itself is not changed.
        shapes: Static shape by input name, for inputs with dynamic dimensions.

    Raises:
        ModelError: If it cannot be read, or an input's shape is still open.
    """
    return load_model(model, shapes)


def is_program(model: str | Path) -> bool:
    """Whether a file is an exported PyTorch program, by its name."""
    return Path(model).suffix == ".pt2"


def load_graph(model: str | Path, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
    """The graph alone: also of an exported PyTorch program, or a transformers configuration.

    Args:
        model: What ``load`` takes, a ``.pt2`` file, or a ``config.json`` (a pass over a prompt of
            512 tokens, on ``meta``).
        shapes: Static shape by input name, for inputs with dynamic dimensions.

    Raises:
        ModelError: If it cannot be read.
        MissingExtraError: If it needs PyTorch, which is not installed.
    """
    if is_program(model):
        return load_program(model).graph
    if Path(model).name == "config.json":
        require_extra("torch", "torch")
        from situs.importers.torch.configurations import import_configuration

        return import_configuration(model).graph
    return load(model, shapes).graph


def load_program(model: str | Path) -> TorchImported:
    """Load a ``.pt2`` file that ``torch.export.save`` wrote; load only files that you trust.

    Raises:
        ModelError: If it cannot be read.
        MissingExtraError: If PyTorch is not installed.
    """
    require_extra("torch", "torch")
    from situs.importers.torch.ops import import_exported

    return import_exported(model)


def run_program(
    model: str | Path,
    placement: str | Path,
    seed: int = 0,
    runs: int = 50,
    stop: Callable[[], bool] = lambda: False,
    on_event: OnEvent = _silent,
) -> tuple[PlacementFile, RunReport]:
    """Run a placed ``.pt2`` file on PyTorch's devices, and check it against the unplaced model.

    Raises:
        PlacementError: If the placement belongs to another model.
        ClusterError: If PyTorch does not have one of its devices here.
        WorkError: If it does not compile or run.
    """
    imported = load_program(model)
    from situs.executors.torch import TorchExecutor, torch_cluster
    from situs.executors.torch.running import unplaced_outputs

    file = read_placement(Path(placement), imported.graph)
    executor = TorchExecutor(torch_cluster(file.placement.used))
    # The engine and its own kind of model go through together; nothing between looks inside.
    engine, program = cast(Executor, executor), cast(Imported, imported)
    report = run_placement(
        engine,
        program,
        file.placement,
        seed,
        runs,
        stop,
        on_event,
        lambda inputs: unplaced_outputs(imported, inputs),
    )
    return file, report


def devices(
    names: Sequence[str] = (), virtual: Sequence[str] = (), precision: str = "f32"
) -> Cluster:
    """The devices of this machine.

    Args:
        names: ``NAME`` or ``NAME:key=value,...``; empty = all.
        virtual: Virtual copies of the CPU to register, ``CPU_B:threads=1``; they are added.
        precision: Inference precision of all: ``f32``, ``f16``, ``bf16`` or ``native``.

    Raises:
        ClusterError: For an unknown device or a malformed text.
    """
    copies = {spec.name: spec for spec in (parse_device(text, virtual=True) for text in virtual)}
    wanted = [copies.pop(spec.name, spec) for spec in map(parse_device, names)]
    if not wanted and copies:
        wanted = [DeviceSpec(device.name) for device in discover((), precision).devices]
        wanted = [spec for spec in wanted if spec.name not in copies]
    return discover([*wanted, *copies.values()], precision)


def measure_problem(
    model: Imported,
    cluster: Cluster,
    seed: int = 0,
    executor: str = "hetero",
    on_event: OnEvent = _silent,
) -> Problem:
    """Profile a model on every device and measure the links: a problem with measured costs.

    The execution model is the engine's: ``sequential`` for HETERO, ``dataflow`` for the parallel
    engine; links are measured in that engine too.
    """
    inputs = random_inputs(model.model, np.random.default_rng(seed))
    profiles: list[Profile] = []
    for d, device in enumerate(cluster.devices):
        whole = np.full(model.graph.num_ops, d, dtype=np.int32)
        placement = Placement(model.graph.fingerprint, cluster.names, whole)
        profiles.append(
            profile(
                model,
                device,
                placement,
                inputs,
                on_run=lambda done, total, name=device.label: on_event(  # type: ignore[misc]
                    f"profiling on {name}", done, total
                ),
            )
        )
    links = _measured_links(cluster, executor, on_event)
    costs = cost_table(model.graph, profiles, links)
    limits = Limits(together=fused_classes(model.graph, profiles))
    meant = Dataflow() if executor == "parallel" else Sequential()
    return Problem(model.graph, cluster, costs, meant, limits)


def _measured_links(cluster: Cluster, executor: str, on_event: OnEvent) -> LinkCosts:
    engine = ParallelExecutor(cluster) if executor == "parallel" else HeteroExecutor(cluster)
    return measure_links(
        engine,
        cluster,
        on_pair=lambda a, b: on_event(f"measuring the link {a} - {b} ({executor})", 0, 1),
    )


def for_engine(problem: Problem, executor: str, on_event: OnEvent = _silent) -> Problem:
    """The same problem as another engine sees it: its execution model and its links."""
    links = _measured_links(problem.cluster, executor, on_event)
    costs = replace(
        problem.costs,
        link_latency_s=links.latency_s,
        link_s_per_byte=links.s_per_byte,
        boundary_s=links.boundary_s,
    )
    return replace(
        problem, costs=costs, model=Dataflow() if executor == "parallel" else Sequential()
    )


def find_candidates(
    problem: Problem,
    placers: Sequence[str],
    seed: int,
    stop: Stop,
    executor: str = "hetero",
    on_event: OnEvent = _silent,
    searching: Searching = Searching(),
    objective: Objective | None = None,
) -> tuple[list[Result], list[Candidate]]:
    """Run placers on ``objective``, or else on the cost model.

    Uniform placements come first, equal placements are joined.
    """
    simulated = SimulatedObjective(problem)
    results: list[Result] = []
    named: dict[Placement, list[str]] = {}
    for number, device in enumerate(problem.cluster.devices):
        # All of them, supported or not: whether a device runs the model is measured, not believed.
        whole = np.full(problem.num_ops, number, dtype=np.int32)
        named[bind(problem, whole)] = [f"{device.label} alone"]
    for k, spec in enumerate(placers):
        on_event(f"searching with {spec}", k, len(placers))
        placer = _kept(get_placer(spec), searching.folder, k)
        reason = placer.supports(problem)
        if reason is not None or stop(Progress()):
            status = Status.UNSUPPORTED if reason else Status.INTERRUPTED
            texts = parameter_texts(placer)
            detail = reason or "interrupted before it began"
            results.append(Result(status, None, placer=spec, parameters=texts, detail=detail))
            continue
        rng = np.random.default_rng(seed)
        budget = Watched(AnyOf((stop, MaxEvaluations(searching.limit))), searching.watch)
        result = placer(problem, objective or simulated, budget, rng)
        results.append(result)
        if result.placement is not None:
            named.setdefault(result.placement, []).append(spec)
    placements = list(named)
    values = simulated.evaluate(np.stack([p.assignment for p in placements])).seconds
    return results, [
        Candidate(
            " = ".join(named[p]),
            p,
            float(v),
            executor,
            violation(problem, p.assignment) is None or problem.limits.pinned is None,
        )
        for p, v in zip(placements, values, strict=True)
    ]


def _kept(placer: Placer, folder: Path | None, number: int) -> Placer:
    """The same placer, with its checkpoints in the folder if it makes any."""
    able = {field.name for field in fields(placer)}  # type: ignore[arg-type]
    if folder is None or "checkpoint" not in able or getattr(placer, "checkpoint"):  # noqa: B009
        return placer
    where = str(folder / f"{number + 1}-{placer.name}")
    return replace(placer, checkpoint=where)  # type: ignore[type-var]


def _measured(
    problem: Problem,
    model: Imported,
    executor: str,
    seed: int,
    stop: Stop,
    searching: Searching,
    on_event: OnEvent,
) -> Objective:
    engine = ParallelExecutor if executor == "parallel" else HeteroExecutor
    inputs = random_inputs(model.model, np.random.default_rng(seed))
    measured = MeasuredObjective(
        engine(problem.cluster), model, problem, inputs, stop=lambda: stop(Progress())
    )
    if searching.folder is None:
        return measured
    return RecordedObjective(
        measured,
        problem,
        searching.folder / f"{executor}.measurements.jsonl",
        lambda count: on_event(f"measuring placements ({executor})", count, searching.limit),
    )


def place(
    model: str | Path | ov.Model | Imported,
    devices: Sequence[str] | Cluster = (),
    virtual: Sequence[str] = (),
    placers: Sequence[str] = DEFAULT_PLACERS,
    precision: str = "f32",
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_subgraphs: int | None = 32,
    executor: str = "hetero",
    pins: Rules | None = None,
    seed: int = 0,
    stop: Stop | None = None,
    on_event: OnEvent = _silent,
    searching: Searching = Searching(),
) -> Outcome:
    """Find, measure and check placements of a model on this machine's devices; keep the fastest.

    Args:
        model: Path, ``ov.Model``, or what ``load`` returned.
        devices: Device names, or a detected cluster; empty = all that OpenVINO lists.
        virtual: Virtual copies of the CPU, ``CPU_B:threads=1``.
        placers: Placers to run on the measured costs, ``name`` or ``name{key=value}``.
        precision: Inference precision of all devices.
        shapes: Static shape by input name.
        max_subgraphs: Candidates with more sub-graphs are not compiled; None = no limit.
        executor: ``hetero`` (sub-graphs one after another), ``parallel`` (devices overlap within
            a request), or ``auto``: both, and the faster is kept.
        pins: Rules that put ops on devices by hand; the placers decide the rest.
        seed: Seed of inputs, orders and placers.
        stop: Asked between steps; the best so far is kept.
        on_event: Called with (stage, done, total).
        searching: On what placers search, for how long, and where it is kept.

    Raises:
        InputError: If model, devices or parameters cannot be used.
    """
    for spec in placers:
        get_placer(spec)
    if max_subgraphs is not None and max_subgraphs < 1:
        raise ParameterError(f"max_subgraphs must be >= 1, got {max_subgraphs}")
    if executor not in EXECUTORS:
        raise ParameterError(f"executor {executor!r} is not one of {', '.join(EXECUTORS)}")
    imported = model if isinstance(model, Imported) else load(model, shapes)
    cluster = devices if isinstance(devices, Cluster) else _devices(devices, virtual, precision)
    ask: Stop = stop or Flag()
    engines = ("hetero", "parallel") if executor == "auto" else (executor,)
    problem = measure_problem(imported, cluster, seed, engines[0], on_event)
    if pins is not None:
        pinned = pins.pinned(imported.graph, cluster)
        problem = replace(problem, limits=replace(problem.limits, pinned=pinned))
    results: list[Result] = []
    candidates: list[Candidate] = []
    engine_problems: dict[str, Problem] = {}
    for name in engines:
        seen = problem if name == engines[0] else for_engine(problem, name, on_event)
        engine_problems[name] = seen
        objective = None
        if searching.reward == "measured":
            objective = _measured(seen, imported, name, seed, ask, searching, on_event)
        found, proposed = find_candidates(
            seen, placers, seed, ask, name, on_event, searching, objective
        )
        results += found
        # One device alone is the same under both engines.
        candidates += [
            c for c in proposed if name == engines[0] or c.placement.uniform_device is None
        ]
    trials = run_trials(
        {"hetero": HeteroExecutor(cluster), "parallel": ParallelExecutor(cluster, problem.costs)},
        imported,
        candidates,
        np.random.default_rng(seed),
        max_subgraphs,
        stop=lambda: ask(Progress()),
        on_event=on_event,
    )
    interrupted = ask(Progress())
    return Outcome(
        problem, tuple(results), tuple(trials), executor, seed, interrupted, engine_problems
    )


_devices = devices


def save(outcome: Outcome, path: str | Path) -> Path:
    """Write the placement file of what was kept, whole or not at all.

    Raises:
        OutputError: If it cannot be written.
    """
    path = Path(path)
    check_writable(path)
    write_placement(path, outcome.file(), outcome.problem.graph)
    return path


def load_placement(path: str | Path, model: Imported) -> PlacementFile:
    """Read a placement file that was made for this model.

    Raises:
        PlacementError: If it is not one, or belongs to another model.
    """
    return read_placement(Path(path), model.graph)


def compile(model: Imported, placement: PlacementFile | Outcome) -> PlacedModel | ParallelModel:
    """Compile a model as placed, for the engine that it was measured with.

    The result is used like ``ov.CompiledModel``: called with inputs, or through requests.

    Raises:
        PlacementError: If the placement belongs to another model or other hardware.
        CompileError: If a device refuses.
    """
    file = placement.file() if isinstance(placement, Outcome) else placement
    return executor_of(file).compile(model, file.placement)


def cluster_of(file: PlacementFile) -> Cluster:
    """The devices of a placement file as they are here, virtual ones registered.

    Raises:
        PlacementError: If one is missing or is other hardware now.
    """
    specs = [DeviceSpec(d.name, d.properties, d.virtual) for d in file.devices]
    cluster = discover(specs, "native")
    file.require_devices(cluster)
    return cluster


def executor_of(file: PlacementFile) -> HeteroExecutor | ParallelExecutor:
    """The engine that a placement was measured with, on this machine's devices.

    Raises:
        PlacementError: If a device is missing or is other hardware now.
    """
    cluster = cluster_of(file)
    if file.record.get("executor") == ParallelExecutor.name:
        return ParallelExecutor(cluster)
    return HeteroExecutor(cluster)
