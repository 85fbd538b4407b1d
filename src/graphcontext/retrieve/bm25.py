"""BM25 retrieval (KGP Table 1 "BM25"), in the Okapi and the Lucene variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.retrieve import lexical
from graphcontext.retrieve.by_corpus import checked_count

VARIANTS = ("lucene", "okapi")
TOKENS = {"words": lexical.words, "blanks": lexical.blanks}
_IDF_FLOOR = 0.25  # rank_bm25's epsilon


class BM25:
    r"""Ranks passages by BM25 (KGP §4.2, Table 1).

    .. math:: \mathrm{score}(q, p) = \sum_{t \in q} \mathrm{idf}_t \,
              \frac{c\,\mathrm{tf}_t}{\mathrm{tf}_t + k_1 (1 - b + b\,|p| / \overline{|p|})}

    ``lucene``: c = 1, idf = ln(1 + (n − df + ½)/(df + ½)), never negative. ``okapi`` as the package
    rank_bm25 has it: c = k₁ + 1, idf = ln((n − df + ½)/(df + ½)), a negative one replaced by ¼ of the mean
    idf. A word that the question holds twice counts twice. Passages without a positive score are not
    returned.

    Args:
        top_k: passages per question, ≥ 1; KGP takes 30.
        variant: ``lucene`` or ``okapi``; KGP's code uses ``okapi``.
        k1: saturation of the term frequency, ≥ 0.
        b: length normalisation in [0, 1].
        tokens: ``words`` (lower-cased, two or more characters) or ``blanks`` (split at white space, case
            kept, as KGP's code does).
        batch_size: questions per sparse product (execution).
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size"})
    needs_graph: ClassVar[bool] = False

    def __init__(
        self,
        top_k: int,
        variant: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        tokens: str = "words",
        batch_size: int = 64,
    ):
        if variant not in VARIANTS:
            raise InputError(f"retriever.variant={variant}{did_you_mean(str(variant), VARIANTS)}")
        if tokens not in TOKENS:
            raise InputError(f"retriever.tokens={tokens}{did_you_mean(str(tokens), TOKENS)}")
        if not k1 >= 0:
            raise InputError(f"retriever.k1={k1}: allowed is at least 0")
        if not 0 <= b <= 1:
            raise InputError(f"retriever.b={b}: allowed is 0 to 1")
        self.top_k = checked_count("top_k", top_k)
        self.variant, self.k1, self.b, self.tokens = variant, float(k1), float(b), tokens
        self.batch_size = checked_count("batch_size", batch_size)
        self._lexical = lexical.Lexical(TOKENS[tokens], self._weigh, top_k, batch_size)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        return self._lexical.retrieve(questions, corpora)

    def _weigh(self, passages: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Turn the passages' counts into BM25 weights; the questions keep their counts."""
        lengths = np.asarray(passages.sum(axis=1)).reshape(-1)
        if not lengths.sum():
            return passages, _as_they_are
        idf = self._idf(passages.shape[0], lexical.document_frequency(passages))
        slack = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        tf = passages.data
        gain = self.k1 + 1 if self.variant == "okapi" else 1.0
        passages.data = idf[passages.indices] * gain * tf / (tf + np.repeat(slack, np.diff(passages.indptr)))
        return passages, _as_they_are

    def _idf(self, n: int, df: np.ndarray) -> np.ndarray:
        odds = (n - df + 0.5) / (df + 0.5)
        if self.variant == "lucene":
            return np.log1p(odds)
        idf = np.log(odds)
        return np.where(idf < 0, _IDF_FLOOR * idf.mean(), idf)


def _as_they_are(counts: Any) -> Any:
    return counts
