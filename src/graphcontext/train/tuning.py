"""Lightning modules: the loss of causal and encoder–decoder models, one optimiser step of which is a global batch.

The loss of a step is L = Σ −log p(w) / N over all target tokens of the global batch, N of them over all ranks and
micro-batches. Each rank computes its part; DDP and FSDP average gradients over ranks and Lightning divides by the
number of micro-batches, so a part is multiplied by both. So neither the number of ranks nor the size of a
micro-batch changes L.

Random numbers (dropout) of a forward pass come from seed, step, pass and rank alone: the state of the generators is
a function of the position, and needs no saving.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphcontext.errors import InputError
from graphcontext.train.batches import Course
from graphcontext.train.examples import IGNORED, Example
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.strategy import precision_of

Look = Callable[[int, int], None]  # of how many parts are done, of how many


def unseen(done: int, of: int) -> None:
    """Let nobody see how far a validation is."""


class Tuning(pl.LightningModule):
    """What both kinds of model share: loading, sharding, the scaled loss, AdamW, the schedule.

    A subclass says how many targets an example has and what the losses of a batch sum up to.

    Args:
        load: returns the wrapped model; called once per process, after its ranks are known.
        settings: of the training.
        course: all optimiser steps.
        examples: of the training side.
        seed: of the training.
        start: steps that are done.
    """

    def __init__(
        self,
        load: Callable[[], Any],
        settings: TrainerSettings,
        course: Course,
        examples: Sequence[Example],
        seed: int,
        start: int = 0,
    ) -> None:
        super().__init__()
        self._load, self.settings, self.course, self.seed = load, settings, course, seed
        self.network: Any = None
        self.done = start  # optimiser steps
        self.passes = 0  # of the step in progress
        self.loss_sum: Any = None  # of the step in progress, on this rank
        self.norm = 0.0  # of the last step's gradient, before clipping
        self.measured: dict[str, float] = {}  # beside the loss, by the last validation
        self.targets = [self.n_targets(e) for e in examples]
        self._batches: Iterator[list[int]] = course.steps(start)
        self._batch: list[int] = []

    @staticmethod
    def n_targets(example: Example) -> int:
        """Return the number of tokens that are learnt of an example."""
        raise NotImplementedError

    def losses(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the sum of −log p over the targets of a batch, in nats, and their number."""
        raise NotImplementedError

    def configure_model(self) -> None:
        """Load the model, and shard it under FSDP."""
        if self.network is not None:
            return
        torch.manual_seed(self.seed)  # of the adapter's weights: the same on every rank
        self.network = self._load()
        if self.settings.strategy == "fsdp":
            shard(self.network, self.device_mesh)

    def training_step(self, batch: dict[str, Any], _: int) -> Tensor:
        """Return this pass's part of the step's loss, scaled as the module's docstring says."""
        if self.passes == 0:
            self._batch = next(self._batches)
            self.loss_sum = torch.zeros((), device=self.device)
        torch.manual_seed(derive(self.seed, self.done, self.passes, self.global_rank))
        total = self.part(batch)
        self.passes += 1
        return total * (self.trainer.world_size * self.trainer.accumulate_grad_batches / self.tokens)

    def part(self, batch: dict[str, Any]) -> Tensor:
        """Return this pass's part of the step's summed loss, and add it to ``loss_sum``."""
        total, _ = self.losses(batch)
        self.loss_sum += total.detach()
        return total

    @property
    def tokens(self) -> int:
        """Target tokens of the step in progress, over all ranks."""
        return max(1, sum(self.targets[i] for i in self._batch))

    @property
    def n_read(self) -> int:
        """Tokens of the examples of the step in progress, prompts included, over all ranks."""
        return sum(self.course.lengths[i] for i in self._batch)

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Set the learning rate, clip the gradient, and refuse one that is no number."""
        rate = self.settings.rate(self.done, self.course.total)
        for group in optimizer.param_groups:
            group["lr"] = rate
        limit = self.settings.clip or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.trained(), limit)
        self.norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def trained(self) -> list[Any]:
        """Return the weights that are trained."""
        return [p for p in self.network.parameters() if p.requires_grad]

    def configure_optimizers(self) -> Any:
        """Return AdamW on the trained weights."""
        return torch.optim.AdamW(
            self.trained(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )

    def held_out_loss(self, batches: Collection[dict[str, Any]], look: Look = unseen) -> tuple[float, int]:
        """Return the mean loss of a target over held-out batches of all ranks, and the number of examples.

        Nothing is drawn: dropout is off. ``look`` is called before each batch, on every rank.
        """
        was_training = self.network.training
        self.network.eval()
        found = torch.zeros(3, dtype=torch.float64, device=self.device)  # loss, targets, examples
        low = precision_of(self.settings)[0] == "bfloat16"
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            for number, batch in enumerate(batches):
                look(number, len(batches))
                moved = self.transfer_batch_to_device(batch, self.device, 0)
                total, n = self.losses(moved)
                n_examples = sum(name is not None for name in batch["ids"])
                found += torch.stack([total.double(), n.double(), total.new_tensor(n_examples).double()])
        self.network.train(was_training)
        loss, n, examples = summed(found).tolist()
        return loss / max(1.0, n), round(examples)


class CausalTuning(Tuning):
    """A model that predicts each token from those before it (Llama family, SmolLM2)."""

    @staticmethod
    def n_targets(example: Example) -> int:
        """Return the number of learnt tokens; the first has nothing before it."""
        return sum(label != IGNORED for label in example.labels[1:])

    def losses(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the sum over targets; logits are computed only at positions that some row learns from."""
        targets = batch["labels"][:, 1:]  # (n, longest − 1)
        kept = (targets != IGNORED).any(0).nonzero().squeeze(1)  # positions whose next token is learnt
        if not len(kept):
            kept = torch.zeros(1, dtype=torch.long, device=targets.device)
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "use_cache": False}
        if self._can_keep:
            logits = self.network(**inputs, logits_to_keep=kept).logits
        else:
            logits = self.network(**inputs).logits[:, kept]
        return _sum(logits, targets[:, kept])

    @property
    def _can_keep(self) -> bool:
        base = self.network.get_base_model() if hasattr(self.network, "get_base_model") else self.network
        return "logits_to_keep" in inspect.signature(type(base).forward).parameters


class Seq2SeqTuning(Tuning):
    """An encoder–decoder model (T5, BART): the target is predicted from the source and its own beginning."""

    @staticmethod
    def n_targets(example: Example) -> int:
        """Return the number of learnt tokens."""
        return sum(label != IGNORED for label in example.labels)

    def losses(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the sum over the target; the decoder's input is the labels shifted by one."""
        base = self.network.get_base_model() if hasattr(self.network, "get_base_model") else self.network
        shifted = base.prepare_decoder_input_ids_from_labels(labels=batch["labels"])
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        return _sum(self.network(**inputs, decoder_input_ids=shifted, use_cache=False).logits, batch["labels"])


def _sum(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ −log p in float32 and the number of targets, of logits (n, length, vocabulary)."""
    flat = logits.float().flatten(0, 1)
    total = cross_entropy(flat, targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return total, (targets != IGNORED).sum()


def derive(*parts: int) -> int:
    """Return a seed below 2⁶³ from whole numbers."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


def summed(values: Tensor) -> Tensor:
    """Return the sum over all ranks."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(values)
    return values


def shard(network: Any, mesh: Any) -> None:
    """Shard a model layer by layer over the ranks of a device mesh (fully_shard), in place.

    Raises:
        InputError: no list of layers is found in it.
    """
    from torch.distributed.fsdp import fully_shard

    data = mesh["data_parallel"]
    layers = [m for m in network.modules() if isinstance(m, torch.nn.ModuleList) and len(m) > 0]
    names = set(getattr(network, "_no_split_modules", None) or ())
    every = [block for found in layers for block in found]
    blocks = [block for block in every if type(block).__name__ in names] or every
    if not blocks:
        raise InputError(f"trainer=fsdp: {type(network).__name__} has no list of layers to shard; trainer=ddp")
    for block in blocks:
        fully_shard(block, mesh=data)
    fully_shard(network, mesh=data)
