"""What every command shares: consoles, JSON, progress, Ctrl-C, errors and common options."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from situs.core import Flag
from situs.errors import ModelError

# A table that is piped into a file is not wrapped at the 80 columns of an unknown terminal.
_WIDE = None if sys.stdout.isatty() else 200

out = Console(highlight=False, width=_WIDE)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Model = Annotated[
    str, typer.Argument(help="Model: ONNX, OpenVINO .xml, TensorFlow, TFLite or Paddle.")
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        help="Static shape of an input: NAME=1,3,224,224, or 1,3,224,224 for the only input.",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        "--devices",
        "-d",
        help="Devices, CPU,GPU or NAME:key=value;key=value (threads, precision, streams, pinning).",
    ),
]
Virtual = Annotated[
    list[str] | None,
    typer.Option(help="A second copy of the CPU as a device of its own: CPU_B:threads=1."),
]
Precision = Annotated[
    str, typer.Option(help="Inference precision of all devices: f32, f16, bf16 or native.")
]


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Read ``--shape`` options; the name ``""`` stands for the only input.

    Raises:
        ModelError: If a dimension is not a whole number.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts or []:
        name, equals, dims = text.rpartition("=")
        try:
            shape = tuple(int(d) for d in dims.split(",")) if dims else ()
        except ValueError:
            raise ModelError(
                f"--shape {text!r}: write NAME=1,3,224,224, with whole numbers"
            ) from None
        shapes[name if equals else ""] = shape
    return shapes


def split_devices(texts: Sequence[str] | None) -> list[str]:
    """Split ``CPU,GPU`` at commas; properties of one device are joined by semicolons."""
    names = [part for text in texts or [] for part in text.split(",") if part.strip()]
    return [name.replace(";", ",") for name in names]


@contextmanager
def interruptible() -> Iterator[Flag]:
    """A flag that the first Ctrl-C sets, so that the best so far is kept; the second one ends."""
    flag = Flag()

    def on_interrupt(number: int, frame: Any) -> None:
        if flag.raised:
            raise KeyboardInterrupt
        flag.set()
        err.print("[yellow]stopping; keeping the best so far (Ctrl-C again to end at once)")

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)


class OnEvent(Protocol):
    """Shows that a stage has come to ``done`` of ``total``, with a text that may change."""

    def __call__(self, stage: str, done: int, total: int, text: str = "") -> None:
        """Show it."""
        ...


@contextmanager
def progress(quiet: bool = False) -> Iterator[OnEvent]:
    """A bar per stage on stderr."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=quiet) as bars:
        current: list[Any] = ["", None]

        def on_event(stage: str, done: int, total: int, text: str = "") -> None:
            if stage != current[0]:
                if current[1] is not None:
                    bars.remove_task(current[1])
                current[:] = [stage, bars.add_task(stage, total=total)]
                if not err.is_terminal and not quiet:
                    err.print(stage)
            shown = escape(f"{stage}: {text}" if text else stage)
            bars.update(current[1], description=shown, completed=done, total=total)
            if text and not err.is_terminal and not quiet:
                err.print(text, markup=False, soft_wrap=True)

        yield on_event


def milliseconds(seconds: float | None) -> str:
    """Seconds as text in milliseconds, for people; a dash for none."""
    return "-" if seconds is None else f"{seconds * 1e3:.3f}"


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Print aligned ``name  value`` lines."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        out.print(f"{name:<{width}}  {value}", markup=False, soft_wrap=True)
