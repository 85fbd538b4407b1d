"""Which examples make an optimiser step, which rank computes which of them, and how they become one padded batch.

Global batches are planned before they are dealt out, from lengths and a seed alone: the number of ranks and the size
of micro-batches change neither which examples a step learns from nor what its loss is divided by.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphcontext.train.examples import IGNORED, Example

WINDOW = 50  # most global batches among which examples are sorted by length
PARTS = 4  # least windows of an epoch: sorted as a whole, small data would give the same batches in every epoch


def plan_epoch(lengths: Sequence[int], batch_size: int, seed: int, epoch: int, bucket: bool) -> list[list[int]]:
    """Return the global batches of one epoch: every example once, the last batch may be smaller.

    Examples are shuffled; with ``bucket`` those of a window (50 batches, or a quarter of the epoch where that is less)
    are sorted by length, cut into batches, and the batches shuffled, so that a batch holds examples of like length in
    a random order of steps, and others in each epoch.

    Args:
        lengths: tokens of each example.
        batch_size: examples of a global batch.
        seed: of the training.
        epoch: from 0.
        bucket: sort by length within a window.
    """
    draw = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    draw.shuffle(order)
    if bucket:
        size = batch_size * max(1, min(WINDOW, len(order) // batch_size // PARTS))
        windows = [order[start : start + size] for start in range(0, len(order), size)]
        order = [i for window in windows for i in sorted(window, key=lambda i: -lengths[i])]
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if bucket:
        draw.shuffle(batches)
    return batches


@dataclass(frozen=True)
class Deal:
    """How a global batch is dealt out.

    Args:
        world: ranks.
        micro: examples of one forward pass on one rank.
    """

    world: int
    micro: int

    def within(self, batch_size: int) -> Deal:
        """Return the same deal with forward passes no larger than a rank's part of a global batch."""
        return Deal(self.world, max(1, min(self.micro, math.ceil(batch_size / self.world))))

    def passes(self, batch_size: int) -> int:
        """Return the forward passes that a rank makes of one global batch, the same for every step."""
        return math.ceil(batch_size / (self.world * self.micro))

    def of(self, batch: Sequence[int], lengths: Sequence[int], rank: int, passes: int) -> list[list[int]]:
        """Return a rank's micro-batches of one global batch: ``passes`` of them.

        Examples of like length go through together. A rank without an example left computes one that it does not
        learn from, so that all ranks make the same number of passes: its index is given as −1 − i.
        """
        ordered = sorted(batch, key=lambda i: (-lengths[i], i))
        rows = [ordered[start : start + self.world] for start in range(0, len(ordered), self.world)]
        own = [row[rank] for row in rows if rank < len(row)]
        filler = -1 - min(batch, key=lambda i: (lengths[i], i))
        share = math.ceil(len(rows) / passes) if rows else 0
        parts = [own[start : start + share] for start in range(0, passes * share, share)]
        return [part or [filler] for part in parts]


@dataclass(frozen=True)
class Course:
    """All optimiser steps of a training, by their number.

    Args:
        lengths: tokens of each example.
        batch_size: examples of a step.
        total: steps in all.
        seed: of the training.
        bucket: see :func:`plan_epoch`.
    """

    lengths: tuple[int, ...]
    batch_size: int
    total: int
    seed: int
    bucket: bool

    @property
    def per_epoch(self) -> int:
        """Steps of one epoch."""
        return math.ceil(len(self.lengths) / self.batch_size)

    def steps(self, start: int = 0) -> Iterator[list[int]]:
        """Yield the global batches from step ``start`` on."""
        epoch, at = divmod(start, self.per_epoch)
        done = start
        while done < self.total:
            for batch in plan_epoch(self.lengths, self.batch_size, self.seed, epoch, self.bucket)[at:]:
                if done == self.total:
                    return
                yield batch
                done += 1
            epoch, at = epoch + 1, 0


class RankBatches:
    """A batch sampler: one rank's micro-batches from a step on. Not to be wrapped by Lightning's own sampler.

    Args:
        course: all steps.
        deal: ranks and micro-batches.
        rank: this one.
        start: first step.
    """

    def __init__(self, course: Course, deal: Deal, rank: int, start: int = 0) -> None:
        self.course, self.deal, self.rank, self.start = course, deal, rank, start
        self.passes = deal.passes(min(course.batch_size, len(course.lengths)))

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.course.steps(self.start):
            yield from self.deal.of(batch, self.course.lengths, self.rank, self.passes)

    def __len__(self) -> int:
        return (self.course.total - self.start) * self.passes


def held_out_batches(lengths: Sequence[int], deal: Deal, rank: int) -> list[list[int]]:
    """Return a rank's batches of all held-out examples: each example counts once over all ranks."""
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    size = deal.world * deal.micro
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    return [deal.of(chunk, lengths, rank, 1)[0] for chunk in chunks]


class Collate:
    """Pads examples to the longest of their batch.

    Args:
        pad: id of the padding token.
        to: pad to this many tokens instead (to measure against).
    """

    def __init__(self, pad: int, to: int | None = None) -> None:
        self.pad, self.to = pad, to

    def __call__(self, examples: Sequence[tuple[Example, bool]]) -> dict[str, Any]:
        """Return input_ids and attention_mask (n, longest input), labels (n, longest labels), ids.

        Args:
            examples: (example, whether it is learnt from).
        """
        import torch

        inputs = [list(e.inputs) for e, _ in examples]
        labels = [list(e.labels) if learnt else [IGNORED] * len(e.labels) for e, learnt in examples]
        wide, long = self._width(inputs), self._width(labels)
        return {
            "input_ids": torch.tensor([row + [self.pad] * (wide - len(row)) for row in inputs]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (wide - len(row)) for row in inputs]),
            "labels": torch.tensor([row + [IGNORED] * (long - len(row)) for row in labels]),
            "ids": [e.id if learnt else None for e, learnt in examples],
        }

    def _width(self, rows: Sequence[Sequence[int]]) -> int:
        return self.to or max(len(row) for row in rows)


class Learnt:
    """A data set for a loader: index i ≥ 0 gives example i, −1 − i the same, not to be learnt from."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> tuple[Example, bool]:
        return (self.examples[index], True) if index >= 0 else (self.examples[-1 - index], False)
