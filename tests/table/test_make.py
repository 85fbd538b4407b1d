"""Tables made from runs: what is computed, what is only shown, what failed, and what is said under them."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphcontext import api, cli
from graphcontext.errors import InputError
from graphcontext.files import read_lines
from graphcontext.run_folder import Run
from graphcontext.table import compute
from graphcontext.table import make as making
from graphcontext.table.cells import Cell
from graphcontext.table.make import Made

CONF = str(Path(__file__).parent / "conf")
SRC = Path(making.__file__).parents[2]
SIX = "dataset.limit=6"
FIELDS = tuple(field.name for field in dataclasses.fields(Cell))  # the contract's: test_cells.py


def cells_of(done: Made, metric: str = "rouge1") -> dict[str, Cell]:
    assert done.result is not None
    return {cell.row: cell for cell in done.result.cells if cell.metric == metric}


def three(folder: Path, *overrides: str) -> Made:
    return api.table("tests/three", *overrides, config_dir=CONF, root=folder)


def status(done: Made, metric: str = "rouge1") -> dict[str, str]:
    return {row: cell.status for row, cell in cells_of(done, metric).items()}


# -- the cells -----------------------------------------------------------------------------------


def test_each_row_says_what_it_is(made: Made) -> None:
    assert status(made) == {
        "base": "stand-in",  # another data set than the paper's
        "twin": "not run (same stand-in as base)",
        "other": "stand-in",
        "fallen": "fallback",  # 5 of 6 questions fell back
        "extract": "stand-in",
        "absent": "not run (no weights: nowhere/absent)",
        "no_code": "not run (no weights: a seq2seq answer generator)",
    }
    assert status(made, "factsumm") == status(made) | dict.fromkeys(
        ("base", "other", "fallen", "extract"), "not run (no FactSumm extractor yet)"
    )
    assert made.n_failed == 0


def test_the_json_has_the_fields_of_the_contract(made: Made) -> None:
    table = json.loads(made.path.with_suffix(".json").read_text())
    assert {"table", "scale", "footnotes", "cells"} <= set(table)
    assert (table["table"], table["scale"]) == ("tests/tiny", "sample")
    assert len(table["cells"]) == 7 * 3 and all(tuple(cell) == FIELDS for cell in table["cells"])
    assert {cell["column"] for cell in table["cells"]} == {"cqa_sample"}


def test_a_cell_is_its_runs_mean(made: Made, folder: Path) -> None:
    cell = cells_of(made)["other"]
    run = Run(folder / "runs" / str(cell.run))
    scores = [row["rouge1"] for row in read_lines(run.path / "scores.jsonl")]
    assert cell.value == pytest.approx(sum(scores) / 6) == run.metrics["metrics"]["rouge1"]["value"]
    assert cell.n == 6 and cell.seeds == 1 and cell.ci95[0] < cell.value < cell.ci95[1]
    assert cell.diff == pytest.approx(cell.value - cells_of(made)["base"].value)
    assert (cell.baseline, cell.family) == ("base", "cqa_sample/rouge1 against base (3)")
    assert cells_of(made)["base"].p is None and cells_of(made)["twin"].p is None


def test_the_papers_numbers_stand_beside_one_column_for_both_data_sets(made: Made) -> None:
    assert cells_of(made)["base"].reported == {"AskUbuntu": 0.217, "Unix": 0.179}
    assert cells_of(made)["other"].reported == {"AskUbuntu": None, "Unix": 0.5}
    assert cells_of(made)["fallen"].reported is None
    assert made.path.name == "tiny+dataset.limit=6.md" and "(paper: AskUbuntu / Unix)" in made.markdown


def test_measured_cells_do_not_follow_the_papers_numbers(made: Made, folder: Path, tmp_path: Path) -> None:
    conf = tmp_path / "table" / "conf"
    shutil.copytree(CONF, conf)
    (conf / "table" / "tests" / "other.yaml").write_text(
        "# graphcontext table tests/other\ntitle: Other numbers\npaper: none\nbaseline: base\n"
        "datasets: {askubuntu: AskUbuntu}\nmetrics: {rouge1: ROUGE-1, rougeL: ROUGE-L}\nrows:\n"
        "  - {name: base, label: B, experiment: tests/base, reported: {askubuntu: {rouge1: 0.999, rougeL: 0.001}}}\n"
        "  - {name: extract, label: E, experiment: tests/extract}\n"
    )
    other = api.table("tests/other", SIX, config_dir=str(conf), root=folder)
    for metric, reported in (("rouge1", 0.999), ("rougeL", 0.001)):
        ours, theirs = cells_of(made, metric), cells_of(other, metric)
        assert theirs["base"].reported == reported != ours["base"].reported
        for row in ("base", "extract"):
            assert (ours[row].value, ours[row].ci95, ours[row].p) == (
                theirs[row].value,
                theirs[row].ci95,
                theirs[row].p,
            )


def test_footnotes_say_each_substitution_once(made: Made) -> None:
    assert made.result is not None
    notes = made.result.footnotes
    assert "dataset: cqa_sample stands in for AskUbuntu, Unix" in notes
    assert "overrides: dataset.limit=6" in notes and "n=6" in notes and "A note of the table." in notes
    assert "fall-back to cosine: 5 of 6 questions (83%): fallen" in notes
    assert len(set(notes)) == len(notes)


def test_rows_that_are_one_run_are_computed_and_tested_once(made: Made, folder: Path, asked: list[str]) -> None:
    assert len(asked) == 3 * 6  # base, other and fallen; twin is base
    done = api.table("tests/tiny", SIX, "table.rows=twin", config_dir=CONF, root=folder)
    assert status(done)["twin"] == "stand-in"
    assert status(done)["base"] == "not run (same stand-in as twin)"  # not selected: its run is twin's
    assert done.path == made.path  # the file keeps its plain name


# -- which rows are computed ---------------------------------------------------------------------


def test_rows_that_are_not_selected_show_what_is_done(tmp_path: Path) -> None:
    first = three(tmp_path, "dataset.limit=3", "table.rows=extract")
    assert status(first) == {
        "base": "not run (not selected)",
        "other": "not run (not selected)",
        "extract": "stand-in",
    }
    second = three(tmp_path, "dataset.limit=3", "table.rows=base")
    assert status(second)["extract"] == "stand-in" and status(second)["other"] == "not run (not selected)"
    assert cells_of(second)["extract"].value == cells_of(first)["extract"].value
    assert cells_of(second)["extract"].p is not None  # tested now that the baseline is there


def test_a_done_row_is_shown_where_its_weights_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three(tmp_path, "dataset.limit=2", "table.rows=extract")
    monkeypatch.setattr(compute, "missing_models", lambda config: ["gone"])
    again = three(tmp_path, "dataset.limit=2")
    assert status(again) == {
        "base": "not run (no weights: gone)",
        "other": "not run (no weights: gone)",
        "extract": "stand-in",
    }


def test_another_scored_side_stands_in_the_files_name_and_in_its_notes(tmp_path: Path) -> None:
    done = three(tmp_path, "split=validation", "dataset.limit=2", "table.rows=extract")
    assert done.path.name == "three+split=validation-dataset.limit=2.md"
    assert status(done)["extract"] == "stand-in"
    assert "overrides: split=validation dataset.limit=2" in done.markdown


def test_a_data_set_of_the_users_own_is_one_column_without_the_papers_numbers(folder: Path, tmp_path: Path) -> None:
    dump = tmp_path / "my.dump"
    shutil.copytree(SRC / "graphcontext" / "data" / "sample" / "cqa_sample", dump)
    words = ["dataset=stackexchange", f"dataset.path={dump}", "dataset.limit=2", "table.rows=extract"]
    done = three(folder, *words)
    assert done.path.name == "three@stackexchange-my.dump+dataset.limit=2.md"
    assert {c.name for c in done.path.parent.glob("three@*")} == {
        f"three@stackexchange-my.dump+dataset.limit=2.{end}" for end in ("md", "csv", "tex", "png", "json")
    }
    assert done.result is not None and [c.label for c in done.result.columns] == ["stackexchange-my.dump"]
    assert cells_of(done)["extract"].reported is None and cells_of(done)["extract"].status == "stand-in"
    assert any(note.startswith("dataset: stackexchange-my.dump, chosen by you") for note in done.result.footnotes)
    with pytest.raises(InputError, match="nowhere"):
        three(folder, "dataset=stackexchange", f"dataset.path={tmp_path}/nowhere", "dataset.limit=2")


def test_data_of_the_paper_that_is_not_here_is_a_reason_not_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "none"))
    done = three(folder, "scale=paper", SIX, "table.rows=extract")
    assert done.path.parent == folder / "results" / "paper" / "tests" and done.n_failed == 0
    assert status(done)["extract"].startswith("not run (no data")


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with neither models nor data nor the index of Wikidata."""
    for name in ("GRAPHCONTEXT_HOME", "GRAPHCONTEXT_DATA", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "empty" / name))
    return tmp_path


def test_without_the_index_of_wikidata_a_table_has_all_its_rows(empty_home: Path) -> None:
    done = api.table("gcg/t3", "scale=paper", root=empty_home)
    assert done.path == empty_home / "results" / "paper" / "gcg" / "t3.md" and done.result is not None
    cells = done.result.cells
    assert {row.id for row in done.result.rows} == {cell.row for cell in cells} and len(done.result.columns) == 3
    assert all(cell.status.startswith("not run (") and cell.value is None for cell in cells)


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ("llm.batch_size=2", "fig3.md"),  # how, not what
        ("retriever.top_k=7", "fig3+retriever.top_k=7.md"),
        ("one_hop.path=other.sqlite", "fig3+one_hop.path=other.sqlite.md"),  # another source, though neither is here
    ],
)
def test_without_the_index_a_file_is_named_by_what_alters_results(empty_home: Path, override: str, name: str) -> None:
    assert api.table("gcg/fig3", "scale=paper", override, root=empty_home).path.name == name


# -- overrides that only some rows can follow ----------------------------------------------------


def served(folder: Path, *overrides: str) -> Made:
    return api.table("tests/served", *overrides, "dataset.limit=2", config_dir=CONF, root=folder)


@pytest.mark.parametrize("rows", ["extract", "extract,tuned"])
def test_a_row_that_an_override_does_not_fit_says_so(rows: str, folder: Path) -> None:
    done = served(folder, "llm.serve=llama_cpp", f"table.rows={rows}")
    assert status(done)["extract"] == "stand-in"
    # the override is right, and the row's own adapter why it cannot follow
    assert "llm.adapter=gcg/sft with llm.serve=llama_cpp" in status(done)["tuned"]


def test_an_override_that_is_wrong_for_a_selected_row_is_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match="top_k=-1"):
        served(folder, "retriever.top_k=-1")
    with pytest.raises(InputError, match="llama_cp"):
        served(folder, "llm.serve=llama_cp")


# -- names ---------------------------------------------------------------------------------------


def test_another_baseline_stands_in_the_files_name(made: Made, folder: Path) -> None:
    done = api.table("tests/tiny", SIX, "table.baseline=extract", config_dir=CONF, root=folder)
    assert done.path.name == "tiny+dataset.limit=6-table.baseline=extract.md"
    assert cells_of(done)["other"].baseline == "extract"
    none = api.table("tests/tiny", SIX, "table.baseline=null", config_dir=CONF, root=folder)
    assert none.path.name == "tiny+dataset.limit=6-table.baseline=null.md"
    same = api.table("tests/tiny", SIX, "table.baseline=base", config_dir=CONF, root=folder)
    assert same.path == made.path


def test_several_data_sets_are_columns_and_footnotes_say_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "table" / "conf"
    shutil.copytree(CONF, conf)
    (conf / "table" / "tests" / "two.yaml").write_text(
        "# graphcontext table tests/two\ntitle: Two\npaper: none\nbaseline: extract\n"
        "datasets: {cqa_sample: Sample, stackexchange: Site, unix: Unix}\nmetrics: {rouge1: ROUGE-1}\nrows:\n"
        "  - {name: extract, label: E, experiment: tests/extract, reported: {stackexchange: {rouge1: 0.3}}}\n"
        "  - {name: fallen, label: F, experiment: tests/fallen}\n"
    )
    sample = SRC / "graphcontext" / "data" / "sample" / "cqa_sample"
    shutil.copytree(sample, tmp_path / "data" / "stackexchange" / "ai.stackexchange.com")
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "data"))
    done = api.table("tests/two", "dataset.limit=3", config_dir=str(conf), root=tmp_path)
    assert done.result is not None and [(c.id, c.label) for c in done.result.columns] == [
        ("cqa_sample", "Sample"),  # Unix falls together with it
        ("stackexchange", "Site"),
    ]
    found = {(cell.row, cell.column): cell for cell in done.result.cells}
    assert found["extract", "cqa_sample"].reported is None and found["extract", "stackexchange"].reported == 0.3
    assert found["extract", "stackexchange"].status in ("ok", "close", "underpowered", "off")
    assert found["extract", "stackexchange"].run != found["extract", "cqa_sample"].run
    assert {cell.family for cell in done.result.cells if cell.row == "fallen"} == {
        "cqa_sample/rouge1 against extract (1)",
        "stackexchange/rouge1 against extract (1)",
    }
    notes = done.result.footnotes
    assert "n=3" in notes and "dataset: cqa_sample stands in for Unix" in notes
    assert "fall-back to cosine: 2 of 3 questions (67%): fallen on Sample; fallen on Site" in notes


# -- the budget ----------------------------------------------------------------------------------


def test_a_budget_cuts_llm_rows_to_one_subset(folder: Path, made: Made) -> None:
    # an LLM row of 6 questions is planned at some seconds (1000 tokens/s prefill, 100 decode): about 6 × 1.8 s, two
    # rows at 22 s or .006 hours; .003 leaves about half of the questions
    done = three(folder, SIX, "budget.hours=0.003")
    cells = cells_of(done)
    n = cells["base"].n
    assert n is not None and 0 < n < 6 and cells["other"].n == n and cells["extract"].n == 6
    whole = Run(folder / "runs" / str(cells_of(made)["base"].run)).scores()
    cut = Run(folder / "runs" / str(cells["base"].run)).scores()
    assert set(cut) < set(whole) and all(cut[i]["rouge1"] == whole[i]["rouge1"] for i in cut)
    assert done.result is not None and f"n={n}: base, other" in done.result.footnotes
    extract = Run(folder / "runs" / str(cells["extract"].run)).scores()  # tested over the items that both have
    expected = sum(extract[i]["rouge1"] - cut[i]["rouge1"] for i in cut) / n
    assert cells["extract"].diff == pytest.approx(expected)
    alone = three(folder, SIX, "budget.hours=0.003", "table.rows=base")  # whichever rows are chosen
    assert {row: cell.n for row, cell in cells_of(alone).items()} == {"base": n, "other": n, "extract": 6}
    none = three(folder, SIX, "budget.hours=0.00001")
    assert status(none) == {
        "base": "not run (budget)",
        "other": "not run (budget)",
        "extract": "stand-in",
    }


# -- faults --------------------------------------------------------------------------------------


@pytest.mark.batch_raises
def test_t21_t37_a_failing_row_leaves_the_others(folder: Path) -> None:
    done = api.table("tests/faulty", SIX, config_dir=CONF, root=folder)
    found = status(done)
    assert found["refusing"] == "not run (failed: the server refused the key (401))"
    assert found["buggy"].startswith("not run (failed: all 6 items failed, the first because: ValueError: list index")
    assert found["base"] == found["flaky"] == "stand-in" and done.n_failed == 3
    flaky = cells_of(done)["flaky"]
    scores = read_lines(folder / "runs" / str(flaky.run) / "scores.jsonl")
    failed = [row for row in scores if row["status"] == "failed"]
    assert failed and all(row["rouge1"] == 0 and "ValueError" in row["reason"] for row in failed)
    assert flaky.n == 6 and flaky.value == pytest.approx(sum(row["rouge1"] for row in scores) / 6)
    assert done.result is not None and f"n=6 ({len(failed)} failed): flaky" in done.result.footnotes


def test_a_row_that_fails_as_a_whole_leaves_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphcontext.pipeline import Pipeline

    def broken(self: Pipeline, *_: object) -> None:
        raise ZeroDivisionError("no node")

    monkeypatch.setattr(Pipeline, "graphs", broken)
    done = three(folder, "dataset.limit=5", "table.rows=extract")
    assert status(done)["extract"].startswith("not run (failed: retrieve: ZeroDivisionError: no node (test_make.py:")
    assert done.n_failed == 1


@pytest.mark.batch_raises
def test_a_failed_row_is_exit_code_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main(["table", "tests/faulty", SIX, "--config-dir", CONF, "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "table: results/sample/tests/faulty+dataset.limit=6.md" and err == ""


def test_a_table_of_rows_that_cannot_run_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "conf" / "table" / "mine" / "empty.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "# graphcontext table mine/empty\ntitle: Empty\npaper: none\ndatasets: {askubuntu: AskUbuntu}\n"
        "metrics: {rouge1: ROUGE-1}\nrows: [{name: a, label: A, not_run: 'no code'}]\n"
    )
    done = api.table("mine/empty", config_dir=str(tmp_path / "mine" / "conf"), root=tmp_path)
    assert status(done) == {"a": "not run (no code)"} and done.path.is_file()


# -- once more -----------------------------------------------------------------------------------


def test_a_finished_table_is_shown_again_without_work(made: Made, folder: Path) -> None:
    making.make("tests/tiny", [SIX], CONF, folder, True)  # other tests wrote other overrides to this name
    files = [p for p in folder.rglob("*") if p.is_file() and p.name.startswith("tiny.")]
    files += [p for p in (folder / "runs").rglob("*") if p.is_file()]
    before = {p: p.stat().st_mtime_ns for p in files}
    code = f"""
import sys
from graphcontext import api
made = api.table("tests/tiny", "{SIX}", config_dir={CONF!r})
heavy = ("torch", "transformers", "hydra", "omegaconf", "spacy", "sklearn", "matplotlib", "lxml")
print(made.n_failed, [m for m in heavy if m in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("0 []\n", "", 0)
    assert len(files) > 20 and {p: p.stat().st_mtime_ns for p in files} == before


def test_a_damaged_run_is_made_again_from_the_store(folder: Path) -> None:
    before = making.make("tests/tiny", [SIX], CONF, folder, True).path.read_text()
    for file in (folder / "runs").glob("*/scores.jsonl"):
        file.write_text(file.read_text().partition("\n")[2])  # a line less: n would be less
    assert making.make("tests/tiny", [SIX], CONF, folder, True).path.read_text() == before
