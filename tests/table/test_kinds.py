"""Tables that are more than scores: examples, prompts, settings, histograms, sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import InputError
from graphcontext.files import read_lines
from graphcontext.table.cells import Cell, Column, Made, Measure, Row, TableResult
from graphcontext.table.histogram import ranges
from graphcontext.table.page import fenced
from graphcontext.table.spec import load_spec
from graphcontext.table.sweep import Point, to_png

CONF = str(Path(__file__).parent / "conf")
SIX = "dataset.limit=6"
PNG = b"\x89PNG"


def table(name: str, folder: Path, *overrides: str) -> tuple[Made, dict]:
    made = api.table(f"tests/{name}", *overrides, config_dir=CONF, root=folder)
    assert made.path.read_text() == made.markdown
    return made, json.loads(made.path.with_suffix(".json").read_text())


def test_examples_are_chosen_by_the_rule(folder: Path) -> None:
    made, data = table("examples", folder, SIX)
    gains = []
    for example in data["examples"]:
        by_row = {answer["row"]: answer["scores"]["rouge1"] for answer in example["answers"]}
        gains.append(by_row["other"] - by_row["base"])
        assert example["gold"] and example["title"] in made.markdown
    assert len(gains) <= 2 and gains == sorted(gains, reverse=True) and all(gain > 0 for gain in gains)
    assert data["rule"] == "the 2 questions where other is most above base in rouge1"
    assert data["not_run"] == [
        {"column": "cqa_sample", "row": "Absent", "status": "not run (no weights: nowhere/absent)"}
    ]
    assert "Absent on cqa\\_sample" in made.markdown or "Absent on cqa_sample" in made.markdown


def test_a_page_that_is_done_is_not_written_again(folder: Path) -> None:
    made, _ = table("examples", folder, SIX)
    before = made.path.stat().st_mtime_ns
    assert table("examples", folder, SIX)[0].path.stat().st_mtime_ns == before


def test_prompts_are_those_that_were_asked(folder: Path) -> None:
    made, data = table("prompts", folder, SIX)
    assert [t["used_by"] for t in data["templates"]] == ["LLMGenerator"] and data["templates"][0]["rows"] == ["base"]
    assert "{question}" in data["templates"][0]["user"]
    [call] = data["calls"]  # AnswerBot asks no model
    assert (call["row"], call["role"]) == ("base", "answer") and call["response"]
    assert call["messages"][-1]["content"].splitlines()[0] in made.markdown


def test_settings_stand_beside_the_papers(tmp_path: Path) -> None:
    made, data = table("settings", tmp_path)
    top_k, retriever, rate = data["settings"]
    assert (top_k["reported"], top_k["paper_scale"], top_k["here"]) == ("2 (§5)", 2, 2)
    assert retriever["here"] == "TFIDF" and retriever["reported"] == "not stated"
    assert rate["here"] == "not run (nothing is trained here yet)" and "| learning rate" in made.markdown
    assert not (tmp_path / "runs").exists()


def test_histograms_count_every_item(folder: Path) -> None:
    made, data = table("histogram", folder, SIX)
    assert [(h["row"], h["metric"], h["n"], sum(h["counts"])) for h in data["histograms"]] == [
        ("base", "rouge1", 6, 6),
        ("other", "rouge1", 6, 6),
    ]
    assert ranges()[0] == "0–.1" and ranges()[-1] == ".9–1" and "Items per range" in made.markdown
    assert made.path.with_suffix(".png").read_bytes().startswith(PNG)
    run = next(c["run"] for c in data["cells"] if c["row"] == "base")
    values = [row["rouge1"] for row in read_lines(folder / "runs" / run / "scores.jsonl")]
    assert data["histograms"][0]["counts"][0] == sum(value < 0.1 for value in values)


@pytest.mark.needs_models
def test_a_sweep_over_the_graphs_density(tmp_path: Path) -> None:
    alone = ("generator=none", "metric=[]", "enhancer=none", "tokenizer=words", "table.rows=degree_1,cosine_0.8")
    made = api.table("gcg/threshold", SIX, *alone, root=tmp_path)
    sparse, denser = json.loads(made.path.with_suffix(".json").read_text())["points"]
    assert (sparse["row"], sparse["threshold"], sparse["fallback"]) == ("cosine_0.8", 0.8, 1.0)
    assert sparse["n_edges"] < denser["n_edges"]
    assert denser["row"] == "degree_1" and 0.5 < denser["mean_degree"] <= 1 and denser["fallback"] < 1
    assert "Density, fall-back and score" in made.markdown and "fell back" in made.markdown


def test_a_sweep_is_drawn() -> None:
    points = [Point("a", "d", 0.8, 0, 0.0, 0.0, 1.0, 1.0), Point("b", "d", 0.3, 40, 8.0, 0.1, 0.0, 0.1)]
    cells = [Cell(r, "d", "m", value=v, ci95=(v - 0.1, v + 0.1), n=6) for r, v in (("a", 0.3), ("b", 0.4))]
    rows = (Row("a", "$A"), Row("b", "B"))
    result = TableResult(
        "t", "A $title", "sample", "cmd", rows, (Column("d", "D"),), (Measure("m", "M"),), tuple(cells)
    )
    assert to_png(result, points).startswith(PNG) and to_png(result, points) == to_png(result, points)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"rwo": "base"}, "no such key; did you mean row"),
        ({"row": "base", "metric": "rouge1"}, "needs view.pick"),
    ],
)
def test_a_view_is_checked(view: dict, message: str) -> None:
    import dataclasses

    spec = dataclasses.replace(load_spec("tests/examples", CONF), view=view)
    with pytest.raises(InputError, match=message):
        spec.viewed()


def test_fences_hold_whatever_the_text_holds() -> None:
    assert fenced("a\n```sh\nls\n```") == "````text\na\n```sh\nls\n```\n````"
