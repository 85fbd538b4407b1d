"""A human study from export to table: blinded files, labels back, win rates and ratings by hand."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphcontext import api, cli, ratings
from graphcontext.data.doccano import Judgement, Labels
from graphcontext.errors import InputError, RunError
from graphcontext.evaluate.statistics import permutation_p
from graphcontext.files import jsonl, read_lines
from graphcontext.run_folder import Run
from graphcontext.table.cells import Cell, Made
from graphcontext.table.claims import load_claims
from graphcontext.table.rated import panel_of
from graphcontext.table.spec import load_spec
from graphcontext.table.study import PAIR, RATING, Item, Study, instructions, keep, read_study
from graphcontext.table.verdicts import Judged

CONF = str(Path(__file__).parent / "conf")
SIX = "dataset.limit=6"
NAME = "tests/raters"


@pytest.fixture
def place(folder: Path, made: Made, tmp_path: Path) -> Path:
    """A working folder whose rows are computed already (after ``made``), without results of other tests."""
    api.table(NAME, SIX, config_dir=CONF, root=folder, quiet=True)
    for name in ("store", "runs"):
        (tmp_path / name).symlink_to(folder / name)
    return tmp_path


def export(place: Path, *overrides: str) -> tuple[Study, list[Path]]:
    return ratings.export_ratings(NAME, [SIX, *overrides], CONF, place, True)


def labelled(study: Study, rater: str, label: Callable[[Item], str | None], folder: Path) -> str:
    """What Doccano writes for one rater, who sees the files alone but here answers by the key."""
    path = folder / f"{rater}.jsonl"
    found = [(item, label(item)) for item in study.items]
    rows = [{"id": n, "item": item.item, "label": [given] if given else []} for n, (item, given) in enumerate(found)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def take(place: Path, *files: str, **settings: bool) -> tuple[Study, list[str]]:
    given = [f"ratings.{key}={str(value).lower()}" for key, value in settings.items()]
    return ratings.import_ratings(NAME, files, [SIX, *given], CONF, place)


def table(place: Path) -> Made:
    return api.table(NAME, SIX, config_dir=CONF, root=place)


def cells(done: Made) -> dict[str, Cell]:
    assert done.result is not None
    return {cell.metric: cell for cell in done.result.cells if cell.row == "extract"}


def side(item: Item, row: str = "extract") -> str:
    return "AB"[item.rows.index(row)]


# -- the blinded files ---------------------------------------------------------------------------


def test_the_files_for_raters_do_not_say_which_system_is_which(place: Path) -> None:
    study, files = export(place)
    assert [path.name for path in files] == ["pairs.jsonl", "ratings.jsonl", "instructions.md"]
    assert study.folder == place / "results/sample/tests/raters+dataset.limit=6.ratings"
    pairs, single = (read_lines(path) for path in files[:2])
    assert len(pairs) == len(single) == 4  # view.n
    for row in [*pairs, *single]:
        assert set(row) == {"text", "label", "item"} and row["label"] == []
        assert len(row["item"]) == 12 and set(row["item"]) <= set("0123456789abcdef")
    runs = {r: Run(place / "runs" / n) for r, n in _runs(place).items()}
    answers = {row: {p.id: p.prediction.strip() for p in run.predictions()} for row, run in runs.items()}
    asked = {q.id: q for q in runs["base"].questions()}
    shown = {row["item"]: row["text"] for row in [*pairs, *single]}
    for item in study.items:
        texts = [answers[row][item.question] for row in item.rows]
        names = ["Answer A", "Answer B"] if item.kind == PAIR else ["Answer"]
        parts = [("Question", asked[item.question].text.strip()), *zip(names, texts)]
        assert shown[item.item] == "\n\n".join(f"--- {name} ---\n{text}" for name, text in parts)  # and nothing else
        assert item.kind == PAIR or item.rows == ("extract",)
    blinded = "".join(path.read_text() for path in files)
    for text in [*(a for of in answers.values() for a in of.values()), *(q.text for q in asked.values())]:
        blinded = blinded.replace(json.dumps(text, ensure_ascii=False)[1:-1], "")
    for word in ("base", "extract", "Plain system", "Extractive system", "instant", "tfidf", *_runs(place).values()):
        assert word not in blinded


def _runs(place: Path) -> dict[str, str]:
    done = table(place)
    lines = json.loads(done.path.with_suffix(".json").read_text())["cells"]
    assert lines
    names = {p.name: Run(p).config for p in (place / "runs").iterdir() if (p / "metrics.json").is_file()}
    six = {n: c for n, c in names.items() if c["dataset"]["limit"] == 6}
    target = {"base": "graphcontext.generate.llm", "extract": "graphcontext.generate.answerbot"}
    return {
        row: next(
            n
            for n, c in six.items()
            if c["generator"]["_target_"].startswith(module) and c["retriever"]["_target_"].endswith("TFIDF")
        )
        for row, module in target.items()
    }


def test_the_order_of_a_pair_is_random_and_the_key_knows_it(place: Path) -> None:
    found = set()
    for seed in range(4):
        study, _ = export(place, f"ratings.seed={seed}", "ratings.n=6")
        found |= {item.rows for item in study.items if item.kind == PAIR}
        assert read_lines(study.folder / "key.jsonl") == [
            {**dataclasses.asdict(item), "rows": list(item.rows)} for item in study.items
        ]
        shutil.rmtree(study.folder)
    assert found == {("base", "extract"), ("extract", "base")}


def test_the_same_command_writes_the_same_bytes_and_another_study_is_not_written_over(place: Path) -> None:
    study, _ = export(place)
    before = {p.name: p.read_bytes() for p in study.folder.iterdir()}
    export(place)
    assert {p.name: p.read_bytes() for p in study.folder.iterdir()} == before
    for other in ("ratings.seed=1", "ratings.n=3", "ratings.gold=true"):
        with pytest.raises(InputError, match="holds another study"):
            export(place, other)
    assert {p.name: p.read_bytes() for p in study.folder.iterdir()} == before


def test_the_whole_set_is_drawn_where_it_is_smaller_and_gold_is_shown_on_demand(place: Path) -> None:
    study, files = export(place, "ratings.n=500", "ratings.gold=true")
    assert sum(item.kind == PAIR for item in study.items) == 6
    texts = [row["text"] for row in read_lines(files[0])]
    assert all("--- Accepted answer, for reference ---" in text for text in texts)
    assert "The accepted answer is shown" in files[2].read_text()
    assert "No reference answer is shown" in instructions(5, gold=False)
    assert "`1`, `2`, `3`:" in instructions(3, gold=False)


@pytest.mark.batch_raises
def test_items_that_failed_in_a_run_are_not_drawn_but_counted(place: Path) -> None:
    table_yaml = Path(CONF) / "table" / "tests" / "raters.yaml"
    conf = place / "own" / "conf"
    shutil.copytree(CONF, conf)
    shutil.copy(Path(CONF).parent / "instant.py", conf.parent)
    text = table_yaml.read_text().replace("tests/extract\n", "tests/buggy\n    overrides: [generator.every=2]\n")
    (conf / "table" / "tests" / "flaky.yaml").write_text(text)
    study, _ = ratings.export_ratings("tests/flaky", [SIX, "ratings.n=6"], str(conf), place, True)
    left = study.facts["left_out"]["cqa_sample"]
    assert left > 0 and sum(item.kind == PAIR for item in study.items) == 6 - left


# -- labels back ---------------------------------------------------------------------------------


def test_without_ratings_the_table_says_so_and_the_exit_code_is_0(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert cli.main(["table", NAME, SIX, "--config-dir", CONF, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "not run (no ratings: graphcontext ratings export tests/raters dataset.limit=6)" in out
    export(place)
    done = table(place)  # exported is not yet rated
    assert {cell.status for cell in cells(done).values()} == {
        "not run (no ratings: graphcontext ratings export tests/raters dataset.limit=6)"
    }
    no_code = [c for c in done.result.cells if c.row == "no_code"]  # type: ignore[union-attr]
    assert {c.status for c in no_code} == {"not run (no code)"}


def test_from_labels_to_the_table(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    pairs = [item for item in study.items if item.kind == PAIR]
    tie, lost = pairs[0].item, pairs[1].item

    def ann(item: Item) -> str:
        if item.kind == RATING:
            return "4"
        return "tie" if item.item == tie else side(item, "base") if item.item == lost else side(item)

    def bob(item: Item) -> str:
        return "5" if item.kind == RATING else side(item)

    _, said = take(place, labelled(study, "ann", ann, tmp_path), labelled(study, "bob", bob, tmp_path))
    assert said == ["ann: 8 labels", "bob: 8 labels"]
    done = table(place)
    found = cells(done)
    # wins per item, over two raters: (½ + 1)/2, (0 + 1)/2, 1, 1: mean .8125
    win = found["win_rate"]
    assert win.value == pytest.approx(81.25) and win.n == 4 and win.diff == pytest.approx(31.25)
    import numpy as np

    assert win.p == permutation_p(np.array([0.25, 0.0, 0.5, 0.5]), 0) == win.p_holm  # exact: 3 items, 2/8
    assert win.family == "cqa_sample/win_rate against 50 % (1)" and win.baseline == "base"
    assert win.reported == {"AskUbuntu": 58, "Unix": 63} and win.status == "stand-in"
    # Wilson's of 3.25 in 4: (.8125 + .4802 ± 1.96 √(.0381 + .0600)) / 1.9604 = .6594 ± .3132
    assert win.ci95 == pytest.approx((34.62, 97.26), abs=0.01)
    assert win.diff_ci95 == pytest.approx((-15.38, 47.26), abs=0.01)
    assert found["rating"].value == 4.5 and found["rating"].ci95 == (4.5, 4.5)
    assert found["rating_mode"].value == 4  # 4 and 5 four times each: the lower one
    assert found["rating_mode"].reported == {"AskUbuntu": 4, "Unix": 4}
    data = json.loads(done.path.with_suffix(".json").read_text())
    [panel] = data["ratings"]
    assert panel["levels"] == [0, 0, 0, 4, 4] and panel["sides"] == {"won": 6, "lost": 1, "tie": 1}
    assert panel["agreement"][PAIR]["name"] == "Cohen's kappa" and panel["agreement"][PAIR]["n_items"] == 4
    assert panel["agreement"][RATING]["kappa"] == 0.0  # ann says 4 throughout, bob 5
    assert "## Ratings per level" in done.markdown and "## Raters" in done.markdown
    assert "6/1/1" in done.markdown and "no reference answer was shown" in done.markdown
    assert done.path.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert table(place).markdown == done.markdown


def test_three_raters_have_fleiss_kappa(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    files = [labelled(study, f"r{n}", lambda i: "3" if i.kind == RATING else side(i), tmp_path) for n in range(3)]
    take(place, *files, identical=True)
    done = table(place)
    assert "Fleiss' kappa –" in done.markdown  # everyone says the same: nothing to be expected by chance
    assert cells(done)["win_rate"].value == 100 and cells(done)["rating_mode"].value == 3


def test_ratings_of_other_answers_do_not_count(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    take(place, labelled(study, "ann", lambda i: "3" if i.kind == RATING else "tie", tmp_path))
    facts = json.loads((study.folder / "export.json").read_text())
    facts["answers"]["cqa_sample"]["extract"] = "another hash"
    (study.folder / "export.json").write_text(json.dumps(facts))
    assert {c.status for c in cells(table(place)).values()} == {
        "not run (the ratings are of other answers: move them away and export again)"
    }


def test_one_task_alone_can_be_labelled(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    take(place, labelled(study, "ann", lambda i: None if i.kind == RATING else side(i, "base"), tmp_path))
    found = cells(table(place))
    assert found["win_rate"].value == 0 and found["rating"].status == "not run (no ratings were labelled)"


def test_labels_can_be_corrected_and_nothing_is_half_written(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    take(place, labelled(study, "ann", lambda i: "3" if i.kind == RATING else "tie", tmp_path))
    kept = (study.folder / "judgements.jsonl").read_bytes()
    bad = labelled(study, "bob", lambda i: "6" if i.kind == RATING else "tie", tmp_path)
    with pytest.raises(InputError, match="4 faults, nothing imported"):
        take(place, bad)
    half = labelled(study, "bob", lambda i: "2" if i.kind == RATING and i == study.items[-1] else None, tmp_path)
    with pytest.raises(InputError, match=r"3 of 4 items have no label .*ratings\.partial=true takes"):
        take(place, half)
    assert (study.folder / "judgements.jsonl").read_bytes() == kept
    take(place, half, partial=True)
    again, said = take(place, labelled(study, "ann", lambda i: "2" if i.kind == RATING else "tie", tmp_path))
    assert said == ["ann: 8 labels", "4 labels took the place of earlier ones"]
    rows = read_lines(study.folder / "judgements.jsonl")[:-1]
    assert len(rows) == 8 + 1 and again.folder == study.folder
    assert {r["label"] for r in rows if r["rater"] == "ann"} == {"2", "tie"}


def both(item: Item) -> str:
    """Labels that differ, the same for every rater."""
    return "234"[int(item.item, 16) % 3] if item.kind == RATING else side(item)


def test_one_rater_under_two_names_is_refused(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    ann, copy = (labelled(study, name, both, tmp_path) for name in ("ann", "copy"))
    message = r"^ann and copy gave the same labels to all 8 items .*ratings\.identical=true takes both$"
    with pytest.raises(InputError, match=message):
        take(place, ann, copy)
    assert not (study.folder / "judgements.jsonl").exists()
    take(place, ann)
    with pytest.raises(InputError, match=message):
        take(place, copy)
    again = labelled(study, "ann (1)", both, tmp_path)  # a browser's name for the second download
    assert take(place, again)[1] == ["ann: 8 labels"]
    assert {j.rater for j in read_study(study.folder).judgements} == {"ann"}
    take(place, copy, replace=True)
    assert {j.rater for j in read_study(study.folder).judgements} == {"copy"}
    take(place, ann, identical=True)
    assert {j.rater for j in read_study(study.folder).judgements} == {"ann", "copy"}


def test_raters_who_say_one_thing_throughout_or_share_few_items_are_two(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    same = [labelled(study, n, lambda i: "3" if i.kind == RATING else "tie", tmp_path) for n in ("ann", "bob")]
    take(place, *same)
    few = [labelled(study, n, lambda i: side(i) if i.kind == PAIR else None, tmp_path) for n in ("cid", "dan")]
    take(place, *few)  # 4 items
    assert len(read_study(study.folder).judgements) == 8 + 8 + 4 + 4


def test_labels_of_two_imports_at_once_are_both_kept(place: Path) -> None:
    study, _ = export(place)
    items = [item.item for item in study.items if item.kind == PAIR]
    given = {rater: tuple(Judgement(rater, item, "tie") for item in items) for rater in ("ann", "bob")}
    for judgements in given.values():  # either read the study before the other stored anything
        keep(study, Labels(judgements, ()))
    assert {j.rater for j in read_study(study.folder).judgements} == {"ann", "bob"}
    assert not list(study.folder.glob("*.lock"))


def test_a_row_that_loses_is_not_the_best(place: Path, tmp_path: Path) -> None:
    study, _ = export(place, "ratings.n=6")
    take(place, labelled(study, "ann", lambda i: None if i.kind == RATING else side(i, "base"), tmp_path))
    done = table(place)
    lost = cells(done)["win_rate"]
    assert (lost.value, lost.diff, lost.p_holm) == (0.0, -50.0, pytest.approx(2 / 64))
    assert lost.ci95 == pytest.approx((0.0, 39.03), abs=0.01)  # Wilson's of 0 in 6: it has a width
    assert "**0.0**" not in done.markdown and "textbf{0.0}" not in done.path.with_suffix(".tex").read_text()


def test_figure_3s_numbers_are_those_of_the_tuned_model() -> None:
    rows = load_spec("gcg/fig3").rows
    assert {r.name: r.overrides for r in rows if r.reported} == {"graph_context_gen_sft": ("llm.adapter=gcg/sft",)}
    [claim] = [c for c in load_claims("gcg").claims if c.id == "raters_prefer_it"]
    assert claim.left.rows == ("graph_context_gen_sft",)


def test_a_claim_is_tested_by_the_raters(place: Path, tmp_path: Path) -> None:
    study, _ = export(place, "ratings.n=6")
    take(place, labelled(study, "ann", lambda i: "3" if i.kind == RATING else side(i), tmp_path))
    table(place)
    conf = tmp_path / "claimed" / "conf"
    shutil.copytree(CONF, conf)
    (conf / "claims").mkdir()
    text = "{table: tests/raters, row: extract, metric: win_rate}"
    (conf / "claims" / "tests.yaml").write_text(
        "# graphcontext claims tests\npaper: P\nclaims:\n  - {id: won, text: More than half., place: A.6, "
        f"left: {text}, relation: greater, right: {{value: 50}}}}\n"
    )
    claims = load_claims("tests", str(conf))
    [verdict] = Judged(claims, "sample", place).verdicts
    assert verdict.verdict == "supported" and verdict.n == 6  # 6 of 6 won: p = 2/64
    assert (verdict.left_value, verdict.right_value, verdict.diff) == (100.0, 50.0, 50.0)
    assert verdict.p == pytest.approx(2 / 64)


# -- several rows and data sets ------------------------------------------------------------------


def study_of(*items: Item, levels: int = 3, judgements: tuple[Judgement, ...] = ()) -> Study:
    return Study(Path("x"), {"levels": levels}, items, judgements)


def test_equal_answers_of_two_rows_are_one_item_that_counts_for_both() -> None:
    items = (Item("i", RATING, "d", "q", ("one",)), Item("i", RATING, "d", "q", ("two",)))
    study = study_of(*items, judgements=(Judgement("ann", "i", "2"),))
    assert study.groups() == [["i"]]
    assert panel_of(study, "d", "one").ratings == panel_of(study, "d", "two").ratings == {"q": 2.0}
    assert panel_of(study, "d", "one").mode == 2 and panel_of(study, "e", "one").mode is None


def test_several_data_sets_have_files_of_their_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = place / "two" / "conf"
    shutil.copytree(CONF, conf)
    shutil.copy(Path(CONF).parent / "instant.py", conf.parent)
    text = (Path(CONF) / "table/tests/raters.yaml").read_text()
    text = text.replace("{askubuntu: AskUbuntu, unix: Unix}", "{cqa_sample: Sample, stackexchange: Site}")
    text = text[: text.index("    reported:")]
    (conf / "table/tests/two.yaml").write_text(text)
    sample = Path(api.__file__).parent / "data" / "sample" / "cqa_sample"
    shutil.copytree(sample, place / "data" / "stackexchange" / "ai.stackexchange.com")
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(place / "data"))
    study, files = ratings.export_ratings("tests/two", ["dataset.limit=3"], str(conf), place, True)
    assert [p.name for p in files] == [
        *("pairs-cqa_sample.jsonl", "ratings-cqa_sample.jsonl"),
        *("pairs-stackexchange.jsonl", "ratings-stackexchange.jsonl", "instructions.md"),
    ]
    assert [len(group) for group in study.groups()] == [3, 3, 3, 3]
    assert len({name for group in study.groups() for name in group}) == 12


# -- wrong input ---------------------------------------------------------------------------------


def test_a_damaged_study_is_told(place: Path) -> None:
    study, _ = export(place)
    key = study.folder / "key.jsonl"
    key.write_text(key.read_text()[:-40])
    with pytest.raises(InputError, match=r"key\.jsonl is damaged"):
        table(place)
    (study.folder / "export.json").write_text("{")
    with pytest.raises(InputError, match="is damaged: delete it and export again"):
        table(place)


def test_rows_that_cannot_run_leave_nothing_to_rate(place: Path) -> None:
    conf = place / "none" / "conf"
    shutil.copytree(CONF, conf)
    shutil.copy(Path(CONF).parent / "instant.py", conf.parent)
    text = (Path(CONF) / "table/tests/raters.yaml").read_text().replace("experiment: tests/extract", "not_run: 'no'")
    (conf / "table/tests/alone.yaml").write_text(text)
    with pytest.raises(RunError, match="nothing to rate: no row beside base has answers"):
        ratings.export_ratings("tests/alone", [SIX], str(conf), place, True)


WRONG = {
    "no verb": ([], "ratings needs export PAPER/ID or import PAPER/ID FILE …, got none"),
    "another verb": (["send", "gcg/fig3"], "ratings needs export PAPER/ID"),
    "no table": (["export"], "ratings needs export PAPER/ID"),
    "a table of another kind": (["export", "gcg/t3"], "gcg/t3 is a table of kind scores"),
    "an unknown table": (["export", "gcg/fig33"], "no such table; did you mean gcg/fig3?"),
    "files to export": (["export", "gcg/fig3", "x.jsonl"], "ratings export needs one PAPER/ID"),
    "a key": (["export", "gcg/fig3", "ratings.m=3"], "ratings.m=3: no such key"),
    "a key of export": (["import", "gcg/fig3", "x", "ratings.n=3"], "ratings.n=3: no such key"),
    "a number": (["export", "gcg/fig3", "ratings.n=many"], "ratings.n='many' is text; allowed: a whole number"),
    "too few": (["export", "gcg/fig3", "ratings.n=0"], "ratings.n=0; allowed: a whole number from 1"),
    "a word": (["export", "gcg/fig3", "ratings.gold=[x"], "ratings.gold=[x does not parse"),
    "partial": (["import", "gcg/fig3", "x", "ratings.partial=3"], "ratings.partial=3 is a whole number"),
    "nothing exported": (["import", "gcg/fig3", "x.jsonl"], "nothing was exported there; first: graphcontext ratings"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_words_are_one_line(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, message = WRONG[what]
    assert cli.main(["ratings", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


def test_the_verb_says_what_to_do_next(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert cli.main(["ratings", "export", NAME, SIX, "--config-dir", CONF, "--quiet"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "for the raters:" and out[1].endswith("pairs.jsonl")
    assert any(line.startswith("not for the raters: ") and "key.jsonl" in line for line in out)
    assert out[-2] == (
        f"then: graphcontext ratings import {NAME} FILE … {SIX} --config-dir {CONF}, "
        f"and graphcontext table {NAME} {SIX} --config-dir {CONF}"
    )
    assert out[-1] == "ratings: results/sample/tests/raters+dataset.limit=6.ratings"
    assert cli.main(["ratings", "import", NAME, SIX, "--config-dir", CONF]) == 2
    assert "ratings import needs FILE" in capsys.readouterr().err
    study, _ = export(place)
    file = labelled(study, "ann", lambda i: "3" if i.kind == RATING else "tie", place)
    assert cli.main(["ratings", "import", NAME, file, SIX, "--config-dir", CONF]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "ann: 8 labels"


def test_a_study_that_was_damaged_is_refused(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    take(place, labelled(study, "ann", both, tmp_path))
    for name in ("judgements.jsonl", "key.jsonl"):
        path = study.folder / name
        good = path.read_text()
        first, _, rest = good.partition("\n")
        for text in (rest, "{X" + good, first.replace("tie", "Z") + "Z\n" + rest, good.replace('"A"', '"B"', 1)):
            if text != good:
                path.write_text(text)
                with pytest.raises(InputError, match=rf"{name} is (damaged|not what was imported)"):
                    table(place)
        path.write_text(good)
    assert cells(table(place))["win_rate"].value is not None


def test_labels_of_another_text_are_refused(place: Path, tmp_path: Path) -> None:
    study, _ = export(place)
    path = Path(labelled(study, "ann", both, tmp_path))
    rows = [{**row, "text": study.texts()[row["item"]].replace("\n", "\r\n")} for row in read_lines(path)]
    rows[0]["text"] += " and more"
    path.write_text(jsonl(rows))
    with pytest.raises(InputError, match=r"nothing imported: .* line 1: the text is not the one that was exported"):
        take(place, str(path))
