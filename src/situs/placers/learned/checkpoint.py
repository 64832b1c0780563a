"""Checkpoints of a learner: safetensors and JSON, whole or not at all, never pickle."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from situs.core import Incumbent, Problem
from situs.errors import OutputError, ParameterError
from situs.graph.arrays import Ints
from situs.placers.learned.learner import Learner

_INDEX = "checkpoint.json"
_FORMAT = "situs-checkpoint"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a training stood: everything beside the learner's own state.

    Attributes:
        episodes: Finished episodes.
        evaluations: Placements valued.
        elapsed_s: Time spent, s.
        stale: Episodes since the best one or the mean improved.
        best_mean_s: Lowest mean of an episode, s.
        trace: Incumbents, oldest first.
        best: ``int32[N]`` best placement, or None.
    """

    episodes: int
    evaluations: int
    elapsed_s: float
    stale: int
    best_mean_s: float
    trace: tuple[Incumbent, ...]
    best: Ints | None


class Checkpoint:
    """A folder that always holds one whole checkpoint, or none.

    The tensors are written first, under a new name; then the index that names them replaces the
    old index in one step; then the old tensors are removed. A kill at any moment leaves either
    the old checkpoint or the new one.
    """

    def __init__(self, folder: Path, problem: Problem, parameters: tuple[tuple[str, str], ...]):
        self._folder = folder
        self._key = {
            "graph": problem.graph.fingerprint,
            "units": sha256(problem.units.tobytes()).hexdigest()[:16],
            "devices": list(problem.cluster.names),
            "model": repr(problem.model),
            # Where it is kept, and for how long it runs, may change between two runs.
            "parameters": [list(p) for p in parameters if p[0] not in ("checkpoint", "episodes")],
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot keep checkpoints there ({error})") from error

    def save(self, learner: Learner, standing: Standing) -> None:
        """Write the state after an episode.

        Raises:
            OutputError: If it cannot be written; the old checkpoint stays.
        """
        name = f"episode-{standing.episodes}.safetensors"
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "key": self._key,
            "tensors": name,
            "learner": learner.scalars(),
            "episodes": standing.episodes,
            "evaluations": standing.evaluations,
            "elapsed_s": standing.elapsed_s,
            "stale": standing.stale,
            "best_mean_s": standing.best_mean_s,
            "trace": [[i.evaluations, i.elapsed_s, i.seconds] for i in standing.trace],
            "best": None if standing.best is None else standing.best.tolist(),
        }
        index, draft = self._folder / _INDEX, self._folder / f"{_INDEX}.draft"
        try:
            save_file(learner.tensors(), self._folder / name)
            with draft.open("w", encoding="utf-8") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(index)
            for old in self._folder.glob("episode-*.safetensors"):
                if old.name != name:
                    old.unlink()
        except (OSError, SafetensorError) as error:
            raise OutputError(f"{self._folder}: cannot write a checkpoint ({error})") from error

    def load(self, learner: Learner) -> Standing | None:
        """Restore the learner and say where it stood; None if the folder holds no checkpoint.

        Raises:
            ParameterError: If the checkpoint is damaged, or of another problem or parameters.
        """
        index = self._folder / _INDEX
        if not index.exists():
            return None
        try:
            record: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
            if record.get("format") != _FORMAT or record.get("version") != _VERSION:
                raise ValueError("not a checkpoint of this version")
            key, name = record["key"], record["tensors"]
            if Path(name).name != name:
                raise ValueError("the tensors lie outside the folder")
            self._require(key)
            tensors: dict[str, Tensor] = load_file(self._folder / name)
            learner.restore(tensors, record["learner"])
            best = record["best"]
            return Standing(
                record["episodes"],
                record["evaluations"],
                record["elapsed_s"],
                record["stale"],
                record["best_mean_s"],
                tuple(Incumbent(*entry) for entry in record["trace"]),
                None if best is None else np.array(best, dtype=np.int32),
            )
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise ParameterError(
                f"{index}: not a usable checkpoint ({error}); give another folder"
            ) from error

    def _require(self, key: dict[str, Any]) -> None:
        for name, mine in self._key.items():
            if key.get(name) != mine:
                raise ParameterError(
                    f"{self._folder}: its checkpoint is of other {name}; give another folder, "
                    "or the same model, devices, seed and parameters"
                )
