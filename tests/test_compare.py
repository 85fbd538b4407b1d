"""Which of two runs is better, by how much, and on which items."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from graphcontext.compare import compare_runs, difference
from graphcontext.errors import InputError
from graphcontext.files import jsonl
from graphcontext.run_folder import Run, write_folder

CONFIG = {
    "dataset": {"name": "made_up"},
    "retriever": {"_target_": "x.TFIDF", "top_k": 2},
    "enhancer": {"_target_": "x.NoEnhancement"},
    "generator": {"_target_": "x.LLMGenerator"},
    "roles": {"answer": {"model": "m"}},
}


def run(
    name: str, scores: dict[str, float], config: dict | None = None, metric: str = "rouge1", site: str = "a"
) -> Run:
    """A finished run folder with these scores."""
    path = Path("runs") / name
    rows = [{"id": i, "status": "ok", metric: value} for i, value in scores.items()]
    asked = [{"id": i, "text": f"{site}: question {i}", "corpus_id": "c", "title": f"Title {i}"} for i in scores]
    files = {"config.yaml": yaml.safe_dump({**CONFIG, **(config or {})})}
    files |= {"scores.jsonl": jsonl(rows), "questions.jsonl": jsonl(asked)}
    write_folder(path, files, {"n": len(scores), "metrics": {metric: {}}}, {})
    return Run(path)


def line(text: str, start: str) -> str:
    return next(x for x in text.splitlines() if x.strip().startswith(start))


def test_the_sign_favours_the_second() -> None:
    # B − A: +.2 +.2 +.2 +.2 −.1 0, mean .7/6 = .1167; of the 2^5 sign patterns of the differences that are not 0,
    # |sum| ≥ .7 only for + + + + −, + + + + + and their opposites: p = 4/32 = .125
    first = run("aaa", dict(zip("123456", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))))
    second = run("bbb", dict(zip("123456", (0.3, 0.4, 0.5, 0.6, 0.4, 0.6))), {"retriever": {"_target_": "x.BM25"}})
    text = compare_runs(first, second)
    row = line(text, "rouge1").split()
    assert row[:4] == ["rouge1", "0.3500", "0.4667", "+0.1167"]
    assert row[-4:] == ["0.1250", "4", "1", "1"]  # p, won, lost, tied
    low, high = (float(x.strip("[],")) for x in row[4:6])
    assert low < 0.1167 < high
    assert "6 shared items" in text and "left out" not in text
    assert line(text, "retriever._target_") == "  retriever._target_: x.TFIDF → x.BM25"
    assert line(text, "retriever.top_k") == "  retriever.top_k: 2 → -"
    assert line(text, "B better") == "B better by rouge1: 4 items" and line(text, "A better").endswith("1 items")
    assert line(text, "-0.1000") == "  -0.1000  5  Title 5"
    back = line(compare_runs(second, first), "rouge1").split()
    assert back[3] == "-0.1167" and back[-4:] == ["0.1250", "1", "4", "1"]


def test_only_shared_items_count() -> None:
    text = compare_runs(run("aaa", {"1": 0.0, "2": 1.0}), run("bbb", {"2": 0.5, "3": 1.0, "4": 1.0}))
    assert "1 shared items, 3 in one run only, left out" in text
    assert line(text, "rouge1").split()[1:4] == ["1.0000", "0.5000", "-0.5000"]


def test_no_shared_item_is_said() -> None:
    with pytest.raises(InputError, match="share no item: other data, split or limit"):
        compare_runs(run("aaa", {"1": 0.0}), run("bbb", {"2": 0.0}))


def test_one_post_number_on_two_sites_is_two_items() -> None:
    with pytest.raises(InputError, match="share no item"):
        compare_runs(run("aaa", {"1": 0.0}), run("bbb", {"1": 0.5}, site="b"))


def test_runs_with_different_metrics_say_so() -> None:
    text = compare_runs(run("aaa", {"1": 0.0}), run("bbb", {"1": 0.5}, metric="rougeL"))
    assert "not in both: rouge1 (A only), rougeL (B only)" in text


def test_a_run_against_itself() -> None:
    same = run("aaa", {"1": 0.5, "2": 0.25})
    text = compare_runs(same, same)
    assert "  equal" in text
    assert line(text, "rouge1").split()[-4:] == ["1.0000", "0", "0", "2"]


def test_the_difference_of_configs_has_a_line_per_leaf_but_none_for_roles() -> None:
    changed = difference({"a": {"b": 1, "c": [1]}, "roles": {"x": 1}}, {"a": {"b": 2, "c": [1]}, "d": None})
    assert changed == {"a.b": (1, 2), "d": ("-", None)}
