"""What is seen of a placer while it searches: a line per episode, and TensorBoard events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from situs.cli.output import OnEvent, milliseconds
from situs.core import Progress
from situs.errors import MissingExtraError, OutputError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@contextmanager
def watching(on_event: OnEvent, folder: Path | None) -> Iterator[Callable[[Progress], None]]:
    """A function for ``Searching.watch`` that shows each episode once.

    Raises:
        MissingExtraError: If event files are asked for and TensorBoard is not installed.
        OutputError: If they cannot be written.
    """
    writer = _writer(folder) if folder is not None else None
    shown = 0

    def watch(progress: Progress) -> None:
        nonlocal shown
        episode = int(progress.figures.get("episode", 0))
        if episode <= shown:
            return
        shown = episode
        on_event("learning", 0, 0, _line(episode, progress))
        if writer is not None:
            for name, value in progress.figures.items():
                writer.add_scalar(name, value, progress.evaluations)
            writer.add_scalar("best_s", progress.best_s, progress.evaluations)
            writer.flush()

    try:
        yield watch
    finally:
        if writer is not None:
            writer.close()


def _line(episode: int, progress: Progress) -> str:
    figures = progress.figures
    parts = [
        f"episode {episode}",
        f"{progress.evaluations} placements",
        f"best {milliseconds(progress.best_s)} ms",
        f"mean {milliseconds(figures['mean_s'])} ms",
    ]
    parts += [f"{name} {figures[name]:.3g}" for name in ("entropy", "groups") if name in figures]
    if figures.get("failed"):
        parts.append(f"{figures['failed']:.0f} failed")
    return ", ".join(parts)


def _writer(folder: Path) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", "learn") from error
    try:
        return SummaryWriter(str(folder))
    except OSError as error:
        raise OutputError(f"{folder}: cannot write event files there ({error})") from error
