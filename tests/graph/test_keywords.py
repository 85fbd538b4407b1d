"""The keyword graph of KGP."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from graphcontext.data.records import Corpus, Passage
from graphcontext.errors import InputError
from graphcontext.graph import keywords
from graphcontext.graph.keywords import TfidfKeywords, count_terms
from graphcontext.graph.noun_text import stop_words
from tests.graph.passages import Nouns, check_simple, corpus, double_loop, edges, pairs

PLAIN = sorted(word for word in stop_words() if word.isalpha())  # the others are no word of scikit-learn's


def selected(texts: list[str], n_kw: int, ngram_max: int) -> list[tuple[set[str], set[str]]]:
    """Return (all terms, chosen terms) of each text by scikit-learn, equal weights by column."""
    vectoriser = TfidfVectorizer(stop_words=PLAIN, ngram_range=(1, ngram_max))
    try:
        weights = vectoriser.fit_transform(texts).toarray()
    except ValueError:  # empty vocabulary
        return [(set(), set()) for _ in texts]
    names = vectoriser.get_feature_names_out()
    found = []
    for row in weights:
        best = [t for t in np.argsort(-np.round(row, 12), kind="stable")[:n_kw] if row[t] > 0]
        found.append(({names[t] for t in np.flatnonzero(row)}, {names[t] for t in best}))
    return found


@settings(max_examples=60, deadline=None)
@given(pairs, st.integers(1, 6), st.integers(1, 4))
def test_edges_equal_the_double_loop_over_scikit_learns_terms(passages, n_kw, ngram_max):
    built = TfidfKeywords(None, "raw", n_kw, ngram_max).build(corpus(*passages))
    check_simple(built, len(passages))
    kept = [i for i, (_, text) in enumerate(passages) if text.strip()]
    chosen = selected([passages[i][1] for i in kept], n_kw, ngram_max) if kept else []
    union = set().union(*(best for _, best in chosen))
    keys = [set() for _ in passages]
    for i, (terms, _) in zip(kept, chosen, strict=True):
        title = " ".join(passages[i][0].lower().split())
        keys[i] = {("term", t) for t in terms & union} | ({("title", title)} if title else set())
    assert edges(built) == double_loop(keys)
    assert built.facts["n_keywords"] == len(union)


def test_golden_three_passages_by_hand():
    # n = 3. Words without stop words: 0 "river bank", 1 "river boat river", 2 "boat race". One keyword each, runs of 1.
    # n_t: river 2, bank 1, boat 2, race 1; weight = count · (1 + ln(4 / (1 + n_t))): 1.288 at n_t = 2, 1.693 at 1.
    # 0: bank 1.693 > river 1.288. 1: river 2 · 1.288 > boat. 2: race > boat. Union: bank, race, river → edge 0–1.
    three = corpus(("A", "The river bank"), ("B", "river, boat and river"), ("C", "a boat race"))
    built = TfidfKeywords(None, "raw", n_kw=1, ngram_max=1).build(three)
    assert edges(built) == [(0, 1), (1, 0)]
    assert built.facts["n_keywords"] == 3
    assert built.facts["density"] == pytest.approx(1 / 3)
    # Two keywords each: boat is one of 1 and 2 as well → 1–2.
    assert edges(TfidfKeywords(None, "raw", n_kw=2, ngram_max=1).build(three)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    # As shipped: the keywords of passage 0 alone; bank is of no other passage.
    assert edges(TfidfKeywords(None, "raw", 1, 1, compat_first_row_keywords=True).build(three)) == []
    json.dumps(built.facts)


def test_passages_of_one_title_are_joined_whatever_its_case():
    titled = corpus(("Ed Wood", "one"), ("ed  wood", "two"), ("", "three"), ("", "four"), ("Ed Wood", " "))
    assert edges(TfidfKeywords(None, "raw").build(titled)) == [(0, 1), (1, 0)]


def test_as_shipped_a_title_counts_only_as_it_is_written():
    # "ed wood" stands so in texts 1 and 2, "Ed Wood" with its capitals in none; the keywords of text 0 are in no other.
    titled = [("Ed Wood", "alpha"), ("ed wood", "a film of Ed Wood"), ("Ed Wood", "ed wood again"), ("x", "beta")]
    built = TfidfKeywords(None, "raw", compat_first_row_keywords=True).build(corpus(*titled))
    assert edges(built) == [(1, 2), (2, 1)]
    assert edges(TfidfKeywords(None, "raw", ngram_max=1, compat_first_row_keywords=True).build(corpus(*titled))) == []


def test_as_shipped_many_passages_have_no_edge_where_the_first_says_something_of_its_own():
    # 700 passages of common words: the first one's ten best terms are its own runs, none of them in another passage.
    rng = np.random.default_rng(0)
    words = [f"word{n}" for n in range(40)]
    texts = ["unus duo tres quattuor quinque word0 word1", *(" ".join(rng.choice(words, 12)) for _ in range(699))]
    many = Corpus.of([Passage(f"p{n}", f"Title {n % 70}", t, t) for n, t in enumerate(texts)])
    shipped = TfidfKeywords(None, "raw", n_kw=10, compat_first_row_keywords=True).build(many)
    assert (shipped.facts["n_keywords"], shipped.facts["n_edges"], shipped.facts["isolated"]) == (10, 0, 700)
    assert TfidfKeywords(None, "raw", n_kw=10).build(many).facts["n_edges"] > 100_000


@pytest.mark.parametrize("passages", [[], [("A", "a lake")], [("A", "a lake")] * 3, [("A", "")], [("", "of the")] * 2])
def test_t30_small_corpora(passages):
    built = TfidfKeywords(None, "raw").build(corpus(*passages))
    check_simple(built, len(passages))
    n = len(passages) if any(text for _, text in passages) and passages[0][0] else 0
    assert built.facts["n_edges"] == n * (n - 1) // 2  # equal passages are as many nodes


def test_keywords_are_taken_from_the_nouns_and_tagged_for_all_corpora_at_once():
    nouns = Nouns()
    two = {
        c.id: c for c in (corpus(("A", "big lake"), ("B", "big lake big")), corpus(("A", "a big dog"), ("B", "big")))
    }
    builder = TfidfKeywords(nouns)
    builder.begin(two)
    assert nouns.begun == [sorted(two)]
    assert [edges(builder.build(c)) for c in two.values()] == [[(0, 1), (1, 0)], []]  # lake; big is too short
    raw = TfidfKeywords(nouns, text="raw")
    raw.begin(two)
    assert len(nouns.begun) == 1


def test_the_numbers_of_terms_do_not_depend_on_how_codes_are_packed(monkeypatch):
    rng = np.random.default_rng(1)
    texts = [[f"w{n}" for n in rng.integers(0, 30, 20)] for _ in range(30)]
    plain = count_terms(texts, 4)
    monkeypatch.setattr(keywords, "_LARGEST", 500)
    packed = count_terms(texts, 4)
    for name in ("rows", "terms", "counts"):
        np.testing.assert_array_equal(getattr(packed, name), getattr(plain, name))
    assert packed.n == plain.n == len({tuple(t[i : i + k]) for t in texts for k in range(1, 5) for i in range(21 - k)})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"n_kw": 0}, "graph.n_kw=0"), ({"ngram_max": True}, "graph.ngram_max"), ({"text": "nouns"}, "did you mean noun")],
)
def test_values_that_are_not_allowed(arguments, said):
    with pytest.raises(InputError, match=said):
        TfidfKeywords(None, **arguments)
