"""Tables that are more than scores: examples, prompts, settings, histograms, sweeps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.data.records import Ranking, Scored
from graphcontext.errors import InputError
from graphcontext.files import read_lines
from graphcontext.table.cells import Cell, Column, Made, Measure, Row, TableResult
from graphcontext.table.histogram import counts_of, ranges
from graphcontext.table.page import fenced
from graphcontext.table.retrieved import shares
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


def test_examples_of_each_kind(folder: Path, tmp_path: Path) -> None:
    conf = tmp_path / "own" / "conf"
    shutil.copytree(CONF, conf)
    file = conf / "table" / "tests" / "lost.yaml"
    file.write_text(
        "# graphcontext table tests/lost\ntitle: Lost\npaper: none\nkind: examples\ndatasets: {askubuntu: AskUbuntu}\n"
        "metrics: {rouge1: ROUGE-1}\n"
        "view: {row: base, metric: rouge1, pick: worst, n: 1,\n"
        "       each: [lost_not_in_corpus, lost_not_retrieved, unknown]}\n"
        "rows: [{name: base, label: Base, experiment: tests/base, overrides: ['metric=[rouge1,answered]']}]\n"
    )
    made = api.table("tests/lost", SIX, config_dir=str(conf), root=folder)
    data = json.loads(made.path.with_suffix(".json").read_text())
    assert data["rule"].endswith("worst in rouge1, of each of lost_not_in_corpus, lost_not_retrieved, unknown")
    assert "### unknown: not computed" in made.markdown
    scores = api.run("experiment=tests/base", SIX, "metric=[rouge1,answered]", config_dir=CONF, root=folder).scores()
    for kind, label in (("lost_not_in_corpus", "gold not in corpus"), ("lost_not_retrieved", "not retrieved")):
        lost = sorted((row["rouge1"], item) for item, row in scores.items() if row[kind] == 1)
        assert f"### {label}: {len(lost)} of 6 questions" in made.markdown
        shown = [example for example in data["examples"] if example["kind"] == kind]
        assert [example["item"] for example in shown] == [item for _, item in lost[:1]]
        assert all(hit["title"] in made.markdown for example in shown for hit in example["retrieved"])
    assert data["examples"]


def test_what_two_rows_retrieve_stands_side_by_side(folder: Path) -> None:
    made, data = table("retrieved", folder, SIX)
    [compared] = data["columns"]
    assert sum(compared["shared"].values()) == compared["n"] == 6 and compared["fallen_back"] == 0
    first, second = compared["examples"]
    assert (first["shared"], first["item"]) <= (second["shared"], second["item"])
    assert len(first["row"]) == 1 and len(first["against"]) == 2  # top_k
    both = {hit["id"] for hit in first["row"]} & {hit["id"] for hit in first["against"]}
    assert len(both) == first["shared"]
    page = " ".join(made.markdown.split())  # without padding
    mark = "**" if both else ""
    assert f"| 1 | {mark}{first['row'][0]['title']}{mark} | {first['row'][0]['score']:.4f} |" in page
    assert "| rank | Other | score | Base | score |" in page and first["title"] in page


def test_a_ranking_that_fell_back_is_not_compared() -> None:
    def ranking(*ids: str, fallback: str | None = None) -> Ranking:
        return Ranking("q", tuple(Scored(i, 1.0) for i in ids), fallback=fallback)

    ours = {"a": ranking("1", "2"), "b": ranking("1", "2"), "c": ranking("1", fallback="cosine"), "d": ranking()}
    theirs = {"a": ranking("3", "4"), "b": ranking("2", "3"), "c": ranking("1"), "d": ranking("1")}
    assert shares(ours, theirs) == {"a": 0, "b": 1, "d": 0}


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
    assert rate["here"] == "not run (no config has it)" and "| learning rate" in made.markdown
    assert not (tmp_path / "runs").exists()


def test_settings_with_overrides_are_another_file(tmp_path: Path) -> None:
    made, data = table("settings", tmp_path, "retriever.top_k=7")
    assert made.path.name == "settings+retriever.top_k=7.md" and data["settings"][0]["here"] == 7
    assert table("settings", tmp_path, "llm.batch_size=2")[0].path.name == "settings.md"


def test_settings_of_two_trainings_of_encoders(tmp_path: Path) -> None:
    made = api.table("kgp/t4", root=tmp_path)
    found = {s["label"]: s for s in json.loads(made.path.with_suffix(".json").read_text())["settings"]}
    assert (found["encoder"]["paper_scale"], found["encoder"]["here"]) == ("FacebookAI/roberta-base", "minilm")
    sizes = [found[f"{name}: batch size"]["paper_scale"] for name in ("DPR", "MDR")]
    assert sizes == [256, 150] and [found[f"{name}: hops"]["here"] for name in ("DPR", "MDR")] == [1, 2]
    assert found["DPR: epochs"]["reported"] == "50"
    assert not (tmp_path / "store" / "adapter").exists()


@pytest.mark.parametrize("count", [3, 6, 7, 10])
def test_a_score_on_an_edge_is_in_the_range_that_begins_there(count: int) -> None:
    # np.linspace puts the edges of .3, .6 and .7 a bit above them
    expected = [int(i == min(count, 9)) for i in range(10)]  # 1.0 is in the last range
    assert counts_of([count / 10]) == expected


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
