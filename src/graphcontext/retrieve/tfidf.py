"""TF-IDF retrieval by cosine (KGP Table 1 "TF-IDF"), equal to scikit-learn's defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.retrieve import lexical
from graphcontext.retrieve.by_corpus import checked_count


class TFIDF:
    r"""Ranks passages by the cosine of TF-IDF vectors (KGP §4.2, Table 1).

    .. math:: v_t = \mathrm{tf}_t \left(\ln\frac{1 + n}{1 + \mathrm{df}_t} + 1\right), \quad
              \mathrm{score}(q, p) = \frac{v_q \cdot v_p}{\|v_q\| \|v_p\|}

    with document frequencies over the question's own corpus: ``TfidfVectorizer()`` and
    ``cosine_similarity`` of scikit-learn, from inverted lists. Passages without a word of the
    question are not returned.

    Args:
        top_k: passages per question, ≥ 1; KGP takes 30.
        batch_size: questions per sparse product (execution).
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size"})
    needs_graph: ClassVar[bool] = False

    def __init__(self, top_k: int, batch_size: int = 64):
        self.top_k = checked_count("top_k", top_k)
        self.batch_size = checked_count("batch_size", batch_size)
        self._lexical = lexical.Lexical(lexical.words, tfidf_weights, top_k, batch_size)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        return self._lexical.retrieve(questions, corpora)


def tfidf_weights(passages: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Turn the counts of passages (CSR) into TF-IDF rows of length 1, and return what does so for questions."""
    n = passages.shape[0]
    idf = np.log((1 + n) / (1 + lexical.document_frequency(passages))) + 1

    def weigh(counts: Any) -> Any:
        counts.data *= idf[counts.indices]
        lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).reshape(-1))
        counts.data /= np.repeat(lengths, np.diff(counts.indptr))
        return counts

    return weigh(passages), weigh
