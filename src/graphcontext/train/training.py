"""One training as it is about to run: what it is made from, where its files go, and all its optimiser steps."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcontext.train.base import Base
from graphcontext.train.batches import Course
from graphcontext.train.examples import Examples
from graphcontext.train.settings import TrainerSettings


@dataclass(frozen=True)
class Training:
    """What a training is made from.

    Args:
        config: resolved, composed with ``primary="train"``.
        settings: its trainer.
        base: the model that is trained.
        sides: examples of ``train`` (one or more) and ``validation``.
        folder: where all files go; it is named by the training's key.
        name: of the experiment.
    """

    config: dict[str, Any]
    settings: TrainerSettings
    base: Base
    sides: dict[str, Examples]
    folder: Path
    name: str

    @functools.cached_property
    def course(self) -> Course:
        """All optimiser steps."""
        settings = self.settings
        lengths = tuple(e.length for e in self.sides["train"].examples)
        course = Course(lengths, min(settings.batch_size, len(lengths)), 0, self.config["seed"], settings.bucket)
        total = max(1, round(settings.epochs * course.per_epoch))
        return replace(course, total=total if settings.max_steps is None else min(total, settings.max_steps))
