"""Retrieval metrics on given rankings: trec_eval's values, hand-computed ones, questions without gold passages."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Question, Ranking, Scored
from graphcontext.errors import InputError
from graphcontext.evaluate.retrieval import MEASURES, RetrievalMetric, check_cut_offs, check_supports

# Made by tests/evaluate/make_retrieval_golden.py (trec_eval by pytrec-eval-terrier 0.5.11).
GOLDEN = json.loads(Path(__file__).with_name("retrieval_golden.json").read_text())
NAMES = ["recall@k", "precision@k", "ndcg@k", "mrr", "sf_em"]


def score(metric: RetrievalMetric, ranked: str, gold: str, status: str = "ok") -> dict[str, float]:
    """Score one ranking; each letter is a passage, the best first."""
    passages = tuple(Scored(p, -float(i)) for i, p in enumerate(ranked))
    question = Question("q", "which?", "corpus", supports=tuple(gold))
    [row] = metric.score([question], [], [Ranking("q", passages, status=status)], [])
    return row


def test_each_is_what_its_formula_says():
    # ranked b a d, gold a c: rank 2 of 3 holds one of the two
    assert score(RetrievalMetric("recall", 3), "bad", "ac") == {"recall@k": 1 / 2}
    assert score(RetrievalMetric("precision", 5), "bad", "ac") == {"precision@k": 1 / 5}  # two places are empty
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert score(RetrievalMetric("ndcg", 3), "bad", "ac") == {"ndcg@k": (1 / math.log2(3)) / ideal}
    assert score(RetrievalMetric("mrr", None), "bad", "ac") == {"mrr": 1 / 2}


def told(row: dict) -> str:
    return f"{len(row['ranked'])} ranked, {len(row['gold'])} gold, grades to {max(row['gold'].values())}"


@pytest.mark.parametrize("row", GOLDEN, ids=told)
def test_equals_trec_eval(row):
    for name, expected in row["values"].items():
        measure, _, k = name.partition("@")
        found = MEASURES[measure](row["ranked"], row["gold"], int(k) if k else None)
        assert found == pytest.approx(expected, abs=1e-9), name


def test_ndcg_gains_the_grade_and_the_others_do_not_look_at_it():
    # gold a: 2, b: 1; ranked b a: (1 + 2 / log2(3)) / (2 + 1 / log2(3)) = 2.2619 / 2.6309
    question = Question("q", "?", "c", supports=("a", "b"), grades=(2, 1))
    ranking = Ranking("q", (Scored("b", 2.0), Scored("a", 1.0)))

    def found(measure: str) -> float:
        [row] = RetrievalMetric(measure, 2).score([question], [], [ranking], [])
        return next(iter(row.values()))

    assert found("ndcg") == pytest.approx(0.8597, abs=1e-4)
    assert found("recall") == found("precision") == found("mrr") == 1.0


def test_a_query_that_is_a_document_can_be_left_out_of_its_own_ranking():
    question, ranking = Question("q", "?", "c", supports=("a",)), Ranking("q", (Scored("q", 2.0), Scored("a", 1.0)))
    plain, as_beir = RetrievalMetric("recall", 1), RetrievalMetric("recall", 1, ignore_identical_ids=True)
    assert plain.score([question], [], [ranking], []) == [{"recall@k": 0.0}]
    assert as_beir.score([question], [], [ranking], []) == [{"recall@k": 1.0}]
    assert (as_beir.depth, as_beir.signature) == (2, "recall@k|k=1|supports, binary|identical ids ignored")


def test_a_cut_off_beyond_what_is_retrieved_is_refused():
    metrics = {"rouge1": object(), "ndcg@k": RetrievalMetric("ndcg", 10), "mrr": RetrievalMetric("mrr", None, [1, 30])}
    refused = r"^metric.ndcg@k.k=10, metric.mrr.ks=\[1, 30\], retriever.top_k=2: .* set retriever.top_k=30 or lower"
    with pytest.raises(InputError, match=refused):
        check_cut_offs(metrics, 2, 3633)
    with pytest.raises(InputError, match=r"set retriever.top_k=12 or"):
        check_cut_offs(metrics, 2, 12)  # retrieved whole
    as_beir = {"ndcg@k": RetrievalMetric("ndcg", 10, [1], ignore_identical_ids=True)}
    with pytest.raises(InputError, match=r"^metric.ndcg@k.k=10 beside the identical id, retriever.top_k=10: .*=11 or"):
        check_cut_offs(as_beir, 10, 3633)
    check_cut_offs(metrics, 30, 3633)
    check_cut_offs(metrics, 2, 2)
    check_cut_offs(metrics, None, 3633)  # a retriever without such a number
    check_cut_offs({"mrr": RetrievalMetric("mrr", None)}, 2, 3633)


def test_further_cut_offs_stand_beside_the_metrics_own_value():
    assert score(RetrievalMetric("recall", 2, [1, 3]), "bac", "ac") == {
        "recall@k": 1 / 2,
        "recall@1": 0.0,
        "recall@3": 1.0,
    }


def test_support_em_asks_for_every_gold_passage_of_the_first_k():
    # ranked b a c, gold a c: the first 2 lack c
    metric = RetrievalMetric("sf_em", 3, [2])
    assert score(metric, "bac", "ac") == {"sf_em": 1.0, "sf_em@2": 0.0}
    assert metric.columns == {"sf_em@2": "k=2"}
    assert score(RetrievalMetric("sf_em", None), "bdefghijkac", "ac") == {"sf_em": 1.0}  # a visited set, whole
    assert score(RetrievalMetric("precision", None), "bdca", "ac") == {"precision@k": 2 / 4}


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_the_contract_compose_and_need_no_answers(name):
    config = compose(["generator=none", f"metric=[{name}]", f"metric.{name}.k=3"]).config
    metric = instantiate(config["metric"], "metric")[name]
    gain = "gain = grade" if name == "ndcg@k" else "binary"
    assert (metric.k, metric.needs_answers, metric.signature) == (3, False, f"{name}|k=3|supports, {gain}")
    row = score(metric, "bac", "ac")
    assert next(iter(row)) == name and row[name] > 0


def test_t21_what_has_no_gold_passage_or_no_ranking_scores_zero_and_stays():
    for measure in MEASURES:
        metric = RetrievalMetric(measure, 2)
        assert score(metric, "bac", "") == {metric.name: 0.0}
        assert score(metric, "", "ac", status="failed") == {metric.name: 0.0}


def test_a_data_set_without_gold_passages_is_refused():
    without = [Question("1", "?", "c"), Question("2", "?", "c")]
    metrics = {"rouge1": object(), "recall@k": RetrievalMetric("recall", 2)}
    with pytest.raises(InputError, match=r"^metric recall@k needs .* supports .*; data set forum has none$"):
        check_supports(metrics, without, "forum")
    check_supports(metrics, [*without, Question("3", "?", "c", supports=("a",))], "forum")  # one is enough
    check_supports({"rouge1": object()}, without, "forum")


def test_wrong_arguments_and_other_rankings_are_refused():
    with pytest.raises(InputError, match="'recal' is unknown; did you mean recall"):
        RetrievalMetric("recal", 2)
    for k, ks in ((0, []), (2, [1, -1]), (True, [])):
        with pytest.raises(InputError, match="whole numbers of at least 1"):
            RetrievalMetric("mrr", k, ks)
    with pytest.raises(InputError, match="1 rankings that are not of these 1 questions"):
        RetrievalMetric("mrr", None).score([Question("q", "?", "c")], [], [Ranking("other", ())], [])


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sets(st.sampled_from("abcdef")), st.integers(1, 7))
def test_support_em_is_full_recall(ranked, gold, k):
    grades = dict.fromkeys(gold, 1)
    assert MEASURES["sf_em"](ranked, grades, k) == float(MEASURES["recall"](ranked, grades, k) == 1.0)
    if MEASURES["sf_em"](ranked, grades, k):
        assert MEASURES["sf_em"](ranked, grades, k + 1) == 1.0  # more of a ranking never loses a passage


IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(IDS, st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3), min_size=1), st.integers(1, 9))
def test_between_zero_and_one_and_best_where_gold_comes_first(ranked, gold, k):
    for measure in MEASURES.values():
        assert 0.0 <= measure(ranked, gold, k) <= 1.0
    ideal = sorted(gold, key=gold.get, reverse=True)
    assert MEASURES["ndcg"](ideal, gold, k) == MEASURES["mrr"](ideal, gold, k) == 1.0
    assert MEASURES["recall"](ideal, gold, None) == MEASURES["precision"](ideal, gold, None) == 1.0
