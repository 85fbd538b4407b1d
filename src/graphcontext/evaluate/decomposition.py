"""Where an answer went wrong: the gold is not in the corpus, not retrieved, cut from the context, or not used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from graphcontext.data.records import Context, Corpus, Passage, Prediction, Question, Ranking, content_id
from graphcontext.errors import InputError
from graphcontext.evaluate.pairs import answer_pairs
from graphcontext.retrieve.lexical import count, words

KINDS = ("not_in_corpus", "not_retrieved", "cut", "wrong")
LABELS = {
    "not_in_corpus": "gold not in corpus",
    "not_retrieved": "not retrieved",
    "cut": "cut from context",
    "wrong": "in context but wrong",
}
_GOLD: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}  # rows of one table share their questions
_ROWS = 256  # gold answers per product with the pool


class ErrorDecomposition:
    r"""Share of questions that are answered, and for the others the first stage at which each was lost.

    The gold passages of a question are its ``supports``; where a data set names none, they are the passages
    whose accepted answer (else text) says what the gold answer says. Two texts a, b are taken to say the same
    where the Dice coefficient of their content words W (two characters or more, without stop words) reaches
    ``overlap``:

    .. math:: 2 |W(a) \cap W(b)| / (|W(a)| + |W(b)|)

    A question is answered where its answer says what a gold answer says. For one that is not, the first that
    applies:

    * ``not_in_corpus``: no gold passage exists (of ``supports``: one is missing);
    * ``not_retrieved``: the ranking holds none of them (of ``supports``: not all);
    * ``cut``: the context shows none of those (not all): the budget, or the enhancer, left them out;
    * ``wrong``: shown, and not answered all the same.

    Emits ``answered`` (1 or 0), ``lost_KIND`` for each kind (of one question exactly one of these is 1; of a
    failed prediction none) and ``gold_passages``, how many there are: of passages that match by chance there
    would be many.

    Args:
        overlap: the coefficient in (0, 1] from which two texts are taken to say the same. Ours: no paper gives
            such a bound. At .3, of the half of a pool that is farthest from a question by TF-IDF, at most 7 in
            10,000 passages count as its gold (four forums, pools of 111 to 1,042). A bound on all words
            (ROUGE-1 F ≥ .3) counts up to 8 in 100: it measures stop words and length.

    Raises:
        InputError: ``overlap`` outside (0, 1].
    """

    version: ClassVar[int] = 2  # 2: content words
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_corpora: ClassVar[bool] = True

    def __init__(self, overlap: float) -> None:
        if not 0 < overlap <= 1:
            raise InputError(f"metric.answered.overlap={overlap}; allowed: above 0, up to 1")
        self.overlap = overlap

    @property
    def signature(self) -> str:
        """The bound that decides what counts as the same, as ``answered|dice of content words >= 0.3``."""
        without = "gold passages likewise, where no supports are given"
        return f"answered|dice of content words >= {self.overlap:g} ({without})"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
        corpora: dict[str, Corpus],
    ) -> list[dict[str, float]]:
        """Name the error of each question, by index."""
        gold = gold_passages(questions, corpora, self.overlap)
        known = {c: {p.id for p in corpora[c].passages} for c in {q.corpus_id for q in questions}}
        rows = []
        pairs = answer_pairs(questions, predictions)
        for question, pair, prediction, ranking, context in zip(
            questions, pairs, predictions, rankings, contexts, strict=True
        ):
            is_answered = bool(same(pair.references, [pair.prediction], self.overlap).any())
            wanted = gold[question.id]
            kind = None if is_answered else _first(question, wanted, known[question.corpus_id], ranking, context)
            row = {"answered": float(is_answered)} | {f"lost_{k}": float(k == kind) for k in KINDS}
            row = dict.fromkeys(row, 0.0) if prediction.status == "failed" else row
            rows.append(row | {"gold_passages": float(len(wanted))})
        return rows


def gold_passages(
    questions: Sequence[Question], corpora: dict[str, Corpus], overlap: float
) -> dict[str, tuple[str, ...]]:
    """Return question id → ids of its gold passages: its supports, else those that say what a gold answer says."""
    asked = [content_id(q.id, q.corpus_id, *q.references, "supports", *q.supports) for q in questions]
    name = (str(overlap), *asked)
    if name not in _GOLD:
        found = {q.id: q.supports for q in questions}
        for corpus_id in dict.fromkeys(q.corpus_id for q in questions if not q.supports):
            passages = corpora[corpus_id].passages
            asking = [q for q in questions if q.corpus_id == corpus_id and not q.supports]
            gold = [(q.id, text) for q in asking for text in q.references]
            alike: dict[str, set[int]] = {q.id: set() for q in asking}
            for (asked_id, _), row in zip(gold, same([t for _, t in gold], [_said(p) for p in passages], overlap)):
                alike[asked_id] |= set(np.flatnonzero(row).tolist())
            found |= {i: tuple(passages[k].id for k in sorted(held)) for i, held in alike.items()}
        _GOLD.clear()
        _GOLD[name] = found
    return _GOLD[name]


def same(a: Sequence[str], b: Sequence[str], overlap: float) -> np.ndarray:
    """Tell which texts say the same, bool (len(a), len(b)): Dice coefficient of content words ≥ ``overlap``.

    >>> same(["list the open ports"], ["It lists open ports.", "the"], overlap=0.6).tolist()  # 2·2/(3+3)
    [[True, False]]
    """
    vocabulary: dict[str, int] = {}
    found = [count([sorted(set(content_words(t))) for t in side], vocabulary, grow=True) for side in (a, b)]
    for counts in found:
        counts.resize(counts.shape[0], len(vocabulary))
    (left, right), sizes = found, [counts.sum(axis=1) for counts in found]
    is_same = np.zeros((len(a), len(b)), dtype=bool)
    for start in range(0, len(a), _ROWS):
        rows = slice(start, start + _ROWS)
        total = sizes[0][rows, None] + sizes[1][None, :]
        is_same[rows] = (2 * (left[rows] @ right.T).toarray() >= overlap * total) & (total > 0)
    return is_same


def content_words(text: str) -> list[str]:
    """Return the words of a text in lower case without English stop words (spaCy's list).

    >>> content_words("It is the kernel's table of open ports")
    ['kernel', 'table', 'open', 'ports']
    """
    from spacy.lang.en.stop_words import STOP_WORDS

    return [word for word in words(text) if word not in STOP_WORDS]


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
