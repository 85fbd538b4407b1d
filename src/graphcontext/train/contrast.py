"""Lightning module of a bi-encoder: every passage of an optimiser step is a candidate for every question of it.

The loss of a step is L = Σ L_e / N over its N examples (:class:`graphcontext.train.bi_encoder.BiEncoder`). Candidates
are those of the whole step, however small the micro-batches: where a step has several passes, all texts are first
encoded without gradient, L and its gradient with regard to the vectors are computed from these, and each pass encodes
its share of the texts again, with the same random numbers, and carries that gradient on to the weights (Gao et al.
2021, "GradCache"). Examples and texts are sorted, so that the order of a batch changes no bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from graphcontext.train.batches import Course
from graphcontext.train.examples import Examples
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.strategy import precision_of
from graphcontext.train.tuning import Look, Tuning, derive, unseen

Ids = tuple[int, ...]
GROUP = 32  # texts of like length that are encoded together


@dataclass(frozen=True)
class Contrast:
    """One example: ``queries[h]`` is to find ``targets[h]``; no passage of ``golds`` is a negative for it.

    Args:
        id: as of :class:`graphcontext.train.bi_encoder.Asked`.
        queries, targets, golds: token ids.
        others: texts of the other passages of its corpus, from which negatives are drawn.
        length: tokens that are encoded for it, those of its negatives estimated.
    """

    id: str
    queries: tuple[Ids, ...]
    targets: tuple[Ids, ...]
    golds: tuple[Ids, ...]
    others: Sequence[str]
    length: int


@dataclass(frozen=True)
class Contest:
    """Queries and the candidates among which each is to find its target.

    Args:
        queries: token ids of each.
        candidates: distinct, sorted.
        targets: candidate of each query.
        barred: (query, candidate) pairs that do not meet: gold for the question, but not the target.
    """

    queries: tuple[Ids, ...]
    candidates: tuple[Ids, ...]
    targets: tuple[int, ...]
    barred: tuple[tuple[int, int], ...]


def contest(examples: Iterable[Contrast], negatives: Iterable[Ids]) -> Contest:
    """Return the contest of an optimiser step: its targets and all negatives that were drawn are its candidates."""
    examples = sorted(examples, key=lambda example: example.id)
    candidates = tuple(sorted({*negatives, *(target for e in examples for target in e.targets)}))
    row = {candidate: n for n, candidate in enumerate(candidates)}
    queries, targets, barred = [], [], []
    for example in examples:
        golds = {row[gold] for gold in example.golds if gold in row}
        for query, target in zip(example.queries, example.targets, strict=True):
            barred += [(len(queries), gold) for gold in sorted(golds - {row[target]})]
            queries.append(query)
            targets.append(row[target])
    return Contest(tuple(queries), candidates, tuple(targets), tuple(barred))


def scores(queries: Tensor, candidates: Tensor, scale: float, barred: Sequence[tuple[int, int]]) -> Tensor:
    """Return s · f(q) · f(c) of each query and candidate (n_queries, n_candidates), −∞ for barred ones."""
    found = scale * queries @ candidates.T
    if not barred:
        return found
    rows, columns = zip(*barred)
    mask = torch.zeros_like(found, dtype=torch.bool)
    mask[list(rows), list(columns)] = True
    return found.masked_fill(mask, float("-inf"))


class ContrastiveTuning(Tuning):
    """An encoder of questions and passages.

    Args:
        base: :class:`graphcontext.train.encoder_base.EncoderBase`: loads, tokenises and pools.
        settings, course, seed, start: as of :class:`Tuning`.
        sides: examples of ``train`` and ``validation``.
    """

    def __init__(
        self,
        base: Any,
        settings: TrainerSettings,
        course: Course,
        sides: dict[str, Examples],
        seed: int,
        start: int = 0,
    ) -> None:
        super().__init__(base.load, settings, course, sides["train"].examples, seed, start)
        self.base, self.loss = base, base.loss
        self.examples, self.held = sides["train"].examples, sides["validation"].examples
        self._held: list[Contest] | None = None

    @staticmethod
    def n_targets(example: Any) -> int:
        """Return 1: the losses of an example's hops are summed, those of examples averaged."""
        return 1

    def part(self, batch: dict[str, Any]) -> Tensor:
        """Return the step's loss, or of several passes what has the gradient of this one's share of the texts.

        The batch is that of the plan: what was read says only that it is time for a pass.
        """
        passes = self.trainer.accumulate_grad_batches
        if self.passes == 0:
            self._contest = self.drawn(self._batch, self.done)
            self._texts = texts_of([self._contest])
            self._gradient = self._cached(passes) if passes > 1 else None
        if self._gradient is None:
            loss = self._loss(self.encode(self._texts))
            self.loss_sum += loss.detach()
            return loss
        share, own = self._share(self.passes, passes)
        weight = self._gradient[share] if own else torch.zeros_like(self._gradient[share])
        self._seed(self.passes)
        return (self.encode(self._texts[share]) * weight).sum()

    def drawn(self, batch: Sequence[int], step: int) -> Contest:
        """Return the contest of a global batch at an optimiser step, its negatives drawn."""
        examples = [self.examples[i] for i in batch]
        texts = [text for e in examples for text in self.loss.draw(e.id, e.others, self.seed, step)]
        return contest(examples, [self.base.passage(text) for text in texts])

    def encode(self, texts: Sequence[Ids], look: Look = unseen) -> Tensor:
        """Return the vectors (n_texts, dim) float32 that dot products are taken of."""
        groups = [texts[start : start + GROUP] for start in range(0, len(texts), GROUP)]
        parts = []
        for number, group in enumerate(groups):
            look(number, len(groups))
            parts.append(self.base.embed(self.network, group, self.device))
        pooled = torch.cat(parts)
        return normalize(pooled, dim=1) if self.base.normalize else pooled

    def held_out_loss(self, batches: Collection[dict[str, Any]], look: Look = unseen) -> tuple[float, int]:
        """Return the mean loss of held-out examples and their number; each query among all of its own corpus.

        So it depends on no batch. ``measured`` then holds ``held_out_mrr``, the mean of 1 / rank of the target there,
        equal scores before it.
        """
        if self._held is None:  # of a corpus of 50,000 passages each takes half a second
            self._held = []
            for number, e in enumerate(self.held):
                look(number, len(self.held))
                self._held.append(contest([e], [*e.golds, *map(self.base.passage, e.others)]))
        contests = self._held
        if not contests:
            return 0.0, 0
        was_training = self.network.training
        self.network.eval()
        texts = texts_of(contests)
        low = precision_of(self.settings)[0] == "bfloat16"
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            vectors = self.encode(texts, look)
        self.network.train(was_training)
        row = {text: n for n, text in enumerate(texts)}
        total, ranks = 0.0, []
        for found in contests:
            queries, candidates = (vectors[[row[text] for text in side]] for side in (found.queries, found.candidates))
            scored = scores(queries, candidates, self.loss.scale, found.barred).double()
            targets = torch.tensor(found.targets, device=self.device)
            total += float(cross_entropy(scored, targets, reduction="sum"))
            ranks += (scored >= scored.gather(1, targets[:, None])).sum(1).tolist()
        self.measured = {"held_out_mrr": sum(1 / rank for rank in ranks) / len(ranks)}
        return total / len(contests), len(contests)

    def _loss(self, vectors: Tensor) -> Tensor:
        """Return the summed loss of the step in progress by the vectors of its texts, in float32."""
        row = {text: n for n, text in enumerate(self._texts)}
        queries, candidates = (
            vectors[[row[text] for text in side]] for side in (self._contest.queries, self._contest.candidates)
        )
        with torch.autocast(self.device.type, enabled=False):
            scored = scores(queries, candidates, self.loss.scale, self._contest.barred)
            targets = torch.tensor(self._contest.targets, device=vectors.device)
            return cross_entropy(scored, targets, reduction="sum")

    def _cached(self, passes: int) -> Tensor:
        """Return the gradient of the step's loss with regard to the vectors of its texts (n_texts, dim)."""
        vectors = []
        with torch.no_grad():
            for number in range(passes):
                share, own = self._share(number, passes)
                if own:
                    self._seed(number)
                    vectors.append(self.encode(self._texts[share]))
        torch.clear_autocast_cache()  # its copies of the weights have no gradient
        leaf = torch.cat(vectors).requires_grad_(True)
        loss = self._loss(leaf)
        self.loss_sum += loss.detach()
        return torch.autograd.grad(loss, leaf)[0]

    def _share(self, number: int, passes: int) -> tuple[slice, bool]:
        """Return which texts a pass encodes; False where there are fewer texts than passes: it learns nothing."""
        n = len(self._texts)
        start, end = n * number // passes, n * (number + 1) // passes
        return (slice(start, end), True) if end > start else (slice(0, 1), False)

    def _seed(self, number: int) -> None:
        torch.manual_seed(derive(self.seed, self.done, number, self.global_rank))


def texts_of(contests: Iterable[Contest]) -> list[Ids]:
    """Return all distinct texts of contests, sorted by length: texts of like length are encoded together."""
    found = {text for one in contests for text in (*one.queries, *one.candidates)}
    return sorted(found, key=lambda text: (len(text), text))
