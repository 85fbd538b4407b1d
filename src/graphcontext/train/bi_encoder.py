"""What a bi-encoder learns from: questions, their gold passages in order, and other passages (KGP §4.2, Table 4)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphcontext.data.records import Corpus, Question
from graphcontext.errors import InputError


@dataclass(frozen=True)
class Asked:
    """One example, as text.

    Args:
        id: of the question, with the number of the gold passage where there is an example for each.
        queries: what is asked, one text per hop.
        targets: the gold passage that each of them is to find.
        golds: all gold passages of the question, in order of reasoning.
        others: the other passages of its corpus, each text once, in the corpus' order.
        reason: why it cannot be learnt from.
    """

    id: str
    queries: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    golds: tuple[str, ...] = ()
    others: Sequence[str] = ()
    reason: str | None = None


class Others(Sequence[str]):
    """The passages of a corpus without a question's own, each text once, in their order: a view, no copy.

    Args:
        texts: the corpus' distinct texts.
        left_out: places in it of those that are not among them.
    """

    def __init__(self, texts: Sequence[str], left_out: Iterable[int] = ()) -> None:
        self._texts, self._left_out = texts, sorted(left_out)

    def __len__(self) -> int:
        return len(self._texts) - len(self._left_out)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        for place in self._left_out:
            at += place <= at
        return self._texts[at]


class BiEncoder:
    r"""Contrastive training of one encoder f for questions and passages (DPR: Karpukhin et al. 2020; MDR: Xiong et al.
    2021; KGP §4.2).

    .. math:: L = -\sum_{h=1}^{H} \log
        \frac{\exp(s\, f(q \Vert p_1 \Vert \dots \Vert p_{h-1}) \cdot f(p_h))}
             {\sum_{c \in C} \exp(s\, f(q \Vert p_1 \Vert \dots \Vert p_{h-1}) \cdot f(c))}

    C holds p_h and every passage of the optimiser step, gold or drawn, that is not gold for this question: a passage
    of the same tokens as a gold one counts as gold. One hop (DPR): an example for each gold passage of a question. More
    (MDR): an example for each question, whose first H gold passages are found one after another.

    Args:
        hops: H, 1 and more.
        negatives: passages drawn for each example from the other ones of its own corpus, 0 and more.
        scale: s, above 0: about 20 for unit vectors, 1 for plain dot products.
        question_tokens: most tokens of a question, 8 and more; ``trainer.max_tokens`` of one with passages behind it.
        passage_tokens: most tokens of a passage, 8 and more.
        joiner: between question and passages, as ``retriever=mdr`` and ``agent=mdr`` join them.

    Raises:
        InputError: a value that is not allowed.

    Differs from the paper: its code draws one gold passage of a question for DPR, puts a linear layer and a norm on
    the first token's state, and leaves a question's other gold passages among the negatives. Order matters for
    questions that bridge; for comparisons either order would do, and ours is the data set's.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, hops: int, negatives: int, scale: float, question_tokens: int, passage_tokens: int, joiner: str
    ) -> None:
        least = {"hops": 1, "negatives": 0, "question_tokens": 8, "passage_tokens": 8}
        given = {"hops": hops, "negatives": negatives, "question_tokens": question_tokens}
        for name, value in {**given, "passage_tokens": passage_tokens}.items():
            if value < least[name]:
                raise InputError(f"bi_encoder.{name}={value}; allowed: {least[name]} and more")
        if not 0 < scale < float("inf"):
            raise InputError(f"bi_encoder.scale={scale}; allowed: above 0")
        self.hops, self.negatives, self.scale = hops, negatives, scale
        self.question_tokens, self.passage_tokens, self.joiner = question_tokens, passage_tokens, joiner

    def build(self, questions: Sequence[Question], corpora: Mapping[str, Corpus]) -> list[Asked]:
        """Return the examples of questions, in their order; those that cannot be learnt from with the reason."""
        shown: dict[str, tuple[dict[str, str], list[str], dict[str, int]]] = {}  # questions may share a corpus
        found = []
        for question in questions:
            corpus = corpora[question.corpus_id]
            if corpus.id not in shown:
                texts = {p.id: p.match_text for p in corpus.passages if p.match_text.strip()}
                once = list(dict.fromkeys(texts.values()))
                shown[corpus.id] = texts, once, {text: n for n, text in enumerate(once)}
            found += self._asked(question, *shown[corpus.id])
        return found

    def _asked(self, question: Question, texts: dict[str, str], once: list[str], places: dict[str, int]) -> list[Asked]:
        golds = tuple(dict.fromkeys(texts[support] for support in question.supports if support in texts))
        if len(golds) < self.hops:
            few = "no gold passage" if self.hops == 1 else f"fewer than {self.hops} gold passages"
            return [Asked(question.id, reason=few)]
        others = Others(once, (places[gold] for gold in golds))
        if self.hops == 1:
            numbered = enumerate(golds, 1)
            return [Asked(f"{question.id}/{n}", (question.text,), (gold,), golds, others) for n, gold in numbered]
        queries = tuple(self.joiner.join([question.text, *golds[:hop]]) for hop in range(self.hops))
        return [Asked(question.id, queries, golds[: self.hops], golds, others)]

    def draw(self, example: str, others: Sequence[str], seed: int, step: int) -> list[str]:
        """Return the negatives of an example at an optimiser step; nothing else that is drawn changes them.

        Args:
            example: its id.
            others: the passages of its corpus that are not gold.
            seed: of the training.
            step: from 0.
        """
        return random.Random(f"{seed}/{step}/{example}").sample(others, min(self.negatives, len(others)))
