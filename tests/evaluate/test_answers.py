"""Exact match and F1: the table of the docstring, the official scripts' rules, failed items in two columns."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError
from graphcontext.evaluate.answers import ShortAnswer, exact_match, normalise, token_f1

VARIANTS = ["hotpotqa", "musique", "squad"]


def scored(metric: ShortAnswer, gold: list[str], answer: str, status: str = "ok") -> dict:
    question = Question("q", "which?", "c", references=tuple(gold))
    prediction = Prediction("q", "which?", answer, question.references, status=status)
    [row] = metric.score([question], [prediction], [], [])
    return row


# gold, prediction, (em, f1) ours, (em, f1) of HotpotQA's script, f1 of MuSiQue's
CASES = [
    ("A", "A", (1, 1), (1, 0), 1),  # both sides are emptied: equal, and without a word in common
    ("A", "a.", (1, 1), (1, 0), 1),  # a full stop is no other answer
    ("A", "B", (0, 0), (0, 0), 0),
    ("++", "#", (0, 0), (1, 0), 1),  # nothing else is left of them
    ("A", "", (0, 0), (1, 0), 1),
    ("A", "the", (0, 0), (1, 0), 1),
    ("The Who", "who", (1, 1), (1, 1), 1),
    ("The The", "the", (0, 2 / 3), (1, 0), 1),  # as text: P = 1/1, R = 1/2
    ("C++", "C#", (1, 1), (1, 1), 1),  # both are "c": the scripts' rule, kept
    ("5%", "$5", (1, 1), (1, 1), 1),
    ("Beyoncé", "Beyonce", (0, 0), (0, 0), 0),
    ("‘x’", "x", (0, 0), (0, 0), 0),
]


@pytest.mark.parametrize(("gold", "answer", "ours", "official", "musique"), CASES)
def test_t19_both_tables(gold, answer, ours, official, musique):
    assert exact_match(answer, gold) == ours[0]
    assert token_f1(answer, gold)[0] == pytest.approx(ours[1])
    assert exact_match(answer, gold, "official") == official[0]
    assert token_f1(answer, gold, "hotpotqa", "official")[0] == official[1]
    assert token_f1(answer, gold, "squad", "official")[0] == official[1]
    assert token_f1(answer, gold, "musique", "official")[0] == musique


@pytest.mark.parametrize(("gold", "answer"), [("A+", "A+."), ("The The", "the the."), ("++", "++")])
def test_a_full_stop_is_no_other_answer(gold, answer):
    assert exact_match(answer, gold) == token_f1(answer, gold)[0] == 1


def test_t19_the_docstring_says_so():
    below = ShortAnswer.__doc__.partition("official\n")[2]
    rows = [line.split() for line in below.splitlines() if " / " in line]
    assert len(rows) == len(CASES)
    for (gold, answer, ours, official, _), cells in zip(CASES, rows, strict=True):
        text = " ".join(cells)
        assert text.startswith(f"{gold} {answer or '(nothing)'} ")
        shown = [f"{em} / {'.67' if f1 not in (0, 1) else f1}" for em, f1 in (ours, official)]
        assert " ".join(shown) in text


def test_yes_and_no_are_no_part_of_a_longer_answer_in_hotpotqa():
    # "no" in "no way": P = 1/1, R = 1/2
    assert token_f1("no", "no way") == (0, 0, 0)
    assert token_f1("no way", "No.") == (0, 0, 0)
    assert token_f1("noanswer", "noanswer") == (1, 1, 1)
    for variant in ("musique", "squad"):
        assert token_f1("no", "no way", variant) == (pytest.approx(2 / 3), 1, 0.5)


# -- a second definition, from the published one: bags as sorted lists, merged ------------------------


def plain(text: str) -> list[str]:
    """Words of lower-cased text without ASCII punctuation; an article goes where no word sign stands beside it."""
    kept = "".join(c for c in text.lower() if not (c.isascii() and c.isprintable() and not c.isalnum() and c != " "))
    out, word = [], ""
    for sign in [*kept, " "]:  # an article is a run of word characters that is a, an or the
        if sign.isalnum() or sign == "_":
            word += sign
            continue
        out += [" " if word in ("a", "an", "the") else word, sign]
        word = ""
    return "".join(out).split()


def reference_f1(answer: str, gold: str, variant: str) -> float:
    left, right = sorted(plain(answer)), sorted(plain(gold))
    texts = {" ".join(plain(answer)), " ".join(plain(gold))}
    if variant == "hotpotqa" and len(texts) == 2 and texts & {"yes", "no", "noanswer"}:
        return 0.0
    if variant == "musique" and (not left or not right):
        return 1.0 if left == right else 0.0
    n, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            n, i, j = n + 1, i + 1, j + 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return 2 * n / (len(left) + len(right)) if n else 0.0  # 2PR / (P + R) with P = n / |a|, R = n / |g|


ANSWERS = st.text(alphabet="aAnthe yesno.,-'$%é‘5", max_size=14) | st.sampled_from(["yes", "No!", "noanswer", "the a"])


@given(ANSWERS, ANSWERS, st.sampled_from(VARIANTS))
def test_equals_a_second_definition(answer, gold, variant):
    assert token_f1(answer, gold, variant, "official")[0] == pytest.approx(reference_f1(answer, gold, variant))
    assert exact_match(answer, gold, "official") == float(plain(answer) == plain(gold))
    assert normalise(answer).split() == plain(answer)


@given(ANSWERS, ANSWERS, st.sampled_from(VARIANTS))
def test_ours_differs_from_the_official_only_where_a_side_is_emptied(answer, gold, variant):
    if plain(answer) and plain(gold):
        assert token_f1(answer, gold, variant) == token_f1(answer, gold, variant, "official")
        assert exact_match(answer, gold) == exact_match(answer, gold, "official")
    else:
        assert exact_match(answer, gold) == float(answer.lower().split() == gold.lower().split())


@given(ANSWERS, st.lists(ANSWERS, min_size=1, max_size=4), st.sampled_from(VARIANTS))
def test_the_best_reference_counts(answer, golds, variant):
    row = scored(ShortAnswer("f1", variant), golds, answer)
    best = max(golds, key=lambda gold: token_f1(answer, gold, variant)[0])
    assert row["f1"] == token_f1(answer, best, variant)[0]
    assert scored(ShortAnswer("em", variant), golds, answer)["em"] == max(exact_match(answer, g) for g in golds)


def test_words_count_as_often_as_they_occur():
    # prediction "w w v", gold "w v v": common w once, v once: P = 2/3 = R
    assert token_f1("w w v", "w v v") == (pytest.approx(2 / 3),) * 3
    assert (Counter("wwv") & Counter("wvv")).total() == 2


def test_failed_items_score_0_and_have_no_value_in_the_second_column():
    assert scored(ShortAnswer("em"), ["x"], "x", "failed") == {"em": 0.0, "em_answered": None}
    assert scored(ShortAnswer("em"), ["x"], "", "empty") == {"em": 0.0, "em_answered": 0.0}  # an answer, if no good one
    assert scored(ShortAnswer("f1"), ["x"], "x y") == {
        "f1": pytest.approx(2 / 3),
        "f1_p": 0.5,
        "f1_r": 1.0,
        "f1_answered": pytest.approx(2 / 3),
    }
    assert scored(ShortAnswer("em", emptied="official"), ["A"], "x", "failed")["em"] == 0  # "" would equal "A"
    assert scored(ShortAnswer("em"), [], "x") == {"em": 0.0, "em_answered": 0.0}


def test_t49_lengths_that_differ_are_refused():
    questions = [Question(str(i), "?", "c", references=("x",)) for i in range(3)]
    predictions = [Prediction(str(i), "?", "x", ("x",)) for i in range(2)]
    with pytest.raises(InputError, match="2 predictions for 3 questions"):
        ShortAnswer("em").score(questions, predictions, [], [])


def test_signature_says_script_and_emptied_side():
    assert ShortAnswer("f1", "musique").signature == "f1|musique|emptied answers as text"
    assert ShortAnswer("em", emptied="official").signature == "em|hotpotqa|emptied answers equal"


@pytest.mark.parametrize(("key", "value"), [("measure", "em2"), ("variant", "squad2"), ("emptied", "ours")])
def test_unknown_names_are_refused(key, value):
    with pytest.raises(InputError, match=value):
        ShortAnswer(**{"measure": "em", key: value})


@pytest.mark.parametrize("name", ["em", "f1"])
def test_options_build(name):
    config = compose([f"metric=[{name}]"]).config["metric"]
    metric = instantiate(config[name], "metric")
    assert metric.measure == name
    assert metric.columns == {f"{name}_answered": "failed items left out"}
