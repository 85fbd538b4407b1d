"""The data of a training as Lightning takes it: micro-batches of one rank, from any step on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
from torch.utils.data import DataLoader

from graphcontext.train.batches import Course, Deal, Learnt, RankBatches, held_out_batches
from graphcontext.train.examples import Examples
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.world import rank


class PairsData(pl.LightningDataModule):
    """Micro-batches of one rank from a step on; batches are dealt out here, not by Lightning's sampler.

    Args:
        train, held_out: examples of both sides.
        course: all optimiser steps.
        settings: of the training.
        collate: makes a batch of (example, whether it is learnt from).
    """

    def __init__(
        self,
        train: Examples,
        held_out: Examples,
        course: Course,
        settings: TrainerSettings,
        collate: Callable[..., Any],
    ):
        super().__init__()
        self.train, self.held_out, self.course, self.settings = train.examples, held_out.examples, course, settings
        self.start, self.collate = 0, collate

    @property
    def deal(self) -> Deal:
        return Deal(self.settings.world, self.settings.micro_batch_size).within(self.course.batch_size)

    def train_dataloader(self) -> Any:
        batches = RankBatches(self.course, self.deal, rank(), self.start)
        return self._loader(self.train, batches)

    def held_out_loader(self) -> Any:
        """Return the loader of this rank's held-out batches; all ranks have the same number of them."""
        lengths = [e.length for e in self.held_out]
        return self._loader(self.held_out, held_out_batches(lengths, self.deal, rank()))

    def _loader(self, examples: Any, batches: Any) -> Any:
        return DataLoader(
            Learnt(examples), batch_sampler=batches, collate_fn=self.collate, num_workers=self.settings.workers
        )
