"""Short answers: exact match and token F1, as the scripts of SQuAD, HotpotQA and MuSiQue define them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.evaluate.pairs import answer_pairs

MEASURES = ("em", "f1")
VARIANTS = ("hotpotqa", "musique", "squad")
EMPTIED = ("text", "official")
VERDICTS = frozenset(("yes", "no", "noanswer"))
ANSWERED = "failed items left out"  # what a second column beside the mean over all items is of

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Return an answer in lower case without ASCII punctuation, articles and needless blanks (Rajpurkar et al. 2016).

    >>> normalise("The  Who, U.S."), normalise("A"), normalise("C++")
    ('who us', '', 'c')
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def sides(prediction: str, reference: str, emptied: str = "text") -> tuple[str, str]:
    """Return both answers as they are compared.

    >>> sides("B.", "A"), sides("B.", "A", "official"), sides("The Who", "who"), sides("+", "#")
    (('b', 'a'), ('b', ''), ('who', 'who'), ('+', '#'))
    """
    left, right = normalise(prediction), normalise(reference)
    if emptied == "text" and not (left and right):
        both = prediction.lower(), reference.lower()
        bare = [" ".join(text.translate(_PUNCTUATION).split()) for text in both]  # with articles
        left, right = bare if all(bare) else (" ".join(text.split()) for text in both)
    return left, right


def exact_match(prediction: str, reference: str, emptied: str = "text") -> float:
    """Return 1 where the normalised answers are equal, else 0.

    >>> exact_match("the Who!", "Who"), exact_match("A", "A"), exact_match("", "A"), exact_match("", "A", "official")
    (1.0, 1.0, 0.0, 1.0)
    """
    left, right = sides(prediction, reference, emptied)
    return float(left == right)


def token_f1(
    prediction: str, reference: str, variant: str = "hotpotqa", emptied: str = "text"
) -> tuple[float, float, float]:
    """Return F1, precision and recall of the normalised answers' words, counted as often as they occur.

    >>> token_f1("no", "no way"), token_f1("no", "no way", "squad")
    ((0.0, 0.0, 0.0), (0.6666666666666666, 1.0, 0.5))
    """
    left, right = sides(prediction, reference, emptied)
    if variant == "hotpotqa" and left != right and {left, right} & VERDICTS:
        return 0.0, 0.0, 0.0
    words, gold = left.split(), right.split()
    if variant == "musique" and not (words and gold):
        return (float(words == gold),) * 3
    n_common = (Counter(words) & Counter(gold)).total()
    if not n_common:
        return 0.0, 0.0, 0.0
    precision, recall = n_common / len(words), n_common / len(gold)
    return 2 * precision * recall / (precision + recall), precision, recall


class ShortAnswer:
    r"""Exact match or token F1 of short answers (KGP Table 1), equal to the data sets' official scripts.

    With N(x) the normalised answer (lower case, no ASCII punctuation, no articles) and W(x) its bag of words:

    .. math:: \text{em} = [N(a) = N(g)], \qquad
              \text{f1} = 2PR / (P + R), \quad P = |W(a) \cap W(g)| / |W(a)|, \; R = |W(a) \cap W(g)| / |W(g)|

    Several references (aliases in MuSiQue, IIRC's answers): the best counts, P and R are of that one. ``hotpotqa``
    gives F1 0 where one side is ``yes``, ``no`` or ``noanswer`` and the other is not the same; ``squad`` (v1.1) does
    not; ``musique`` does not either, and gives F1 1 where both sides are empty, 0 where one is.

    Emits ``em``, or ``f1`` with ``f1_p`` and ``f1_r``, and beside each its second column ``em_answered`` or
    ``f1_answered``: the same value, and none for a failed item. So the mean of ``em`` is over all items, with 0 for
    those that failed, and that of ``em_answered`` over the others, which is the paper's rule.

    Normalisation empties some answers. Officially "A" equals every other answer that it empties. Here articles are kept
    where it empties a side, and punctuation too where nothing else is left. It also makes "C++" and "C#" one answer:
    that is kept, since numbers would no longer be those of the official scripts. What both give, em / f1:

    ============  ==========  =======  =========================================
    gold          prediction  ours     official
    ============  ==========  =======  =========================================
    A             A           1 / 1    1 / 0 (``musique`` 1 / 1)
    A             a.          1 / 1    1 / 0 (``musique`` 1 / 1)
    A             B           0 / 0    0 / 0
    ++            #           0 / 0    1 / 0 (``musique`` 1 / 1)
    A             (nothing)   0 / 0    1 / 0 (``musique`` 1 / 1)
    A             the         0 / 0    1 / 0 (``musique`` 1 / 1)
    The Who       who         1 / 1    1 / 1
    The The       the         0 / .67  1 / 0 (``musique`` 1 / 1)
    C++           C#          1 / 1    1 / 1
    5%            $5          1 / 1    1 / 1
    Beyoncé       Beyonce     0 / 0    0 / 0
    ‘x’           x           0 / 0    0 / 0 (curly quotes are not ASCII)
    ============  ==========  =======  =========================================

    Args:
        measure: ``em`` or ``f1``.
        variant: ``hotpotqa``, ``musique`` or ``squad``.
        emptied: what is compared where normalisation empties a side: ``text``, what is left of both with their
            articles, or ``official``, the normalised ones all the same.

    Raises:
        InputError: a name that is unknown.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, measure: str, variant: str = "hotpotqa", emptied: str = "text") -> None:
        for key, value, allowed in (
            ("measure", measure, MEASURES),
            ("variant", variant, VARIANTS),
            ("emptied", emptied, EMPTIED),
        ):
            if value not in allowed:
                raise InputError(f"metric {key} {value!r} is unknown{did_you_mean(str(value), allowed)}")
        self.measure, self.variant, self.emptied = measure, variant, emptied

    @property
    def signature(self) -> str:
        """Measure, script and what an emptied side is compared as: ``f1|hotpotqa|emptied answers as text``."""
        compared = "as text" if self.emptied == "text" else "equal"
        return f"{self.measure}|{self.variant}|emptied answers {compared}"

    @property
    def columns(self) -> dict[str, str]:
        """The second column, and what it is of."""
        return {f"{self.measure}_answered": ANSWERED}

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float | None]]:
        """Score each prediction against its question's references; a failed one scores 0, none in the second column.

        Raises:
            InputError: there is not one prediction per question, in the same order.
        """
        rows = []
        for pair, prediction in zip(answer_pairs(questions, predictions), predictions, strict=True):
            is_failed = prediction.status == "failed"
            row = self._best(pair.prediction, () if is_failed else pair.references)
            rows.append(row | {f"{self.measure}_answered": None if is_failed else row[self.measure]})
        return rows

    def _best(self, prediction: str, references: Sequence[str]) -> dict[str, float | None]:
        """Return the values of the best reference, 0 where there is none."""
        if self.measure == "em":
            return {"em": max((exact_match(prediction, r, self.emptied) for r in references), default=0.0)}
        found = [token_f1(prediction, r, self.variant, self.emptied) for r in references]
        best = max(found, key=lambda values: values[0], default=(0.0, 0.0, 0.0))
        return dict(zip(("f1", "f1_p", "f1_r"), best, strict=True))
