"""Several data sets read as one, each question with the corpus it has in its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.component import fingerprint, locate
from graphcontext.data import splits
from graphcontext.data.loaded import Loaded
from graphcontext.data.records import Question
from graphcontext.errors import InputError


class Together:
    """Read the same side of several data sets; what a model is trained on in KGP (§5: HotpotQA and MuSiQue).

    A question keeps its id and its corpus.

    Args:
        name: of the whole.
        parts: name → data set; what each of them selects is left to ``limit`` and ``seed`` here.
        limit: number of scored questions of all parts together, None for all.
        seed: the only seed that touches which questions are scored.
        side: the scored side: ``train``, ``validation`` or ``test``.
        plan: assumed sizes for planning before the data is read.

    Raises:
        InputError: a value is not allowed, or there is no part.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"plan", "parts"})  # of the parts, identity says what counts
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})

    def __init__(
        self, name: str, parts: dict[str, Any], limit: int | None, seed: int, side: str, plan: dict[str, Any] | None
    ) -> None:
        splits.check_side(side)
        splits.check_limit(limit)
        if not parts:
            raise InputError("dataset.parts names no data set")
        self.name, self.parts, self.limit, self.seed, self.side, self.plan = name, parts, limit, seed, side, plan

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return what each part is, read from this side, whatever it would select alone.

        Raises:
            MissingDataError: the files of a part are not on this machine.
        """
        nodes = {name: {**node, "side": config["side"]} for name, node in sorted(config["parts"].items())}
        selections = {name: getattr(locate(node["_target_"]), "selection", frozenset()) for name, node in nodes.items()}
        return {"parts": {name: fingerprint(node, selections[name]) for name, node in nodes.items()}}

    @staticmethod
    def selects_first(config: dict[str, Any]) -> bool:
        """Tell whether only the corpora of scored questions are built: where a part does so."""
        classes = [(locate(node["_target_"]), node) for node in config["parts"].values()]
        return any(hasattr(cls, "selects_first") and cls.selects_first(node) for cls, node in classes)

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order."""
        return splits.select(questions, self.limit, self.seed)

    def load(self, side: str | None = None) -> Loaded:
        """Read one side of every part.

        Raises:
            MissingDataError: the files of a part are not on this machine.
            InputError: what is wrong in one of them.
        """
        for part in self.parts.values():  # each draws as many as all may hold: the draw of all is among them
            part.limit, part.seed = self.limit, self.seed
        found = {name: part.load(side or self.side) for name, part in sorted(self.parts.items())}
        questions = [question for part in found.values() for question in part.questions]
        twice = [name for name, n in Counter(question.id for question in questions).items() if n > 1]
        if twice:
            raise InputError(f"dataset={self.name}: {len(twice)} ids stand in several parts, such as {twice[0]}")
        corpora = {corpus_id: corpus for part in found.values() for corpus_id, corpus in part.corpora.items()}
        return Loaded(splits.select(questions, None, 0), corpora, _card(self.name, found))


def _card(name: str, found: dict[str, Loaded]) -> dict[str, Any]:
    """Return counts that are sums over the parts, means weighed by them, and each part's card."""
    cards = [part.card for part in found.values()]
    total = {key: sum(card[key] for card in cards) for key in ("kept", "pool", "scored_candidates", "answers_in_pool")}
    words = {
        kind: _pooled([(card["words"][kind], card["scored_candidates"]) for card in cards])
        for kind in cards[0]["words"]
        if all(kind in card["words"] for card in cards)
    }
    facts = {"name": name, "license": "; ".join(dict.fromkeys(str(card.get("license", "")) for card in cards))}
    counts = {f"{key}, {part}": n for part, known in found.items() for key, n in known.card.get("counts", {}).items()}
    return {**facts, **total, "counts": counts, "words": words, "parts": {part: x.card for part, x in found.items()}}


def _pooled(lengths: list[tuple[dict[str, float], int]]) -> dict[str, float]:
    """Return the mean of means by number of questions, and the extremes; medians have no sum and are left out."""
    n = max(1, sum(count for _, count in lengths))
    mean = sum(known["mean"] * count for known, count in lengths) / n
    return {"mean": mean} | {key: max(known[key] for known, _ in lengths) for key in ("max",) if key in lengths[0][0]}
