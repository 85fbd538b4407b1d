"""Doccano's exports: what is read, and every fault, counted, before anything is kept."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from graphcontext.data.doccano import Judgement, lines, read
from graphcontext.errors import InputError

ALLOWED = {"p1": ("A", "B", "tie"), "p2": ("A", "B", "tie"), "r1": ("1", "2", "3")}
WHOLE = [["p1", "p2"], ["r1"]]


def export(folder: Path, name: str, *rows: object) -> Path:
    path = folder / name
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def row(item: str, *labels: object, **more: object) -> dict:
    """A line as Doccano 1.8 writes it: its own id, the text, our key, the labels."""
    return {"id": 17, "text": "…", "item": item, "label": list(labels), "Comments": []} | more


def test_lines_are_what_doccano_imports() -> None:
    written = [json.loads(line) for line in lines([("p1", "Wer?\nÄ"), ("r1", "b")]).splitlines()]
    assert written == [
        {"text": "Wer?\nÄ", "label": [], "item": "p1"},
        {"text": "b", "label": [], "item": "r1"},
    ]


def test_one_file_per_rater_is_named_by_the_rater(tmp_path: Path) -> None:
    ann = export(tmp_path, "ann.jsonl", row("p1", "A"), row("p2", "tie"), "\n")
    bob = export(tmp_path, "bob.jsonl", row("p1", "b"), row("p2", "B"), row("r1", "3"))
    found = read([ann, bob], ALLOWED, WHOLE)
    assert found.judgements == (
        Judgement("ann", "p1", "A"),
        Judgement("ann", "p2", "tie"),
        Judgement("bob", "p1", "B"),
        Judgement("bob", "p2", "B"),
        Judgement("bob", "r1", "3"),
    )
    assert found.silent == ()


def test_a_file_that_was_downloaded_twice_is_of_one_rater(tmp_path: Path) -> None:
    pairs = export(tmp_path, "ann.jsonl", row("p1", "A"), row("p2", "tie"))
    ratings = export(tmp_path, "ann (1).jsonl", row("r1", "3"))
    assert {j.rater for j in read([pairs, ratings], ALLOWED, WHOLE).judgements} == {"ann"}


def test_an_archive_holds_a_file_per_member_and_who_labelled_nothing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", json.dumps(row("r1", "2")) + "\n")
        archive.writestr("admin.jsonl", json.dumps(row("r1")) + "\n")
        archive.writestr("../../evil.txt", "x")
    found = read([path], ALLOWED, WHOLE)
    assert found.judgements == (Judgement("ann", "r1", "2"),) and found.silent == ("admin",)
    assert not (tmp_path.parent / "evil.txt").exists()


@pytest.mark.parametrize(
    "line",
    [
        {"item": "r1", "label": ["2"]},
        {"item": "r1", "label": [2]},
        {"item": "r1", "label": "2"},
        {"item": "r1", "labels": ["2"], "annotation_approver": None},  # 1.0 to 1.4
        {"meta": {"item": "r1"}, "label": ["2"]},
        {"meta": '{"item": "r1"}', "labels": ["2"]},
    ],
)
def test_other_versions_lines_are_read(tmp_path: Path, line: dict) -> None:
    found = read([export(tmp_path, "ann.jsonl", line)], ALLOWED, WHOLE)
    assert found.judgements == (Judgement("ann", "r1", "2"),)


def test_the_rater_can_stand_on_each_line(tmp_path: Path) -> None:
    path = export(tmp_path, "all.jsonl", row("r1", "2", annotator="ann"), row("r1", "3", username="bob"))
    assert {j.rater: j.label for j in read([path], ALLOWED, WHOLE).judgements} == {"ann": "2", "bob": "3"}


FAULTS = {
    "unknown item": (row("p9", "A"), "item 'p9' was not exported here"),
    "no item": ({"id": 1, "label": ["A"]}, "item None was not exported here"),
    "broken meta": ({"meta": "{", "label": ["A"]}, "item None was not exported here"),
    "label": (row("r1", "7"), "label '7'; allowed: 1, 2, 3"),
    "label of another task": (row("r1", "A"), "label 'A'; allowed: 1, 2, 3"),
    "two labels": (row("r1", "1", "2"), "2 labels (1, 2): one per rater and item"),
    "ids of labels": ({"item": "r1", "annotations": [{"label": 3, "user": 1}]}, "no key label: export with the names"),
    "a label of another type": (row("r1", {"x": 1}), "neither text nor a whole number"),
    "true": (row("r1", True), "neither text nor a whole number"),
    "no JSON": ("r1,2\n", "not a line of JSON with keys (export as JSONL)"),
    "no keys": ("[1]\n", "not a line of JSON with keys"),
    "too deep": ("[" * 100_000 + "\n", "not a line of JSON with keys"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_told_with_file_and_line(tmp_path: Path, what: str) -> None:
    line, message = FAULTS[what]
    path = export(tmp_path, "ann.jsonl", row("p1", "A"), row("p2", "A"), line)
    with pytest.raises(InputError) as error:
        read([path], ALLOWED, WHOLE)
    text = str(error.value)
    assert text.startswith("1 fault, nothing imported: ann.jsonl line 3: ") and message in text and "\n" not in text


def test_an_item_labelled_twice_is_a_fault(tmp_path: Path) -> None:
    first = export(tmp_path, "ann.jsonl", row("r1", "1"))
    (tmp_path / "more").mkdir()
    second = export(tmp_path / "more", "ann.jsonl", row("r1", "1"))
    with pytest.raises(InputError, match="ann labelled item r1 twice"):
        read([first, second], ALLOWED, WHOLE)


def test_a_rater_labels_all_of_a_task_or_none_of_it(tmp_path: Path) -> None:
    path = export(tmp_path, "ann.jsonl", row("p1", "A"), row("p2"))
    with pytest.raises(InputError, match=r"ann: 1 of 2 items have no label \(p2\)"):
        read([path], ALLOWED, WHOLE)
    assert read([path], ALLOWED, []).judgements == (Judgement("ann", "p1", "A"),)


def test_all_faults_are_counted_and_some_named(tmp_path: Path) -> None:
    path = export(tmp_path, "ann.jsonl", *(row(f"x{i}", "A") for i in range(9)))
    with pytest.raises(InputError) as error:
        read([path], ALLOWED, WHOLE)
    assert str(error.value).startswith("9 faults, nothing imported: ") and "x4" in str(error.value)
    assert "x5" not in str(error.value) and str(error.value).endswith("; …")


def test_files_that_hold_nothing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, message in (
        (tmp_path / "none.jsonl", r"none\.jsonl: no such file"),
        (tmp_path, "no such file"),
        (export(tmp_path, "empty.jsonl"), r"no label in empty\.jsonl: nothing imported"),
        (export(tmp_path, "silent.jsonl", row("r1")), r"no label in silent\.jsonl"),
    ):
        with pytest.raises(InputError, match=message):
            read([path], ALLOWED, WHOLE)
    monkeypatch.setattr("graphcontext.data.doccano.LARGEST", 10)
    big = export(tmp_path, "big.jsonl", row("r1", "2"))
    with pytest.raises(InputError, match=r"big\.jsonl: 0 MiB; labels take 0 at most"):
        read([big], ALLOWED, WHOLE)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.jsonl", " " * 1000)
    with pytest.raises(InputError, match=r"bomb\.zip: ann\.jsonl unpacks to over 0 MiB"):
        read([tmp_path / "bomb.zip"], ALLOWED, WHOLE)


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", json.dumps(row("r1", "2")) + "\n")
    path.write_bytes(path.read_bytes().replace(b'"label"', b'"lobel"', 1))  # its checksum is wrong now
    with pytest.raises(InputError, match=r"export\.zip: the archive cannot be read"):
        read([path], ALLOWED, WHOLE)


def test_text_that_is_no_utf8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ann.jsonl"
    path.write_bytes(b'{"item": "r1", "label": ["\xff"]}\n')
    with pytest.raises(InputError, match=r"ann\.jsonl line 1: not a line of JSON"):
        read([path], ALLOWED, WHOLE)


@pytest.mark.parametrize("name", ["\ud800", {"a": 1}, ["ann"], True, "a\nb"])
def test_what_names_no_rater_is_a_fault(tmp_path: Path, name: object) -> None:
    path = export(tmp_path, "all.jsonl", row("p1", "A", user=name), row("p2", "A", user="ann"))
    with pytest.raises(InputError, match=r"all\.jsonl line 1: a rater is named by a text or a number"):
        read([path], ALLOWED, [])
