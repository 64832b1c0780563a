"""What benchmarks of learned placement share: problems, and runs that record every value."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from os import sched_getaffinity

import numpy as np

from models import paper_model
from situs.core import Evaluation, MaxEvaluations, Never, Problem, Progress, Stop, Watched
from situs.costs import MODELLED, CostTable, roofline
from situs.hardware import catalogue
from situs.placers import get_placer
from situs.simulate import SimulatedObjective

MACHINE = "paper-i9-flex170"
COSTS = ("calibrated", "structured")
# As in the notes on the released code: per-type costs on each device, and a cost per cut.
_STRUCTURED_LOG10_S = (-4.0, -2.5)
_STRUCTURED_CUT_S = 2e-4


@cache
def problem_of(graph_name: str, costs: str) -> Problem:
    """A paper network as a sequential problem on the paper's machine (simulated).

    ``calibrated``: the catalogue's costs, fitted to the paper's latencies. ``structured``: every op
    type has a random run time on each device (log-uniform, 0.1 to 3 ms) and every cut costs 0.2 ms,
    so that good placements mix the devices.
    """
    graph = paper_model(graph_name).graph
    cluster = catalogue(MACHINE)
    table = roofline(graph, cluster)
    if costs == "structured":
        rng = np.random.default_rng(0)
        types, kind = np.unique(np.array(graph.op_types), return_inverse=True)
        seconds = 10 ** rng.uniform(*_STRUCTURED_LOG10_S, (len(types), len(cluster.devices)))
        cut = np.full((len(cluster.devices),) * 2, _STRUCTURED_CUT_S)
        np.fill_diagonal(cut, 0.0)
        table = CostTable(
            seconds[kind],
            table.transfer_size,
            cut,
            np.zeros_like(cut),
            np.zeros(len(cluster.devices)),
            MODELLED,
        )
    return Problem(graph, cluster, table)


def solved(problem: Problem, spec: str, stop: Stop | None = None) -> tuple[float, float]:
    """Value of a placer's answer, s, and how long it took, s."""
    begin = time.perf_counter()
    result = get_placer(spec)(
        problem, SimulatedObjective(problem), stop or Never(), np.random.default_rng(0)
    )
    return result.seconds, time.perf_counter() - begin


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a placer with a seed on a problem."""

    graph: str
    costs: str
    placer: str
    seed: int
    evaluations: int


@dataclass(frozen=True, slots=True)
class Run:
    """What a run showed: every value in order, and the policy's mean per episode."""

    job: Job
    values_s: np.ndarray
    mean_at: np.ndarray
    mean_s: np.ndarray
    elapsed_s: float

    def best_s(self, evaluations: int) -> float:
        """Best value within the first evaluations."""
        return float(self.values_s[:evaluations].min())


class _Recording:
    def __init__(self, problem: Problem, most: int) -> None:
        self._objective, self._most = SimulatedObjective(problem), most
        self.values: list[float] = []

    def evaluate(self, assignments: np.ndarray) -> Evaluation:
        evaluation = self._objective.evaluate(assignments)
        self.values += evaluation.seconds.tolist()
        return evaluation


def run(job: Job) -> Run:
    """Run the job in this process."""
    problem = problem_of(job.graph, job.costs)
    recording = _Recording(problem, job.evaluations)
    means: dict[int, tuple[int, float]] = {}

    def watch(progress: Progress) -> None:
        episode = int(progress.figures.get("episode", 0))
        if episode and episode not in means:
            means[episode] = (progress.evaluations, progress.figures["mean_s"])

    begin = time.perf_counter()
    get_placer(job.placer)(
        problem,
        recording,
        Watched(MaxEvaluations(job.evaluations), watch),
        np.random.default_rng(job.seed),
    )
    elapsed_s = time.perf_counter() - begin
    seen = np.array(list(means.values()), dtype=np.float64).reshape(-1, 2)
    values = np.array(recording.values)[: job.evaluations]
    return Run(job, values, seen[:, 0], seen[:, 1], elapsed_s)


def run_all(jobs: list[Job]) -> list[Run]:
    """Run the jobs, one per core at a time, with a line as each ends."""
    runs = []
    for name in {job.graph for job in jobs}:
        # Built once here, then read by the workers.
        problem_of(name, "calibrated")
    with ProcessPoolExecutor(len(sched_getaffinity(0)), get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, job) for job in jobs]):
            ended = done.result()
            runs.append(ended)
            job = ended.job
            print(
                f"[{len(runs)}/{len(jobs)}] {job.graph} {job.costs} {job.placer} seed {job.seed}: "
                f"{ended.best_s(job.evaluations) * 1e3:.4g} ms in {ended.elapsed_s:.1f} s",
                flush=True,
            )
    return runs
