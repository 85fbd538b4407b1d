"""Mean ranks: the paper's own, by its definition; ties, rows that did not run, and the table that shows them."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from demo_table import demo_table
from hypothesis import given
from hypothesis import strategies as st

from graphcontext import api
from graphcontext.errors import InputError
from graphcontext.run_folder import Run
from graphcontext.table.cells import Cell, Measure, Rank
from graphcontext.table.mean_rank import mean_ranks, ranks
from graphcontext.table.render import to_csv, to_markdown, to_tex
from graphcontext.table.spec import load_spec

CONF = str(Path(__file__).parent / "conf")
METRICS = [Measure(m, m) for m in ("acc", "em", "f1")]

# KGP, Table 1 (arXiv 2308.11730): Acc, EM, F1 on HotpotQA, IIRC, 2WikiMQA, MuSiQue; its Rank without PDFTriage
PAPER = """
None    41.8  19.0  30.5   19.5  8.6   13.17  44.4  18.6  25.07  30.4  4.6   10.58  9.0
KNN     71.57 40.73 57.97  43.82 25.15 37.24  52.4  31.2  42.13  44.7  18.86 30.04  7.33
TF-IDF  76.64 45.97 64.64  47.47 27.22 40.8   58.4  34.6  44.5   44.4  21.59 32.5   5.0
BM25    71.95 41.46 59.73  41.93 23.48 35.55  55.8  30.8  40.55  44.47 21.11 31.15  7.25
DPR     73.43 43.61 62.11  48.11 26.89 41.85  62.4  35.6  51.1   44.27 20.32 31.64  5.5
MDR     75.3  45.55 65.16  50.84 27.52 43.47  63.0  36.0  52.44  48.39 23.49 37.03  3.08
IRCoT   74.36 45.29 64.12  49.78 27.73 41.65  61.81 37.75 50.17  45.14 22.46 34.21  4.08
KGP-T5  76.53 46.51 66.77  48.28 26.94 41.54  63.5  39.8  53.5   50.92 27.9  41.19  2.75
Golden  82.19 50.2  71.06  62.68 35.64 54.76  72.6  40.2  59.69  57.0  30.6  47.75  1.0
"""
ROWS = [line.split() for line in PAPER.split("\n") if line]
NAMES = [row[0] for row in ROWS]


def cells(rows: dict[str, list[float | None]]) -> list[Cell]:
    """Give each row its values: the three metrics of one data set, then of the next."""
    return [
        Cell(name, f"d{place // 3}", METRICS[place % 3].id, value)
        for name, values in rows.items()
        for place, value in enumerate(values)
    ]


def test_the_papers_nine_ranks_come_out_to_two_digits():
    found, level = mean_ranks(cells({row[0]: [float(v) for v in row[1:13]] for row in ROWS}), METRICS, NAMES)
    assert level == []
    assert {name: (f"{rank:.2f}", n) for name, (rank, n) in found.items()} == {
        row[0]: (f"{float(row[13]):.2f}", 12) for row in ROWS
    }


def test_equal_values_share_the_mean_of_their_ranks():
    assert ranks({"a": 1.0, "b": 2.0, "c": 1.0}) == {"a": 2.5, "b": 1.0, "c": 2.5}
    assert ranks({"a": 1.0, "b": 2.0, "c": 1.0}, higher_is_better=False) == {"a": 1.5, "b": 3.0, "c": 1.5}


def test_a_row_that_did_not_run_somewhere_has_no_rank_and_is_in_none():
    # on acc b is best, on em it did not run; without it a and c share first and last place
    found, _ = mean_ranks(cells({"a": [0.2, 0.5], "b": [0.9, None], "c": [0.1, 0.6]}), METRICS, ["a", "b", "c"])
    assert found == {"a": (1.5, 2), "c": (1.5, 2)}
    assert mean_ranks(cells({"a": [0.2, None], "b": [None, 0.5]}), METRICS, ["a", "b"]) == ({}, [])
    assert mean_ranks([], METRICS, ["a"]) == ({}, [])
    # a column in which no row ran does not count
    half = cells({"a": [0.2, None], "b": [0.3, None]})
    assert mean_ranks(half, METRICS, ["a", "b"]) == ({"a": (2.0, 1), "b": (1.0, 1)}, [])


def test_a_column_of_one_value_ranks_nothing():
    level = [("d0", METRICS[1].id)]
    found = mean_ranks(cells({"a": [0.2, 0.0, 0.3], "b": [0.9, 0.0, 0.1]}), METRICS, ["a", "b"])
    assert found == ({"a": (1.5, 2), "b": (1.5, 2)}, level)
    # what a row that has no rank had there does not matter
    rows = {"a": [0.2, 0.0], "b": [0.9, 0.0], "c": [None, 0.5]}
    assert mean_ranks(cells(rows), METRICS, list(rows)) == ({"a": (2.0, 1), "b": (1.0, 1)}, level)
    assert mean_ranks(cells({"a": [0.0], "b": [0.0]}), METRICS, ["a", "b"]) == ({}, [("d0", METRICS[0].id)])


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=6))
def test_ranks_sum_up_and_lie_between_first_and_last(values):
    rows = {str(i): [float(v) for v in row] for i, row in enumerate(values)}
    found, level = mean_ranks(cells(rows), METRICS, list(rows))
    n = len(rows)
    assert len(level) < 3 or not found
    assert not found or sum(rank for rank, _ in found.values()) == pytest.approx(n * (n + 1) / 2)
    assert all(1 <= rank <= n for rank, _ in found.values())


def test_each_form_shows_them():
    table = dataclasses.replace(demo_table(), ranks=(Rank("text_gen", 1.5, 2, 2.75), Rank("sft", None, 0, 1.0)))
    assert "| [w/o INST] TextGen | 1.50 |  2.75 |" in to_markdown(table)
    assert "| GraphGen\\*         |    – |  1.00 |" in to_markdown(table)
    _, *lines = to_csv(table).splitlines()
    by_row = {line["row"]: line["mean_rank"] for line in csv.DictReader(lines)}
    assert by_row == {"answerbot": "", "text_gen": "1.5", "graph_gen": "", "sft": ""}
    assert "{}[w/o INST] TextGen & 1.50 & (2.75) \\\\" in to_tex(table)
    alone = dataclasses.replace(table, ranks=(Rank("text_gen", 1.0, 1),))
    assert "| row                | ours |\n" in to_markdown(alone)
    assert "mean_rank" not in to_csv(demo_table())


# -- a table ---------------------------------------------------------------------------------------


@pytest.mark.batch_raises
def test_a_table_ranks_the_papers_rows_and_shows_both_ways_to_count_failures(tmp_path: Path):
    made = api.table("tests/short", "dataset.limit=6", config_dir=CONF, root=tmp_path)
    shown = {(c.row, c.metric): c for c in made.result.cells}
    run = Run(tmp_path / "runs" / str(shown["buggy", "f1"].run))
    n_failed = run.metrics["n_failed"]
    assert 0 < n_failed < 6
    mean, answered = shown["buggy", "f1"], shown["buggy", "f1_answered"]
    assert (mean.n, answered.n) == (6, 6 - n_failed)
    assert mean.value * 6 == pytest.approx(answered.value * answered.n)
    assert shown["base", "f1"].value == shown["base", "f1_answered"].value
    assert "f1_answered, failed items left out, f1, hotpotqa" in made.markdown.replace("\n   ", " ")
    table = json.loads(made.path.with_suffix(".json").read_text())
    rank = {r["row"]: r for r in table["ranks"]}
    assert list(rank) == ["base", "other", "buggy", "absent"]  # `ours` has no rank of the paper's
    assert rank["absent"]["rank"] is None
    three = [rank[row]["rank"] for row in ("base", "other", "buggy")]
    assert sum(three) == pytest.approx(6)  # 1 + 2 + 3
    assert {rank[row]["n"] for row in ("base", "other", "buggy")} == {1}
    said = next(note for note in table["footnotes"] if note.startswith("mean rank"))
    assert said == (
        "mean rank: over 1 column (data set × metric; F1, EM), 1 is best, equal values share the mean of their ranks; "
        "among the 3 rows that ran in all of them, without Absent; left out, since all rows have one value there: "
        "EM on cqa_sample; the paper's are among 4 rows"
    )


def test_the_metrics_that_are_ranked_are_the_tables(tmp_path: Path):
    folder = tmp_path / "conf" / "table" / "mine"
    folder.mkdir(parents=True)
    text = (Path(CONF) / "table" / "tests" / "short.yaml").read_text()
    for old, new, what in (
        ("rank: [f1, em]", "rank: [f1, acc]", "rank 'acc' is unknown"),
        ("f1_answered:", "f1_answerd:", "metric 'f1_answerd' is unknown; did you mean"),
    ):
        rows = text.partition("rows:")[0].replace("baseline: base\n", "")
        (folder / "wrong.yaml").write_text(rows.replace(old, new))
        with pytest.raises(InputError, match=what):
            load_spec("mine/wrong", str(tmp_path / "conf"))
