"""Bag-of-words retrieval as one sparse product: words, counts, and the top k of queries × passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphcontext.data.records import Corpus, Question, Ranking
from graphcontext.retrieve.by_corpus import best, by_corpus, empty, scored

_WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's default token: two or more word characters
NO_MATCH = "no word of the question occurs in the corpus"

# counts of passages and of questions → their weights, all CSR over one vocabulary
Weighting = Callable[[Any, Any], tuple[Any, Any]]


def words(text: str) -> list[str]:
    """Return the lower-cased words of two or more characters, as scikit-learn's vectorisers do by default."""
    return _WORD.findall(text.lower())


def blanks(text: str) -> list[str]:
    """Return the text split on white space, case kept (the tokens of KGP's BM25 row)."""
    return text.split()


def count(tokens: Sequence[Sequence[str]], vocabulary: dict[str, int], grow: bool) -> Any:
    """Return term counts, CSR (n_texts, n_terms) float64; unknown terms are added if ``grow``."""
    from scipy.sparse import csr_array

    columns: list[int] = []
    indptr = [0]
    for text in tokens:
        if grow:
            columns.extend(vocabulary.setdefault(token, len(vocabulary)) for token in text)
        else:
            columns.extend(vocabulary[token] for token in text if token in vocabulary)
        indptr.append(len(columns))
    shape = (len(tokens), len(vocabulary))
    counts = csr_array((np.ones(len(columns)), np.array(columns, np.int32), indptr), shape=shape)
    counts.sum_duplicates()
    return counts


def rank(
    questions: Sequence[Question],
    corpora: dict[str, Corpus],
    tokenise: Callable[[str], list[str]],
    weigh: Weighting,
    top_k: int,
    batch_size: int,
) -> list[Ranking]:
    """Rank each question's corpus by the product of weighted question and passage vectors.

    Only passages with a positive score are returned; a question with none has status ``empty``.
    """
    rankings: list[Ranking | None] = [None] * len(questions)
    for corpus, positions, asked in by_corpus(questions, corpora):
        vocabulary: dict[str, int] = {}
        passages = count([tokenise(p.match_text) for p in corpus.passages], vocabulary, grow=True)
        queries = count([tokenise(q.text) for q in asked], vocabulary, grow=False)
        passages, queries = weigh(passages, queries)
        by_term = passages.T.tocsr()
        for start in range(0, len(asked), batch_size):
            scores = queries[start : start + batch_size] @ by_term
            scores.sort_indices()
            for row, question in enumerate(asked[start : start + batch_size]):
                cells = slice(scores.indptr[row], scores.indptr[row + 1])
                indices, values = best(scores.data[cells], top_k, scores.indices[cells])
                found = Ranking(question.id, scored(corpus, indices, values))
                if not len(indices):
                    found = empty(question, NO_MATCH) if corpus.passages else empty(question)
                rankings[positions[start + row]] = found
    return [r for r in rankings if r is not None]


def document_frequency(counts: Any) -> np.ndarray:
    """Return in how many rows each term occurs (n_terms,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1])
