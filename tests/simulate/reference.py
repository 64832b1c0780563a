"""The three execution models and their memory, slow and obvious, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import networkx as nx

from situs.core import Dataflow, Pipeline, Problem


@dataclass
class Move:
    tensor: int
    source: int
    target: int
    readers: list[int]
    start: float = inf
    end: float = inf


@dataclass
class Schedule:
    start: dict[int, float] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)


def readers_of(problem: Problem, tensor: int) -> list[int]:
    offsets = problem.graph.consumer_offsets
    return problem.graph.consumer_ops[offsets[tensor] : offsets[tensor + 1]].tolist()


def tensors_of(problem: Problem, op: int) -> list[int]:
    return [t for t in range(problem.graph.num_tensors) if problem.graph.tensor_producer[t] == op]


def inputs_of(problem: Problem, op: int) -> list[int]:
    return [t for t in range(problem.graph.num_tensors) if op in readers_of(problem, t)]


def moves_of(problem: Problem, a: list[int], per_edge: bool = False) -> list[Move]:
    moves = []
    for t in range(problem.graph.num_tensors):
        source = a[problem.graph.tensor_producer[t]]
        readers = [v for v in readers_of(problem, t) if a[v] != source]
        if per_edge:
            moves += [Move(t, source, a[v], [v]) for v in readers]
        else:
            moves += [
                Move(t, source, d, [v for v in readers if a[v] == d])
                for d in sorted({a[v] for v in readers})
            ]
    return moves


def transfer_s(problem: Problem, tensor: int, source: int, target: int) -> float:
    return float(problem.costs.transfer_s(tensor, source, target))


def breaks_a_rule(problem: Problem, a: list[int]) -> bool:
    together: dict[int, set[int]] = {}
    for i, d in enumerate(a):
        together.setdefault(int(problem.units[i]), set()).add(d)
    forbidden = any(not problem.allowed[i, d] for i, d in enumerate(a))
    return forbidden or any(len(devices) > 1 for devices in together.values())


def latency(problem: Problem, assignment: object) -> float:
    a = [int(d) for d in assignment]  # type: ignore[attr-defined]
    if breaks_a_rule(problem, a):
        return inf
    if isinstance(problem.model, Dataflow):
        value = max(schedule(problem, a).end.values())
    elif isinstance(problem.model, Pipeline):
        value = pipeline(problem, a)
    else:
        value = sequential(problem, a)
    if value < inf:
        for peak, limit in zip(peak_memory(problem, a), problem.memory_bytes, strict=True):
            if peak > limit:
                return inf
    return value


def sequential(problem: Problem, a: list[int]) -> float:
    ops = sum(float(problem.costs.seconds[i, d]) for i, d in enumerate(a))
    return ops + sum(
        transfer_s(problem, m.tensor, m.source, m.target)
        + float(problem.costs.boundary_s[m.target])
        for m in moves_of(problem, a)
    )


def pipeline(problem: Problem, a: list[int]) -> float:
    model, devices = problem.model, range(problem.num_devices)
    assert isinstance(model, Pipeline)
    if model.contiguous and not convex(problem, a):
        return inf
    load = [0.0 for _ in devices]
    for i, d in enumerate(a):
        load[d] += float(problem.costs.seconds[i, d])
    links = {(x, y): 0.0 for x in devices for y in devices}
    moves = moves_of(problem, a)
    for m in moves:
        load[m.target] += float(problem.costs.boundary_s[m.target])
        if model.transfers == "link":
            links[m.source, m.target] += transfer_s(problem, m.tensor, m.source, m.target)
        else:
            # A transfer from or to device 0 itself costs that device nothing: the diagonal is 0.
            load[m.target] += transfer_s(problem, m.tensor, 0, m.target)
    if model.transfers == "staged":
        for tensor, source in {(m.tensor, m.source) for m in moves}:
            load[source] += transfer_s(problem, tensor, source, 0)
    streams = [device.streams for device in problem.cluster.devices]
    return max([load[d] / streams[d] for d in devices] + list(links.values()))


def convex(problem: Problem, a: list[int]) -> bool:
    net = nx.DiGraph()
    net.add_nodes_from(range(problem.num_ops))
    for t in range(problem.graph.num_tensors):
        for v in readers_of(problem, t):
            net.add_edge(int(problem.graph.tensor_producer[t]), v)
    reach = {i: nx.descendants(net, i) for i in net}
    return not any(a[i] == a[k] != a[j] for i in net for j in reach[i] for k in reach[j])


def upward_rank(problem: Problem) -> list[float]:
    d = range(problem.num_devices)
    latency_s = problem.costs.link_latency_s
    pairs = [(x, y) for x in d for y in d if x != y and latency_s[x, y] < inf]
    allowed = problem.unit_allowed[problem.units]
    rank = [0.0] * problem.num_ops
    for i in reversed(range(problem.num_ops)):
        times = [float(problem.costs.seconds[i, x]) for x in d if allowed[i, x]]
        after = [0.0]
        for t in tensors_of(problem, i):
            moves = [transfer_s(problem, t, x, y) for x, y in pairs]
            mean = sum(moves) / len(moves) if moves else 0.0
            after += [mean + rank[v] for v in readers_of(problem, t)]
        rank[i] = sum(times) / len(times) + max(after)
    return rank


def schedule(problem: Problem, a: list[int]) -> Schedule:
    model = problem.model
    assert isinstance(model, Dataflow)
    result = Schedule(moves=moves_of(problem, a, model.charge == "edge"))
    # Rounding makes equal ranks differ in the last bit; the kernel's are the ones that break ties.
    from situs.simulate.arrays import problem_arrays

    rank = problem_arrays(problem).rank_s
    needs = {i: inputs_of(problem, i) for i in range(problem.num_ops)}
    arrival: dict[tuple[int, int], float] = {}  # (tensor, reader) -> s
    queued: list[Move] = []
    now = 0.0
    announced: set[int] = set()  # ops whose end has been acted upon
    while True:
        # One round: what ended sends; links and streams that are free take the next in line.
        for i in sorted(i for i, end in result.end.items() if end == now and i not in announced):
            announced.add(i)
            for t in tensors_of(problem, i):
                for v in readers_of(problem, t):
                    if a[v] == a[i]:
                        arrival[t, v] = now
                queued += [m for m in result.moves if m.tensor == t]
        for m in list(queued):
            link = [x for x in result.moves if (x.source, x.target) == (m.source, m.target)]
            ahead = queued[: queued.index(m)]
            waits = model.links == "shared" and (
                any(x.start <= now < x.end or x.start == inf > x.end for x in link)
                or any((x.source, x.target) == (m.source, m.target) for x in ahead)
            )
            if not waits:
                queued.remove(m)
                m.start, m.end = now, now + transfer_s(problem, m.tensor, m.source, m.target)
                for v in m.readers:
                    arrival[m.tensor, v] = m.end + float(problem.costs.boundary_s[m.target])
        for d, device in enumerate(problem.cluster.devices):
            while sum(a[i] == d and i not in announced for i in result.start) < device.streams:
                ready = {
                    i: max([0.0] + [arrival[t, i] for t in needs[i]])
                    for i in range(problem.num_ops)
                    if a[i] == d
                    and i not in result.start
                    and all(arrival.get((t, i), inf) <= now for t in needs[i])
                }
                if not ready:
                    break
                if model.dispatch == "fifo":
                    chosen = min(ready, key=lambda i: (ready[i], i))
                else:
                    chosen = min(ready, key=lambda i: (-rank[i], i))
                result.start[chosen] = now
                result.end[chosen] = now + float(problem.costs.seconds[chosen, d])
        if any(end == now and i not in announced for i, end in result.end.items()):
            continue
        later = [end for end in result.end.values() if end > now]
        later += [s for s in arrival.values() if s > now]
        later += [m.end for m in result.moves if now < m.end < inf]
        if not later:
            if len(result.end) < problem.num_ops:  # a tensor has no link to travel on
                result.end[-1] = inf
            return result
        now = min(later)


def peak_memory(problem: Problem, a: list[int]) -> list[float]:
    graph = problem.graph
    held = [0.0] * problem.num_devices
    for c in range(len(graph.constant_bytes)):
        readers = graph.reader_ops[graph.reader_offsets[c] : graph.reader_offsets[c + 1]]
        for d in {a[v] for v in readers}:
            held[d] += float(graph.constant_bytes[c])
    pieces: list[tuple[int, float, float, float]] = []  # device, start, end, bytes
    if isinstance(problem.model, Dataflow):
        plan = schedule(problem, a)
        for t in range(graph.num_tensors):
            i = int(graph.tensor_producer[t])
            moves = [m for m in plan.moves if m.tensor == t]
            local = [plan.end[v] for v in readers_of(problem, t) if a[v] == a[i]]
            end = max([plan.end[i], *local, *(m.end for m in moves)])
            pieces.append((a[i], plan.start[i], end, float(graph.tensor_bytes[t])))
            for m in moves:
                end = max([m.end] + [plan.end[v] for v in m.readers])
                pieces.append((m.target, m.start, end, float(graph.tensor_bytes[t])))
    else:
        for t in range(graph.num_tensors):
            i = int(graph.tensor_producer[t])
            moves = [m for m in moves_of(problem, a) if m.tensor == t]
            local = [v + 1.0 for v in readers_of(problem, t) if a[v] == a[i]]
            end = max([i + 1.0, *local, *(float(min(m.readers)) for m in moves)])
            size = float(graph.tensor_bytes[t])
            always = isinstance(problem.model, Pipeline)
            pieces.append((a[i], *((0.0, 1.0) if always else (float(i), end)), size))
            for m in moves:
                span = (float(min(m.readers)), max(m.readers) + 1.0)
                pieces.append((m.target, *((0.0, 1.0) if always else span), size))
    for d in range(problem.num_devices):
        here = [piece for piece in pieces if piece[0] == d]
        held[d] += max(
            (sum(x[3] for x in here if x[1] <= s < x[2]) for _, s, _, _ in here), default=0.0
        )
    return held
