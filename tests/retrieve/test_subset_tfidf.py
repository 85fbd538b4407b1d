"""TF-IDF among chosen passages: scikit-learn's own, fitted again on each set of candidates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from graphcontext.errors import InputError
from graphcontext.retrieve.subset_tfidf import SubsetTfidf, Vocabulary, order

WORDS = st.sampled_from(["Ada", "ada", "was", "born", "in", "London", "a", "river", "Thames", "x1", "naïve", "été"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


def by_sklearn(text: str, fitted: list[str], scored: list[str]) -> np.ndarray:
    """The released code's way: a vectoriser fitted on the passages, cosine with the text."""
    vectoriser = TfidfVectorizer()
    try:
        vectoriser.fit(fitted)
    except ValueError:  # empty vocabulary
        return np.zeros(len(scored))
    return (vectoriser.transform(scored) @ vectoriser.transform([text]).T).toarray().reshape(-1)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=9), TEXTS, st.data())
def test_scores_are_those_of_scikit_learn_fitted_on_the_candidates(texts, text, data):
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True, max_size=len(texts)))
    candidates = np.array(sorted(chosen), np.int64)
    some = [texts[i] for i in candidates]
    vocabulary = Vocabulary()
    vocabulary.counts(["words of another corpus", "Thames"])  # ids are shared, counts are not

    own = SubsetTfidf(vocabulary, texts).scores(text, candidates)
    expected = by_sklearn(text, some, some) if some else np.zeros(0)
    np.testing.assert_allclose(own, expected, atol=1e-12)
    ranked = order(own, len(some))
    for a, b in itertools.pairwise(ranked):
        assert expected[a] > expected[b] - 1e-12
        assert sorted(some[a].lower().split()) != sorted(some[b].lower().split()) or a < b  # ties by lower index

    whole = SubsetTfidf(vocabulary, texts, fit="corpus")
    expected = by_sklearn(text, texts, texts)
    np.testing.assert_allclose(whole.scores(text), expected, atol=1e-12)
    np.testing.assert_allclose(whole.scores(text, candidates), expected[candidates], atol=1e-12)


def test_a_word_is_weighed_by_how_rare_it_is_among_the_candidates():
    # Among passages 1 and 2 "river" is in both (idf 1), "thames" and "seine" in one each (ln(3/2) + 1 = 1.4055).
    # "thames river" against itself 1; against "seine river": 1 / (1 + 1.4055²) = 0.3361
    texts, asked = ["a long list", "thames river", "seine river", "seine", "seine", "seine"], np.array([1, 2])
    among = SubsetTfidf(Vocabulary(), texts)
    np.testing.assert_allclose(among.scores("thames river", asked), [1, 0.3361], atol=1e-4)
    # Over the corpus: thames ln(7/2) + 1 = 2.2528, river ln(7/3) + 1 = 1.8473, seine ln(7/5) + 1 = 1.3365
    # 1.8473² / (√(2.2528² + 1.8473²) · √(1.3365² + 1.8473²)) = 0.5137
    whole = SubsetTfidf(Vocabulary(), texts, fit="corpus")
    np.testing.assert_allclose(whole.scores("thames river", asked), [1, 0.5137], atol=1e-4)


def test_texts_without_a_word_score_nothing():
    index = SubsetTfidf(Vocabulary(), ["", "a", "? !"])
    assert index.scores("anything at all").tolist() == [0, 0, 0]
    assert index.scores("anything", np.array([], np.int64)).tolist() == []
    assert SubsetTfidf(Vocabulary(), []).scores("anything").tolist() == []
    assert SubsetTfidf(Vocabulary(), ["one word"]).scores("").tolist() == [0]


def test_an_unknown_fit_is_refused():
    with pytest.raises(InputError, match=r"retriever\.fit=corpsu; did you mean corpus"):
        SubsetTfidf(Vocabulary(), [], "corpsu")
