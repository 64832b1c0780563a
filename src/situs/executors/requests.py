"""One request in flight over the segments of a parallel model, and the threads that run them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from situs.errors import RunError
from situs.executors.cutting import Cut, Source
from situs.executors.runtime import first_line
from situs.executors.segments import Segments

if TYPE_CHECKING:
    import openvino as ov


Work = SimpleQueue["tuple[Request, int] | None"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What every request of one parallel model shares.

    Attributes:
        cut: The pieces and where their tensors come from.
        segments: Devices and predecessors.
        compiled: One compiled model per segment.
        after: Segments that wait for each segment.
        first: Segments that wait for none.
        dynamic: Whether a segment has an output whose shape is known only after it ran.
        queues: Work of each device's thread.
        locks: Held while a device runs a segment: one at a time.
        names: Device names by number.
    """

    cut: Cut
    segments: Segments
    compiled: Sequence[ov.CompiledModel]
    after: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]
    dynamic: tuple[bool, ...]
    queues: dict[int, Work]
    locks: dict[int, threading.Lock]
    names: tuple[str, ...]

    def submit(self, request: Request, segment: int) -> None:
        """Give a segment to its device's thread."""
        self.queues[int(self.segments.device[segment])].put((request, segment))


def work(queue: Work) -> None:
    """Body of a device's thread: run segments until ``None`` comes."""
    while (item := queue.get()) is not None:
        request, segment = item
        request.run_from(segment)
        # Nothing may keep a finished request alive while the thread waits.
        del item, request


class Request:
    """One request: an inference request per segment, joined by shared tensors."""

    def __init__(self, plan: Plan, num_inputs: int) -> None:
        self._plan = plan
        self._requests = [compiled.create_infer_request() for compiled in plan.compiled]
        self._inputs: list[ov.Tensor | None] = [None] * num_inputs
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._waiting: list[int] = []
        self._left = 0
        self._error: RunError | None = None
        self._ports: list[list[tuple[int, int]]] = [[] for _ in range(num_inputs)]
        for k, piece in enumerate(plan.cut.pieces):
            for port, source in enumerate(piece.inputs):
                if source.segment < 0:
                    self._ports[source.port].append((k, port))
                elif not plan.dynamic[source.segment]:
                    self._hand_over(k, port, source)

    def _hand_over(self, segment: int, port: int, source: Source) -> None:
        tensor = self._requests[source.segment].get_output_tensor(source.port)
        self._requests[segment].set_input_tensor(port, tensor)

    def set_input_tensor(self, index: int, tensor: ov.Tensor) -> None:
        """Give the tensor of one of the whole model's inputs; it is read when the request runs."""
        self._inputs[index] = tensor
        for segment, port in self._ports[index]:
            self._requests[segment].set_input_tensor(port, tensor)

    def get_input_tensor(self, index: int = 0) -> ov.Tensor | None:
        """The tensor given for an input."""
        return self._inputs[index]

    def get_output_tensor(self, index: int = 0) -> Any:
        """The tensor of one of the whole model's outputs."""
        source = self._plan.cut.outputs[index]
        if source.segment < 0:
            return self._inputs[source.port]
        return self._requests[source.segment].get_output_tensor(source.port)

    def start_async(self) -> None:
        """Start; the devices' threads do the work."""
        self._begin()
        for segment in self._plan.first:
            self._plan.submit(self, segment)

    def wait(self) -> None:
        """Wait for the end.

        Raises:
            RunError: Once, naming the sub-graph and device; the request can be used again.
        """
        self._done.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def infer(self) -> None:
        """Run once; the calling thread runs what it can itself.

        Raises:
            RunError: As ``wait``.
        """
        self._begin()
        for segment in self._plan.first[1:]:
            self._plan.submit(self, segment)
        self.run_from(self._plan.first[0])
        self.wait()

    def _begin(self) -> None:
        self._waiting = [len(before) for before in self._plan.segments.predecessors]
        self._left = len(self._waiting)
        self._error = None
        self._done.clear()

    def run_from(self, segment: int) -> None:
        """Run a segment, then one that it made ready, and so on; other ready ones are submitted.

        Going on in the same thread saves the hand-over to another wherever nothing can overlap.
        """
        device = self._plan.segments.device
        current: int | None = segment
        while current is not None:
            here = int(device[current])
            ready = self._run_one(current)
            current = next((t for t in ready if device[t] == here), None)
            if current is None and ready:
                current = ready[0]
            for t in ready:
                if t != current:
                    self._plan.submit(self, t)

    def _run_one(self, segment: int) -> list[int]:
        plan = self._plan
        device = int(plan.segments.device[segment])
        if self._error is None:
            try:
                for port, source in enumerate(plan.cut.pieces[segment].inputs):
                    if source.segment >= 0 and plan.dynamic[source.segment]:
                        self._hand_over(segment, port, source)
                with plan.locks[device]:
                    self._requests[segment].infer(share_inputs=True, share_outputs=True)
            except RuntimeError as error:
                where = f"sub-graph {segment} on {plan.names[device]}"
                with self._lock:
                    self._error = self._error or RunError(f"{where} failed: {first_line(error)}")
        ready = []
        with self._lock:
            self._left -= 1
            for t in plan.after[segment]:
                self._waiting[t] -= 1
                if self._waiting[t] == 0:
                    ready.append(t)
            finished = self._left == 0
        if finished:
            self._done.set()
        return ready
