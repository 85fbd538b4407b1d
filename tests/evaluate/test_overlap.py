"""ROUGE equals Google's rouge-score: golden pairs, random text, several references, empty sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError
from graphcontext.evaluate.overlap import VARIANTS, Rouge

# Made by rouge_score 0.1.2: RougeScorer([variant]).score(reference, prediction)[variant], as (P, R, F).
GOLDEN = {
    ("rouge1", "A B C D E F C", "A C B"): (3 / 7, 1.0, 0.6),
    ("rouge2", "A B C D E F C", "A C B"): (0.0, 0.0, 0.0),
    # Longest common subsequence "a b" (or "a c"): 2 of 7 and 2 of 3; F = 2·(2/7)(2/3)/(2/7+2/3) = 0.4
    ("rougeL", "A B C D E F C", "A C B"): (2 / 7, 2 / 3, 0.4),
    ("rouge1", "naïve café", "naive cafe"): (0.0, 0.0, 0.0),  # tokens na, ve, caf against naive, cafe
    ("rouge1", "Ubuntu 22.04 😀", "ubuntu 22 04"): (1.0, 1.0, 1.0),
    ("rouge2", "restart the ssh service", "please restart the service"): (1 / 3, 1 / 3, 1 / 3),
    ("rouge1", ".", "a b"): (0.0, 0.0, 0.0),
    ("rouge1", "a b", "."): (0.0, 0.0, 0.0),
    ("rougeL", "日本語", "日本語"): (0.0, 0.0, 0.0),  # only a-z and 0-9 are tokens
}


def ask(*references: str, id: str = "q1") -> Question:
    return Question(id, "how?", "corpus", references)


def answer(text: str, status: str = "ok", id: str = "q1") -> Prediction:
    return Prediction(id, "how?", text, (), status=status)


@pytest.mark.parametrize(("case", "expected"), GOLDEN.items())
def test_t17_golden_pairs(case, expected):
    variant, prediction, reference = case
    [scores] = Rouge(variant).score([ask(reference)], [answer(prediction)], [], [])
    assert (scores[f"{variant}_p"], scores[f"{variant}_r"], scores[variant]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stemmer", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    prediction=st.text(),
    reference=st.text(),
    words=st.lists(st.sampled_from(["run", "running", "runs", "ß", "İ", "1st"])),
)
def test_equals_rouge_score_bit_for_bit(variant, stemmer, prediction, reference, words):
    from rouge_score.rouge_scorer import RougeScorer

    prediction += " " + " ".join(words)
    reference += " " + " ".join(reversed(words))
    theirs = RougeScorer([variant], use_stemmer=stemmer).score(reference, prediction)[variant]
    [ours] = Rouge(variant, stemmer).score([ask(reference)], [answer(prediction)], [], [])
    assert ours == {variant: theirs.fmeasure, f"{variant}_p": theirs.precision, f"{variant}_r": theirs.recall}


def test_best_reference_gives_precision_recall_and_f_together():
    # "a b" against "a b c d": P 1, R 1/2, F 2/3. Against "a": P 1/2, R 1, F 2/3. Against "a c": 1/2 each.
    [scores] = Rouge("rouge1").score([ask("a c", "a b c d", "a")], [answer("a b")], [], [])
    assert scores == pytest.approx({"rouge1": 2 / 3, "rouge1_p": 1.0, "rouge1_r": 0.5})


@pytest.mark.parametrize(
    ("question", "prediction"),
    [
        (ask("gold"), answer("")),
        (ask(""), answer("gold")),
        (ask(), answer("gold")),
        (ask("gold"), answer("gold", status="failed")),
    ],
)
def test_t17_an_empty_or_failed_side_scores_zero(question, prediction):
    [scores] = Rouge("rougeL").score([question], [prediction], [], [])
    assert scores == {"rougeL": 0.0, "rougeL_p": 0.0, "rougeL_r": 0.0}


def test_t49_lengths_and_ids_must_agree():
    three = [ask("a", id=str(i)) for i in range(3)]
    with pytest.raises(InputError, match="got 2 predictions for 3 questions"):
        Rouge("rouge1").score(three, [answer("a", id="0"), answer("a", id="1")], [], [])
    with pytest.raises(InputError, match="prediction 0 answers question 'other', but question 'q1'"):
        Rouge("rouge1").score([ask("a")], [answer("a", id="other")], [], [])


def test_t49_unknown_variant_is_named_with_the_known_ones():
    with pytest.raises(InputError, match=r"'rouge_l' is unknown; did you mean rougeL\?.*rouge1, rouge2, rougeL"):
        Rouge("rouge_l")


def test_signature_names_what_the_number_is():
    assert Rouge("rouge1").signature == "rouge1|f|no-stemmer|rouge-score 0.1.2"
    assert Rouge("rougeL", stemmer=True).signature == "rougeL|f|stemmer|rouge-score 0.1.2"
