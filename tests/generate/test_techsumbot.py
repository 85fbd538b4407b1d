"""TechSumBot: useful, central, not redundant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Answer, Context, Corpus, Passage, Question, Unit
from graphcontext.errors import InputError
from graphcontext.generate.techsumbot import TechSumBot, centrality

ANSWERS = (
    Answer("Use ss to list listening ports. Use ss to list the listening ports! Ok.", 4),
    Answer("The ss command prints process names. Bananas grow in warm places.", 1),
)
CORPUS = Corpus.of(
    [
        Passage("p", "ports", "list ports", "", answers=ANSWERS),
        Passage("x", "mount", "mount disks", "", answers=(Answer("use mount"),)),
    ]
)
QUESTION = Question("q", "list listening ports with ss", CORPUS.id, ("gold",))
CONTEXT = Context("q", (Unit("p", "p", "p"),))


def summary(**options) -> list[str]:
    (prediction,) = TechSumBot(**options).generate([QUESTION], [CONTEXT], {CORPUS.id: CORPUS})
    return prediction.prediction.splitlines()


def test_a_sentence_that_says_the_same_is_left_out():
    found = summary(n_sentences=3)
    assert "Use ss to list listening ports." in found
    assert "Use ss to list the listening ports!" not in found  # the same content words: cosine 1
    assert "Ok." not in found  # fewer than three content words


def test_only_useful_sentences_are_ranked():
    assert not any("Bananas" in s for s in summary(n_useful=3, n_sentences=3))
    assert len(summary(n_useful=1, n_sentences=1)) == 1


def test_the_middle_of_a_star_is_central():
    # 0 resembles 1 and 2, which do not resemble one another.
    # c0 = .05 + .85 (c1 + c2), c1 = c2 = .05 + .85 c0 / 2, sum 1: c0 = .135/.2775 = .4865, c1 = c2 = .2568
    star = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]])
    assert centrality(star, 0.85) == pytest.approx([0.4865, 0.2568, 0.2568], abs=1e-4)


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_centrality_is_a_distribution(n, seed):
    vectors = np.random.default_rng(seed).normal(size=(n, 3)) * (np.arange(n) % 2)[:, None]
    scores = centrality(vectors @ vectors.T, 0.85)
    assert scores.sum() == pytest.approx(1)
    assert (scores > 0).all()


def test_t15_no_thread_is_an_empty_prediction():
    (prediction,) = TechSumBot().generate([QUESTION], [Context("q", ())], {CORPUS.id: CORPUS})
    assert (prediction.status, prediction.prediction) == ("empty", "")


@pytest.mark.parametrize("arguments", [{"n_sentences": 0}, {"redundancy": 2}, {"damping": 1.0}])
def test_wrong_values_are_named(arguments):
    with pytest.raises(InputError, match="allowed"):
        TechSumBot(**arguments)
