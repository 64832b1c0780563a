"""Attribute the times of runtime ops, which are fused, to the original ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from situs.costs import op_traffic_bytes
from situs.executors.readback import original_ops
from situs.graph import Graph
from situs.graph.arrays import Floats, Ints, frozen

if TYPE_CHECKING:
    import openvino as ov


def runtime_op_of(compiled: ov.CompiledModel, graph: Graph) -> tuple[Ints, dict[str, int]]:
    """Which runtime op runs each original op.

    Returns:
        ``int32[N]`` number of the runtime op (-1 = none), and the number of each runtime op's name.

    A runtime op names the original ops that it was fused from, but not those that were folded
    into its weights (a batch normalisation, and with it the convolution before it). Such an op
    belongs to the runtime op of its readers if they agree, else to that of its first producer. A
    runtime op that names none (a reorder or copy put in between) belongs to its reader.
    """
    owners = original_ops(compiled, graph)
    number = {name: k for k, name in enumerate(owners)}
    op_of = np.full(graph.num_ops, -1, dtype=np.int32)
    for name, ops in owners.items():
        op_of[ops] = number[name]
    offsets, tensors = graph.inputs
    starts = graph.op_tensors
    for op in range(graph.num_ops - 1, -1, -1):
        if op_of[op] >= 0:
            continue
        first = graph.consumer_offsets[starts[op]]
        last = graph.consumer_offsets[starts[op + 1]]
        readers = op_of[graph.consumer_ops[first:last]]
        readers = readers[~graph.is_output[graph.consumer_ops[first:last]]]
        if len(readers) and (readers == readers[0]).all():
            op_of[op] = readers[0]
    for op in range(graph.num_ops):
        if op_of[op] < 0 and offsets[op + 1] > offsets[op]:
            op_of[op] = op_of[graph.tensor_producer[tensors[offsets[op]]]]
    inserted = [name for name, ops in owners.items() if not ops]
    readers_of = {
        node.get_friendly_name(): [
            target.get_node().get_friendly_name()
            for output in node.outputs()
            for target in output.get_target_inputs()
        ]
        for node in compiled.get_runtime_model().get_ordered_ops()
    }
    # Later ones first, so that a chain of inserted ops passes its final reader on.
    for name in reversed(inserted):
        for reader in readers_of[name]:
            number[name] = number[reader]
            break
    return frozen(op_of, np.int32), number


def attribute(
    graph: Graph, op_of: Ints, number: Mapping[str, int], runtime_s: Mapping[str, float]
) -> Floats:
    """``float64[N]`` seconds per original op from seconds per runtime op.

    The time of a runtime op is shared among its original ops by FLOP, or by bytes where none
    computes. Times of runtime ops that run no original op are
    spread over all in proportion.
    """
    count = max(number.values(), default=-1) + 1
    spent = np.zeros(count)
    for name, time_s in runtime_s.items():
        if name in number:
            spent[number[name]] += time_s
    works = ~(graph.is_input | graph.is_output)
    member = op_of >= 0
    weights = np.where(works, graph.op_flop, 0.0)
    traffic = np.where(works, op_traffic_bytes(graph), 0.0) + 1e-30
    flop_sum = np.bincount(op_of[member], weights=weights[member], minlength=count)
    byte_sum = np.bincount(op_of[member], weights=traffic[member], minlength=count)
    seconds = np.zeros(graph.num_ops)
    of = op_of[member]
    by_flop = flop_sum[of] > 0
    share = np.where(
        by_flop,
        weights[member] / np.where(by_flop, flop_sum[of], 1.0),
        traffic[member] / byte_sum[of],
    )
    seconds[member] = spent[of] * share
    placed, total = float(seconds.sum()), float(spent.sum())
    return frozen(seconds * (total / placed) if placed > 0 else seconds, np.float64)
