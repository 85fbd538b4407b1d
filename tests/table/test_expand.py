"""From a table's YAML and the user's overrides to the configs of its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext.component import components
from graphcontext.errors import InputError
from graphcontext.table import expand
from graphcontext.table.spec import load_spec

CONF = str(Path(__file__).parent / "conf")


def wish(*overrides: str, table: str = "tests/tiny", root: Path | str = ".") -> expand.Request:
    return expand.request(table, overrides, CONF, root)


def by_row(*overrides: str, root: Path) -> dict[str, dict]:
    cells = expand.cells(wish(*overrides, table="tests/three", root=root), CONF)
    return {cell.row.name: cell.composed.config for cell in cells}


# -- what is asked -------------------------------------------------------------------------------


def test_rows_are_chosen_by_kind_and_by_name() -> None:
    assert wish("table.rows=supervised").selected == ("absent", "no_code")
    assert wish("table.rows=untrained").selected == ("base", "twin", "other", "fallen", "extract")
    assert wish("table.rows=[other, base]").selected == ("other", "base")
    assert len(wish().selected) == 7


def test_the_baseline_can_be_another_row_or_none() -> None:
    assert wish().baseline == "base"
    assert wish("table.baseline=extract").baseline == "extract"
    assert wish("table.baseline=null").baseline is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["table.rows=bsae"], "table.rows=bsae: no such row; did you mean base?"),
        (["table.rows=untraind"], "did you mean untrained?"),
        (["table.baseline=bsae"], "table.baseline=bsae: no such row; did you mean base?"),
        (["table.row=base"], "no such key; did you mean table.rows?"),
        (["retriever=bm25"], "the rows of tests/tiny differ in retriever; choose the rows"),  # the user's own tree
        (["retriever.top_k=5"], "differ in retriever.top_k"),  # a row's own override
        (["experiment=tests/base"], "differ in experiment"),
        (["experiment=tests/base", "table.rows=base"], "differ in experiment"),
        (["dataset.path=/x/dump"], "say which one it is of: dataset=NAME dataset.path=/x/dump"),
    ],
)
def test_what_makes_no_sense_for_the_table_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        wish(*overrides)
    assert message in str(refused.value)


def test_the_axis_of_the_rows_can_be_set_for_chosen_rows() -> None:
    assert wish("retriever=bm25", "table.rows=base").overrides == ("retriever=bm25",)
    assert wish("dataset=stackexchange", "dataset.path=/x/my.dump").suffix == "@stackexchange-my.dump"
    with pytest.raises(InputError, match="the rows of gcg/t3 differ in retriever"):
        wish("retriever=bm25", table="gcg/t3")


def test_an_unknown_table_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"table 'tests/tny': no such table; did you mean tests/tiny\?"):
        wish(table="tests/tny")


# -- the table's YAML ----------------------------------------------------------------------------

TABLE = """# graphcontext table mine/table
title: Mine
paper: none
datasets: {askubuntu: AskUbuntu}
metrics: {rouge1: ROUGE-1}
rows:
  - {name: a, label: A, experiment: gcg/text_gen, reported: {askubuntu: {rouge1: 0.1}}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Mine", "title: [Mine", "expected ',' or ']'"),
        (TABLE, "", "a table's YAML holds keys (name, title"),
        (TABLE, "- 1", "a table's YAML holds keys"),
        ("title: Mine\n", "", "'title'"),
        ("metrics:", "metrcs:", "no such key 'metrcs'; did you mean metrics?"),
        ("rouge1: ROUGE-1", "rogue1: ROUGE-1", "metric 'rogue1' is unknown; did you mean rouge1?"),
        ("datasets: {askubuntu", "datasets: {askubutnu", "dataset 'askubutnu' is unknown; did you mean askubuntu?"),
        ("label: A,", "label: A, kind: supervisd,", "row a: kind 'supervisd' is unknown; did you mean supervised?"),
        ("label: A,", "lable: A,", "no such key 'lable'; did you mean label?"),
        ("  - {name: a", "  - a\n  - {name: a", "'a' has no keys"),
        ("text_gen", "textgen", "experiment 'gcg/textgen' is unknown; did you mean gcg/text_gen?"),
        ("experiment: gcg/text_gen, ", "", "it needs an experiment, or the reason why it is not_run"),
        ("{askubuntu: {rouge1: 0.1}}", "{ubuntu: {rouge1: 0.1}}", "reported 'ubuntu' is unknown"),
        ("{rouge1: 0.1}", "{rouge: 0.1}", "reported 'rouge' is unknown; did you mean rouge1?"),
        ("paper: none", "paper: none\nbaseline: b", "baseline 'b' is unknown"),
        ("paper: none", "paper: none\nunit: percents", "unit 'percents' is unknown; did you mean percent?"),
        ("paper: none", "paper: none\ntolerance: {clos: 1}", "tolerance 'clos' is unknown; did you mean close?"),
        ("paper: none", "paper: none\nkind: cards", "kind 'cards' is unknown; did you mean card?"),
        ("  - {name: a", "  - {name: a, label: B, not_run: no}\n  - {name: a", "two rows are named a"),
    ],
)
def test_a_fault_in_a_tables_yaml_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "conf" / "table" / "mine" / "table.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TABLE.replace(old, new))
    with pytest.raises(InputError) as refused:
        load_spec("mine/table", str(tmp_path / "conf"))
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_mistyped_override_in_a_tables_yaml_is_not_skipped(tmp_path: Path) -> None:
    file = tmp_path / "conf" / "table" / "mine" / "table.yaml"
    file.parent.mkdir(parents=True)
    second = "  - {name: b, label: B, experiment: gcg/text_gen, overrides: [retriever.top_q=5]}\n"
    file.write_text(TABLE + second)
    with pytest.raises(InputError, match=r"retriever.top_q: no such key; did you mean top_k\?"):
        expand.cells(expand.request("mine/table", [], str(tmp_path / "conf")), str(tmp_path / "conf"))


# -- columns and cells ---------------------------------------------------------------------------


def test_data_sets_with_one_stand_in_fall_together(folder: Path) -> None:
    (column,) = expand.columns(wish("dataset.limit=6", root=folder), CONF)
    assert (column.dataset, column.label, column.stands_for) == ("cqa_sample", "cqa_sample", ("askubuntu", "unix"))
    paper = expand.columns(wish("scale=paper", root=folder), CONF)
    assert [(c.dataset, c.label, c.stands_for) for c in paper] == [
        ("askubuntu", "AskUbuntu", ("askubuntu",)),
        ("unix", "Unix", ("unix",)),
    ]
    (own,) = expand.columns(wish("dataset=cqa_sample", root=folder), CONF)
    assert (own.dataset, own.label, own.stands_for) == ("cqa_sample", "cqa_sample", ())


def test_command_line_beats_cell_beats_experiment_beats_scale(folder: Path) -> None:
    found = by_row("dataset.limit=6", root=folder)
    assert found["base"]["retriever"]["top_k"] == 2  # the component's YAML
    assert found["other"]["retriever"]["top_k"] == 1  # the cell; its experiment says 3
    assert found["base"]["generator"]["max_new_tokens"] == 96  # the scale
    assert found["base"]["dataset"]["limit"] == 6  # typed; the scale says 24
    typed = by_row("retriever.top_k=4", "generator.max_new_tokens=7", "table.rows=base,other,extract", root=folder)
    assert {config["retriever"]["top_k"] for config in typed.values()} == {4}
    assert [config["generator"].get("max_new_tokens") for config in typed.values()] == [
        7,
        7,
        None,
    ]  # AnswerBot has none


def test_a_value_reaches_the_rows_that_have_its_key(folder: Path) -> None:
    found = by_row("generator.n_paragraphs=2", root=folder)  # AnswerBot's alone
    assert [n for n, config in found.items() if config["generator"].get("n_paragraphs") == 2] == ["extract"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["generator.max_new_token=7"], "generator.max_new_token: no such key; did you mean max_new_tokens?"),
        (["generator.max_new_tokens=7", "table.rows=extract"], "generator.max_new_tokens: no such key"),
    ],
)
def test_a_value_that_no_chosen_row_has_is_refused(overrides: list[str], message: str, folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        by_row(*overrides, root=folder)
    assert message in str(refused.value)


def test_a_card_needs_data_alone() -> None:
    (only,) = expand.configs(["tests/card"], [], CONF)
    label, composed = only
    assert label == "cqa_sample"
    used = [composed.config[k] for k in ("retriever", "enhancer", "packing", "generator", "metric")]
    assert not [node["model"] for node in components(used) if node.get("model")]


def test_a_mistyped_key_is_answered_before_the_rows_are_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[object] = []
    compose = expand.compose
    monkeypatch.setattr(expand, "compose", lambda *given: (composed.append(given), compose(*given))[1])
    with pytest.raises(InputError, match=r"dataset.limt: no such key; did you mean limit\?"):
        wish("dataset.limt=3", table="gcg/t3")
    assert len(composed) == 1


def test_composed_configs_are_read_again_until_a_yaml_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "conf"
    (conf / "prompt").mkdir(parents=True)
    (conf / "prompt" / "mine.yaml").write_text("# graphcontext run\na: 1\n")
    first = expand.compose_cached(["retriever=bm25"], (), str(conf), root=tmp_path / "work")
    assert list((tmp_path / "work" / "store" / "composed").glob("*.json")) and not Path("store").exists()

    def again(*_: object) -> None:
        raise AssertionError("composed again")

    monkeypatch.setattr(expand, "compose", again)
    second = expand.compose_cached(["retriever=bm25"], (), str(conf), root=tmp_path / "work")
    assert (second.config, second.choices) == (first.config, first.choices)
    (conf / "prompt" / "mine.yaml").write_text("# graphcontext run\na: 2\n")
    with pytest.raises(AssertionError, match="composed again"):
        expand.compose_cached(["retriever=bm25"], (), str(conf), root=tmp_path / "work")
