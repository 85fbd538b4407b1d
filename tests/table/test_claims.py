"""What a paper states, judged on what is done: verdicts, reasons, faults of the YAML, pages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphcontext import cli, validate
from graphcontext.conf_tree import options
from graphcontext.errors import InputError
from graphcontext.files import jsonl
from graphcontext.run_folder import write_folder
from graphcontext.table.claims import load_claims, read_claims, reported
from graphcontext.table.claims_page import judge_all
from graphcontext.table.make import Made
from graphcontext.table.verdicts import Judged, Verdict

CONF = Path(__file__).parent / "conf"
HEAD = "# graphcontext claims tests\npaper: A paper of the tests\nclaims:\n"
CLAIM = """
  - id: {id}
    text: "The other one is better."
    place: "Table 1"
    left: {left}
    relation: {relation}
    right: {right}
"""


def claim(
    name: str = "better",
    left: str = "{table: tests/tiny, row: other, metric: rouge1}",
    relation: str = "greater",
    right: str = "{row: base}",
) -> str:
    return CLAIM.format(id=name, left=left, relation=relation, right=right)


def tree(folder: Path, *claims: str, text: str | None = None) -> str:
    """A conf tree with the tests' tables and these claims."""
    conf = folder / "tree" / "conf"
    shutil.copytree(CONF, conf, dirs_exist_ok=True)
    shutil.copy(CONF.parent / "instant.py", conf.parent)
    (conf / "claims").mkdir(exist_ok=True)
    (conf / "claims" / "tests.yaml").write_text(text or HEAD + "".join(claims))
    return str(conf)


def run(
    folder: Path, name: str, scores: list[float], metric: str = "rouge1", question: str = "what", failed: int = 0
) -> str:
    path = folder / "runs" / name
    rows = [{"id": str(i), "status": "failed" if i < failed else "ok", metric: v} for i, v in enumerate(scores)]
    asked = [{"id": str(i), "text": f"{question} {i}", "corpus_id": "c"} for i in range(len(scores))]
    write_folder(path, {"scores.jsonl": jsonl(rows), "questions.jsonl": jsonl(asked)}, {"n": len(scores)}, {})
    return name


def cell(
    row: str, run: str | None = None, status: str = "stand-in", column: str = "cqa_sample", **more: object
) -> dict:
    value = None if run is None else 0.5
    return {"row": row, "column": column, "metric": "rouge1", "value": value, "status": status, "run": run} | more


def table(folder: Path, *cells: dict, name: str = "tiny", **more: object) -> None:
    columns = [{"id": "cqa_sample", "label": "Sample", "paper": ["AskUbuntu", "Unix"]}]
    data = {"table": "tests/tiny", "columns": columns, "footnotes": [], "cells": list(cells)} | more
    path = folder / "results" / "sample" / "tests" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def judged(folder: Path, conf: str) -> list[Verdict]:
    return Judged(load_claims("tests", conf), "sample", folder).verdicts


# -- verdicts ------------------------------------------------------------------------------------

WINS = [1.0] * 8  # of 2^8 sign patterns two are as extreme: p = 2/256


@pytest.mark.parametrize(
    ("relation", "left", "right", "verdict"),
    [
        ("greater", WINS, [0.0] * 8, "supported"),
        ("greater_or_equal", WINS, [0.0] * 8, "supported"),
        ("less", WINS, [0.0] * 8, "contradicted"),
        ("less_or_equal", [0.0] * 8, WINS, "supported"),
        ("greater", [0.0] * 8, WINS, "contradicted"),
        ("greater", [1.0, 0.0] * 4, [0.0, 1.0] * 4, "inconclusive"),
        ("greater_or_equal", [0.5] * 8, [0.5] * 8, "inconclusive"),
        ("greater", [1.0] * 4, [0.0] * 4, "inconclusive"),  # 2/16 is not below .05
    ],
)
def test_a_verdict_is_the_sign_and_the_permutation_test(
    tmp_path: Path, relation: str, left: list[float], right: list[float], verdict: str
) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", left)), cell("base", run(tmp_path, "b", right)))
    [found] = judged(tmp_path, tree(tmp_path, claim(relation=relation)))
    assert found.verdict == verdict
    assert (found.left, found.right, found.column, found.metric) == ("other", "base", "Sample", "rouge1")
    assert found.n == len(left) and found.runs == ("a", "b")
    assert found.diff == pytest.approx(sum(left) / len(left) - sum(right) / len(right))
    if left == WINS:
        assert found.p == pytest.approx(2 / 256) == found.p_holm and found.diff_ci95 == (1.0, 1.0)
        assert (found.left_value, found.right_value) == (1.0, 0.0)


def test_holm_counts_a_comparison_once_however_many_claims_make_it(tmp_path: Path) -> None:
    rows = [cell(r, run(tmp_path, r, s)) for r, s in (("other", WINS), ("base", [0.0] * 8), ("extract", [0.9] * 8))]
    table(tmp_path, *rows)
    mirrored = claim("mirrored", "{table: tests/tiny, row: base, metric: rouge1}", "less", "{row: other}")
    every = claim("every", right="{row: [base, extract]}")
    found = judged(tmp_path, tree(tmp_path, claim(), mirrored, every))
    assert [v.verdict for v in found] == ["supported"] * 4
    assert [v.p_holm for v in found] == pytest.approx([2 * 2 / 256] * 4)  # other–base and other–extract: two tests
    assert {v.family for v in found} == {"tests: Sample/rouge1 (2)"}


def test_only_shared_items_with_the_same_question_are_compared(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 5)))
    conf = tree(tmp_path, claim())
    assert judged(tmp_path, conf)[0].n == 5
    run(tmp_path, "b", [0.0] * 5, question="another site's")
    [found] = judged(tmp_path, conf)
    assert (found.verdict, found.reason) == ("not tested", "the runs share no item")


def test_a_number_can_be_the_right_side(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)))
    [found] = judged(tmp_path, tree(tmp_path, claim(right="{value: 0.25}")))
    assert (found.verdict, found.diff, found.right, found.right_value) == ("supported", 0.75, "0.25", 0.25)


def test_a_fall_back_is_said_beside_the_verdict(tmp_path: Path) -> None:
    fallen = cell("other", run(tmp_path, "a", WINS), "fallback")
    table(tmp_path, fallen, cell("base", run(tmp_path, "b", [0.0] * 8)))
    [found] = judged(tmp_path, tree(tmp_path, claim()))
    assert (found.verdict, found.reason) == ("supported", "most questions fell back: other")


@pytest.mark.parametrize("right", ["{row: base}", "{value: 0.5}"])
@pytest.mark.parametrize(
    ("n", "failed", "verdict", "reason"),
    [
        (8, 8, "not tested", "8 of 8 items failed"),  # a server that answers 503 contradicts nothing
        (20, 3, "not tested", "3 of 20 items failed"),
        (20, 2, "supported", "2 of 20 items failed; most questions fell back: other"),
    ],
)
def test_items_that_failed_are_said_and_many_of_them_test_nothing(
    tmp_path: Path, right: str, n: int, failed: int, verdict: str, reason: str
) -> None:
    scores = [0.0] * failed + [1.0] * (n - failed)
    fallen = cell("other", run(tmp_path, "a", scores, failed=failed), "fallback")
    table(tmp_path, fallen, cell("base", run(tmp_path, "b", [0.2] * n)))
    [found] = judged(tmp_path, tree(tmp_path, claim(right=right)))
    assert (found.verdict, found.reason) == (verdict, reason)


def test_data_sets_limit_a_claim(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 8)))
    conf = tree(tmp_path, claim() + "    dataset: unix\n")
    assert judged(tmp_path, conf)[0].verdict == "supported"  # the column stands for Unix too
    only = [{"id": "cqa_sample", "label": "Sample", "paper": ["AskUbuntu"]}]
    table(tmp_path, cell("other", "a"), cell("base", "b"), columns=only)
    assert judged(tmp_path, conf)[0].verdict == "not tested"
    table(tmp_path, cell("other", "a"), cell("base", "b"), columns=[only[0] | {"paper": []}])
    assert judged(tmp_path, conf)[0].verdict == "supported"  # chosen by the user: not a data set of the paper


def test_each_file_of_a_table_is_judged_and_named(tmp_path: Path) -> None:
    cells = (cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 8)))
    fewer = (cell("other", run(tmp_path, "c", WINS[:7])), cell("base", run(tmp_path, "d", [0.0] * 7)))
    table(tmp_path, *cells)
    for name in ("tiny@mine+dataset.limit=7", "tiny@twice", "tinysize"):
        table(tmp_path, *fewer, name=name)
    found = judged(tmp_path, tree(tmp_path, claim()))
    assert [v.column for v in found] == ["Sample", "@mine+dataset.limit=7"]  # @twice holds what @mine does
    assert [v.p_holm for v in found] == pytest.approx([2 / 256, 2 / 128])  # two families
    more = cell("extract", run(tmp_path, "e", WINS))
    table(tmp_path, *cells, more, name="tiny@more")
    found = judged(tmp_path, tree(tmp_path, claim(right="{row: [base, extract]}")))
    tested = [(v.right, v.column) for v in found if v.verdict != "not tested"]
    assert tested == [("base", "Sample"), ("base", "@mine+dataset.limit=7"), ("extract", "@more")]


def test_a_data_set_that_stands_in_and_was_chosen_too_is_one_data_set(tmp_path: Path) -> None:
    cells = (cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 8)))
    table(tmp_path, *cells)
    chosen = [{"id": "cqa_sample", "label": "Sample", "paper": []}]
    table(tmp_path, *cells, name="tiny@cqa_sample", columns=chosen)
    conf = tree(tmp_path, claim())
    [found] = judged(tmp_path, conf)
    assert (found.column, found.p_holm) == ("Sample", found.p)
    other = (cell("other", run(tmp_path, "c", WINS[:7])), cell("base", run(tmp_path, "d", [0.0] * 7)))
    table(tmp_path, *other, name="tiny@cqa_sample", columns=chosen)  # same label, other runs: a family of its own
    found = judged(tmp_path, conf)
    assert [(v.column, v.p_holm == v.p) for v in found] == [("Sample", True), ("@cqa_sample", True)]


def test_paired_rows_are_compared_in_their_order(tmp_path: Path) -> None:
    rows = [cell(r, run(tmp_path, r, s)) for r, s in (("other", WINS), ("base", [0.0] * 8), ("extract", [0.9] * 8))]
    table(tmp_path, *rows)
    left, right = "{table: tests/tiny, row: [other, extract], metric: rouge1}", "{row: [extract, base]}"
    conf = tree(tmp_path, claim(left=left, right=right) + "    paired: true\n")
    assert [(v.left, v.right) for v in judged(tmp_path, conf)] == [("other", "extract"), ("extract", "base")]
    page = judge_all("tests", conf, tmp_path).pages[0].read_text()
    assert "other &gt; extract, extract &gt; base" in page


# -- why not -------------------------------------------------------------------------------------


def test_rows_that_are_one_run_are_not_tested(tmp_path: Path) -> None:
    same = cell("base", status="not run (same stand-in as other)")
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)), same, cell("extract", run(tmp_path, "b", [0.0] * 8)))
    against = claim("third", "{table: tests/tiny, row: base, metric: rouge1}", right="{row: extract}")
    first, third = judged(tmp_path, tree(tmp_path, claim(), against))
    assert (first.verdict, first.reason) == ("not tested", "same stand-in: both rows are one run")
    assert third.verdict == "supported" and third.runs == ("a", "b")  # base's run is other's: its numbers are known


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((cell("other", status="not run (no weights: x)"), cell("base", "b")), "other: no weights: x"),
        ((cell("other", "a"), cell("base", status="not run (budget)")), "base: budget"),
        ((cell("other", "a"),), "tests/tiny has no such cell: make the table again"),
        ((cell("other", "gone"), cell("base", "b")), "its runs are not in runs/: make the table again"),
        ((cell("other", "f1"), cell("base", "b")), "run f1 is damaged: delete its folder and make the table again"),
        ((cell("other", "cut"), cell("base", "b")), "its runs are not in runs/: make the table again"),
    ],
)
def test_what_is_not_there_is_the_reason(tmp_path: Path, cells: tuple[dict, ...], reason: str) -> None:
    for name, metric in (("a", "rouge1"), ("b", "rouge1"), ("f1", "f1"), ("cut", "rouge1")):
        run(tmp_path, name, WINS, metric)
    (tmp_path / "runs" / "cut" / "questions.jsonl").unlink()
    table(tmp_path, *cells)
    [found] = judged(tmp_path, tree(tmp_path, claim()))
    assert (found.verdict, found.reason, found.p) == ("not tested", reason, None)


def test_a_table_that_is_not_there_is_the_reason(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)))
    apart = claim("apart", right="{table: tests/three, row: base}")
    missing = claim("missing", "{table: tests/three, row: base}", right="{row: other}")
    for found in judged(tmp_path, tree(tmp_path, apart, missing)):
        assert found.reason == "nothing here: graphcontext table tests/three scale=sample"


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    table(tmp_path)
    (tmp_path / "results/sample/tests/tiny.json").write_text('{"table": "tests/')
    with pytest.raises(InputError, match=r"tiny\.json is damaged: delete it and make the table again"):
        judged(tmp_path, tree(tmp_path, claim()))


# -- a table that carries its own test -----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "verdict", "reason"),
    [
        ("0.5", "supported", "most questions fell back: other"),
        ("0.4", "not tested", "tests/tiny tests rouge1 against 0.5"),
    ],
)
def test_a_table_of_ratings_carries_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, verdict: str, reason: str
) -> None:
    monkeypatch.setattr("graphcontext.table.verdicts.CARRIED", ("scores",))
    carried = cell("other", "a", "fallback", value=0.75, diff=0.25, diff_ci95=[0.1, 0.4], p=0.01, n=20)
    table(tmp_path, carried, cell("base", "b", p=None))
    [found] = judged(tmp_path, tree(tmp_path, claim(right=f"{{value: {value}}}")))
    assert (found.verdict, found.reason) == (verdict, reason)
    if verdict == "supported":
        assert (found.n, found.p_holm, found.diff) == (20, 0.01, pytest.approx(0.25))
    [untested] = judged(tmp_path, tree(tmp_path, claim(left="{table: tests/tiny, row: base, metric: rouge1}")))
    assert untested.reason == "tests/tiny does not test rouge1 against that"


# -- the paper's own numbers ---------------------------------------------------------------------


def test_the_papers_own_numbers_are_compared(tmp_path: Path) -> None:
    # base: rouge1 .217 and .179, other: .5 on Unix alone
    claims = load_claims(
        "tests", tree(tmp_path, claim(), claim("equal", right="{value: 0.5}", relation="greater_or_equal"))
    )
    [only] = reported(claims.claims[0], claims.specs)
    assert (only.dataset, only.metric, only.left, only.right, only.agrees) == ("unix", "rouge1", 0.5, 0.179, True)
    assert [a.agrees for a in reported(claims.claims[1], claims.specs)] == [True]


# -- the YAML ------------------------------------------------------------------------------------

FAULTS = {
    "row": (claim(right="{row: bsae}"), "right.row 'bsae' is unknown; did you mean base?"),
    "left row": (claim(left="{table: tests/tiny, row: othr}"), "left.row 'othr' is unknown; did you mean other?"),
    "metric": (claim(left="{table: tests/tiny, row: other, metric: roug1}"), "did you mean rouge1?"),
    "metric of the right table": (
        claim(left="{table: tests/tiny, row: other, metric: rougeL}", right="{table: tests/three, row: base}"),
        "right.metric 'rougeL' is unknown",
    ),
    "table": (claim(left="{table: tests/tny, row: other}"), "table 'tests/tny': no such table; did you mean"),
    "relation": (claim(relation="greter"), "relation 'greter' is unknown; did you mean greater?"),
    "dataset": (claim() + "    dataset: [unx]\n", "dataset 'unx' is unknown; did you mean unix?"),
    "key": (claim() + "    datset: unix\n", "no such key 'datset'; did you mean dataset?"),
    "pairs of unequal length": (
        claim(right="{row: [base, extract]}") + "    paired: true\n",
        "claim better: paired: rows left 1, right 2; allowed: as many right as left",
    ),
    "pairs with a number": (claim(right="{value: 1}") + "    paired: true\n", "paired: rows left 1, right 0"),
    "paired": (claim() + "    paired: 2\n", "paired=2; allowed: true, false"),
    "key of a side": (claim(left="{table: tests/tiny, rows: other}"), "left: no such key 'rows'; did you mean row?"),
    "no row": (claim(left="{table: tests/tiny}"), "left: it needs row"),
    "no right": (claim(right="{}"), "right needs either a row or a value"),
    "both": (claim(right="{row: base, value: 1}"), "right needs either a row or a value"),
    "a value that is text": (claim(right="{value: many}"), "right.value='many'; allowed: a number"),
    "a side that is text": (claim(right="base"), "right: 'base' has no keys"),
    "no text": (claim().replace('text: "The other one is better."', 'text: ""'), "it needs text"),
    "twice": (claim() + claim(), "two claims are named better"),
    "not a claim": ("  - better\n", "claim number 1: 'better' has no keys"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_in_a_claim_is_told_with_its_name(tmp_path: Path, what: str) -> None:
    text, message = FAULTS[what]
    conf = tree(tmp_path, text)
    _, faults = read_claims("tests", conf)
    [fault] = faults
    assert fault.startswith("claims/tests.yaml") and message in fault and "\n" not in fault
    with pytest.raises(InputError, match=r"claims/tests\.yaml"):
        load_claims("tests", conf)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper: P\n", "it needs the keys paper and claims"),
        ("claims: [\n", "claims/tests.yaml: while parsing"),
        ("paper: P\npapr: x\nclaims: []\n", "no such key 'papr'; did you mean paper?"),
    ],
)
def test_a_fault_in_the_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    conf = tree(tmp_path, text="# graphcontext claims tests\n" + text)
    assert message in read_claims("tests", conf)[1][0]


def test_validate_tells_all_faults_of_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tree(tmp_path, claim(), claim("two", relation="over"), claim("three", right="{row: bsae}"))
    monkeypatch.setattr(validate, "groups", lambda config_dir: [])
    monkeypatch.setattr(validate, "options", lambda g, c: ["tests"] if g == "claims" else [])
    checked, faults = validate.validate_all(conf)
    assert checked == 1 and len(faults) == 2
    assert "claim two: relation 'over'" in faults[0] and "claim three: right.row 'bsae'" in faults[1]


@pytest.mark.parametrize("name", options("claims"))
def test_the_shipped_claims_are_sound(name: str) -> None:
    claims = load_claims(name)
    assert all(c.place and c.text.endswith(".") for c in claims.claims)
    assert len({c.text for c in claims.claims}) == len(claims.claims)


def test_what_the_papers_table_says_of_its_statements() -> None:
    claims = load_claims("gcg")
    counted = {c.id: [a.agrees for a in reported(c, claims.specs)] for c in claims.claims}
    assert all(counted["best_of_all"]) and len(counted["best_of_all"]) == 2 * 2 * 11  # every other row of Table 3
    assert counted["raters_prefer_it"] == [True] * 3
    # AnswerBot's FactSumm .578 .583 .642 against GenQA's .551 .427 .662 and TechSumBot's .580 .563 .655
    assert counted["answerbot_facts"] == [True, True, False, False, True, False]
    assert counted["bge_over_sbert"] == []  # Table 4 is lost


def test_paired_rows_of_a_paper_differ_in_one_thing() -> None:
    claims = load_claims("kgp")
    paired = {c.id: c.pairs() for c in claims.claims if c.paired}
    assert paired["branching_three_over_one"] == [("tfidf_3", "tfidf_1"), ("llama_3", "llama_1")]
    assert paired["best_at_any_number_of_documents"][-1] == ("kgp_100", "tfidf_100")
    counted = {c.id: [a.agrees for a in reported(c, claims.specs)] for c in claims.claims}
    assert counted["golden_is_best"] == counted["none_is_worst"] == [True] * 7 * 4 * 3  # rows, data sets, metrics
    assert counted["mdr_trades_better"] == []  # curves only


# -- pages and the verb --------------------------------------------------------------------------


def test_claims_of_a_real_table_are_judged_without_running(
    made: Made, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("graphcontext.runs.execute_all", lambda *_: pytest.fail("claims runs nothing"))
    every = claim("every", "{table: tests/tiny, row: [twin, extract]}", right="{row: base}")
    conf = tree(tmp_path, claim(), every)
    monkeypatch.chdir(folder)
    assert cli.main(["claims", "tests", "--config-dir", conf]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "claims: results/claims.md" and "gcg" not in out
    page = (folder / "results/sample/tests/claims.md").read_text()
    assert page.startswith("<!-- Generated by: graphcontext claims -->")
    assert page.count("cqa_sample stands in for AskUbuntu, Unix") == 1  # named once
    assert "same stand-in: both rows are one run" in page and "The paper's own numbers: 1 of 1 agree." in page
    data = json.loads((folder / "results/sample/tests/claims.json").read_text())
    found = {(v["claim"], v["left"], v["metric"]): v for v in data["verdicts"]}
    cells = {(c.row, c.metric): c for c in made.result.cells}  # type: ignore[union-attr]
    tested = found["better", "other", "rouge1"]
    assert tested["p"] == cells["other", "rouge1"].p and tested["diff"] == pytest.approx(cells["other", "rouge1"].diff)
    assert tested["family"] == "tests: cqa_sample+dataset.limit=6/rouge1 (2)" and tested["n"] == 6
    assert found["every", "twin", "rouge1"]["reason"] == "same stand-in: both rows are one run"
    assert "FactSumm: not tested (extract: no FactSumm extractor yet)" in page
    assert sum(data["counts"].values()) == len(data["verdicts"]) == 1 + 2 * 3
    before = [p.stat().st_mtime_ns for p in sorted((folder / "results").rglob("claims.*"))]
    assert cli.main(["claims", "tests", "--config-dir", conf]) == 0
    assert [p.stat().st_mtime_ns for p in sorted((folder / "results").rglob("claims.*"))] == before
    for path in (folder / "results").rglob("claims.*"):
        path.unlink()


def test_without_results_every_claim_is_not_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims"]) == 0
    out = capsys.readouterr().out
    assert "Not tested, none of them: no table is done yet" in out and "graphcontext table gcg/t3" in out
    assert out.splitlines()[-1] == "claims: results/claims.md" and Path("results/claims.md").is_file()
    assert [p.name for p in Path("results").iterdir()] == ["claims.md"]


def test_the_page_over_all_holds_every_paper(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 8)))
    conf = tree(tmp_path, claim())
    judge_all(None, conf, tmp_path)
    shown = judge_all("tests", conf, tmp_path)
    assert "1 supported" in shown.markdown and "## gcg" not in shown.markdown
    assert "## gcg" in shown.path.read_text() and "(sample/tests/claims.md)" in shown.path.read_text()


def test_one_papers_claims_leave_the_pages_of_others_as_they_are(tmp_path: Path) -> None:
    table(tmp_path, cell("other", run(tmp_path, "a", WINS)), cell("base", run(tmp_path, "b", [0.0] * 8)))
    conf = tree(tmp_path, claim())
    whole = judge_all(None, conf, tmp_path).path.read_text()
    page = tmp_path / "results" / "sample" / "tests" / "claims.md"
    before = page.read_text()
    shutil.rmtree(tmp_path / "runs")
    judge_all("gcg", conf, tmp_path)
    assert page.read_text() == before and (tmp_path / "results" / "claims.md").read_text() == whole
    judge_all("tests", conf, tmp_path)
    assert page.read_text() != before


def test_wrong_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["gxg"], "claims gxg: no such paper; did you mean gcg?"),
        (["gcg", "kgp"], "claims needs one PAPER"),
        (["gcg", "scale=small"], "claims takes no overrides"),
    ):
        assert cli.main(["claims", *words]) == 2
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1
