"""Where an answer went wrong: the gold is not in the corpus, not retrieved, cut from the context, or not used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Prediction, Question, Ranking, content_id
from graphcontext.errors import InputError
from graphcontext.evaluate.pairs import answer_pairs

KINDS = ("not_in_corpus", "not_retrieved", "cut", "wrong")
LABELS = {
    "not_in_corpus": "gold not in corpus",
    "not_retrieved": "not retrieved",
    "cut": "cut from context",
    "wrong": "in context but wrong",
}
_GOLD: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}  # rows of one table share their questions


class ErrorDecomposition:
    """Share of questions that are answered right, and for the others the first stage at which each was lost.

    The gold passages of a question are its ``supports``; where a data set names none, they are the passages
    whose accepted answer (else text) says what the gold answer says: ROUGE-1 F of the two ≥ ``overlap``. An
    answer is right where its own ROUGE-1 F with a gold answer is ≥ ``overlap``. For an answer that is not,
    the first that applies:

    * ``not_in_corpus``: no gold passage exists (of ``supports``: one is missing);
    * ``not_retrieved``: the ranking holds none of them (of ``supports``: not all);
    * ``cut``: the context shows none of those (not all): the budget, or the enhancer, left them out;
    * ``wrong``: shown, and not answered right all the same.

    Emits ``right`` (1 or 0) and ``lost_KIND`` for each kind: of one question exactly one of them is 1. A failed
    prediction is none of them (all 0).

    Args:
        overlap: the ROUGE-1 F in (0, 1] from which two texts are taken to say the same. Ours: no paper gives
            such a bound. At .3 about three of four forum questions have a gold passage among 100 to 200.

    Raises:
        InputError: ``overlap`` outside (0, 1].
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_corpora: ClassVar[bool] = True

    def __init__(self, overlap: float) -> None:
        if not 0 < overlap <= 1:
            raise InputError(f"metric.right.overlap={overlap}; allowed: above 0, up to 1")
        self.overlap = overlap

    @property
    def signature(self) -> str:
        """The bound that decides what counts as the same, as ``right|rouge1 f >= 0.3``."""
        return f"right|rouge1 f >= {self.overlap:g} (gold passages likewise, where no supports are given)"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
        corpora: dict[str, Corpus],
    ) -> list[dict[str, float]]:
        """Name the error of each question, by index."""
        same = _Same(self.overlap)
        gold = gold_passages(questions, corpora, self.overlap, same)
        known = {c: {p.id for p in corpora[c].passages} for c in {q.corpus_id for q in questions}}
        rows = []
        pairs = answer_pairs(questions, predictions)
        for question, pair, ranking, context in zip(questions, pairs, rankings, contexts, strict=True):
            right = any(same(reference, pair.prediction) for reference in pair.references)
            wanted = gold[question.id]
            kind = None if right else _first(question, wanted, known[question.corpus_id], ranking, context)
            rows.append({"right": float(right)} | {f"lost_{k}": float(k == kind) for k in KINDS})
        return rows


def gold_passages(
    questions: Sequence[Question], corpora: dict[str, Corpus], overlap: float, same: Any = None
) -> dict[str, tuple[str, ...]]:
    """Return question id → ids of its gold passages: its supports, else those whose answer overlaps a gold answer."""
    asked = [content_id(q.id, q.corpus_id, *q.references, "supports", *q.supports) for q in questions]
    name = (str(overlap), *asked)
    if name not in _GOLD:
        same = same or _Same(overlap)
        found: dict[str, tuple[str, ...]] = {}
        for question in questions:
            passages = () if question.supports else corpora[question.corpus_id].passages
            alike = [p.id for p in passages if any(same(r, _said(p)) for r in question.references)]
            found[question.id] = question.supports or tuple(alike)
        _GOLD.clear()
        _GOLD[name] = found
    return _GOLD[name]


def _first(question: Question, wanted: Sequence[str], known: set[str], ranking: Ranking, context: Context) -> str:
    """Return the first stage that lost the gold passages; all supports are needed, of other gold any one."""
    enough = all if question.supports else any
    ranked = {hit.id for hit in ranking.passages}
    shown = {unit.source for unit in context.units}
    for kind, held in (("not_in_corpus", known), ("not_retrieved", ranked), ("cut", shown)):
        if not enough(passage in held for passage in wanted):
            return kind
    return "wrong"


def _said(passage: Passage) -> str:
    """Return a passage's accepted answer, else its text."""
    return next((answer.text for answer in passage.answers if answer.accepted), passage.context_text)


class _Same:
    """Tells whether two texts say the same: ROUGE-1 F of at least ``overlap``."""

    def __init__(self, overlap: float) -> None:
        from rouge_score_rs import RougeScorer

        self.overlap, self.scorer = overlap, RougeScorer(["rouge1"], use_stemmer=False)

    def __call__(self, gold: str, text: str) -> bool:
        if not gold.strip() or not text.strip():
            return False
        return float(self.scorer.score(gold, text)["rouge1"].fmeasure) >= self.overlap
