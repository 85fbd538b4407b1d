"""A folder of documents of the user's own is one corpus; what cannot be read is said, and the rest goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from document_files import GRID, docx, paragraph, pdf, scan

from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.data import folder_files
from graphcontext.data.folder import Folder
from graphcontext.data.folder_files import list_files, read_all
from graphcontext.errors import InputError
from graphcontext.graph.entity_links import EntityLinks
from graphcontext.graph.linker_titles import TitlesLinker
from graphcontext.pipeline import Pipeline
from graphcontext.store import Store, Workspace

ROWS = [["Port", "Ships"], ["Alda", "12"], ["Brim", "7"]]


def folder(root: Path, **more: Any) -> Folder:
    settings = {"name": "mine", "questions": None, "exclude": [], "license": None, "passage_characters": 250}
    settings |= {"table_characters": 1200, "limit": None, "seed": 0, "split": "auto", "side": "test"}
    return Folder(**settings | {"exclude_duplicates": True, "workers": 1, "plan": None, "path": str(root)} | more)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return a folder of all kinds, with two documents of one title."""
    root = tmp_path / "docs"
    (root / "deep" / "deeper").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "a.md").write_text("hidden")
    (root / "one.md").write_text("# Isles\n\nThe ferry leaves at nine.\n")
    (root / "deep" / "two.md").write_text("# Isles\n\nThe ferry leaves at nine.\n")
    (root / "deep" / "deeper" / "three.html").write_text("<title>Winds</title><p>North wind.</p>")
    docx(root / "four.docx", paragraph("A letter."))
    pdf(root / "five.pdf", [["Words of page one.", ("Table 1: Ports", ROWS, GRID)], ["Page two."]], "Ports")
    (root / "pictures.xyz").write_text("?")
    return root


def test_all_files_are_one_corpus_with_file_and_page(mixed):
    loaded = folder(mixed, license="CC0").load()
    (corpus,) = loaded.corpora.values()
    found = [(p.source.document, p.source.page, p.kind) for p in corpus.passages]
    assert found == [
        ("deep/deeper/three.html", None, None),
        ("deep/two.md", None, None),
        ("five.pdf", 1, "page"),
        ("five.pdf", 1, None),
        ("five.pdf", 1, "table"),
        ("five.pdf", 2, "page"),
        ("five.pdf", 2, None),
        ("four.docx", None, None),
        ("one.md", None, None),
    ]
    assert len({p.id for p in corpus.passages}) == 9  # t03: two documents of one title and text
    assert {p.source.license for p in corpus.passages} == {"CC0"} and corpus.passages[2].source.link == "five.pdf"
    assert loaded.questions == () and loaded.card["read"]["files"] == 5
    assert loaded.card["files_left_out"] == {"of another kind (.xyz)": 1}


def test_files_of_one_title_are_told_apart_and_no_title_joins_them(mixed):
    (corpus,) = folder(mixed).load().corpora.values()
    titles = {p.source.document: p.title for p in corpus.passages}
    assert (titles["one.md"], titles["deep/two.md"]) == ("Isles (one.md)", "Isles (deep/two.md)")
    assert titles["five.pdf"] == "Ports"
    graph = EntityLinks(TitlesLinker()).build(corpus)
    assert corpus.passages[8].source.document == "one.md" and graph.indptr[8] == graph.indptr[9]  # no edge


def test_what_cannot_be_read_is_one_line_each_and_the_rest_goes_on(mixed, capsys):
    scan(mixed / "scan.pdf")
    pdf(mixed / "locked.pdf", [["secret"]], password="key")
    (mixed / "empty.pdf").touch()
    (mixed / "cut.pdf").write_bytes((mixed / "five.pdf").read_bytes()[:700])
    loaded = folder(mixed).load()
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[0] for line in said[:4]] == ["cut.pdf", "empty.pdf", "locked.pdf", "scan.pdf"]
    assert len(said) == 5 and said[4].startswith(f"{mixed}: files left out: 1 of another kind (.xyz)")
    assert set(loaded.card["files_that_cannot_be_read"]) == {"cut.pdf", "empty.pdf", "locked.pdf", "scan.pdf"}
    assert loaded.card["read"]["files"] == 5


def test_links_are_not_followed_out_of_the_folder_nor_round_in_circles(mixed, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    (mixed / "out.md").symlink_to(secret)
    (mixed / "again.md").symlink_to(mixed / "one.md")
    (mixed / "gone.md").symlink_to(tmp_path / "nothing.md")
    (mixed / "ring.md").symlink_to("ring.md")
    (mixed / "deep" / "loop").symlink_to(mixed)
    listing = list_files(mixed, [])
    assert set(listing.faults) == {"gone.md", "out.md", "ring.md"}
    assert listing.left_out["linked folders"] == 1 and listing.left_out["links to files of the folder itself"] == 1
    assert len(listing.files) == 5


def test_linked_folders_are_told(mixed, capsys):
    (mixed / "loop").symlink_to(mixed)
    folder(mixed).load()
    assert f"{mixed}: linked folders, which are not followed: 1" in capsys.readouterr().err.splitlines()


def test_a_folder_that_cannot_be_opened_is_told(mixed, monkeypatch):
    real = os.scandir

    def refuses(path: Any) -> Any:
        if Path(path).name == "deeper":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuses)
    listing = list_files(mixed, [])
    assert listing.faults == {"deep/deeper": "cannot be opened: Permission denied"} and len(listing.files) == 4


def test_names_that_are_no_utf8_stay_apart(tmp_path):
    for name in (b"\xff.txt", b"\xfe.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("Words.")
    listing = list_files(tmp_path, [])
    assert list(listing.files) == ["\\xfe.txt", "\\xff.txt"]
    documents, faults = read_all(listing, Store(tmp_path / "store"), 1, quiet=True)
    assert [document.title for document in documents.values()] == ["\\xfe", "\\xff"] and not faults


def test_a_name_is_one_line(tmp_path, capsys):
    for name in ("two\nlines.txt", "bell\x07.txt", "plain.txt"):
        (tmp_path / name).write_text("" if "bell" in name else "Words.")
    (corpus,) = folder(tmp_path).load().corpora.values()
    assert [p.source.document for p in corpus.passages] == ["plain.txt", "two\\nlines.txt"]
    assert capsys.readouterr().err.splitlines() == ["bell\\x07.txt is empty (0 bytes); left out"]


def test_files_can_be_left_out_and_one_file_be_read(mixed):
    assert list(list_files(mixed, ["deep/*", "four.docx"]).files) == ["five.pdf", "one.md"]
    assert list(list_files(mixed / "one.md", []).files) == ["one.md"]
    assert folder(mixed / "five.pdf").load().card["pool"] == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "holds no document .it is empty."),
        (lambda p: (p / "a.xyz").touch(), "1 of another kind"),
        (lambda p: (p / "a.pdf").touch(), "none of 1 files can be read; a.pdf is empty"),
    ],
)
def test_a_folder_without_a_document_is_refused(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(InputError, match=message):
        folder(tmp_path).load()


def test_a_value_out_of_range_is_refused(tmp_path):
    for key, value in (("passage_characters", 0), ("table_characters", 3), ("workers", 0), ("split", "years")):
        with pytest.raises(InputError, match=key):
            folder(tmp_path, **{key: value})
    with pytest.raises(InputError, match=r"dataset\.path is not set"):
        folder(tmp_path, name="folder", path=None).load()
    with pytest.raises(InputError, match=r"dataset\.questions=q\.jsonl"):
        folder(tmp_path, questions="q.jsonl").load()


# -- questions ---------------------------------------------------------------------------------------------------------


def test_gold_nodes_are_named_by_page_table_and_words(mixed, capsys):
    rows = [
        {"id": "a", "question": "On page 2?", "supports": ["five.pdf#page=2"]},
        {"id": "b", "question": "In Table 1?", "supports": ["five.pdf#table=1"], "answers": ["12"]},
        {"id": "c", "question": "When?", "supports": ["one.md#text=leaves at NINE", "five.pdf#page=9"]},
        {"id": "d", "question": "Nothing is known?"},
    ]
    (mixed / "questions.jsonl").write_text("".join(json.dumps({**row, "split": "test"}) + "\n" for row in rows))
    loaded = folder(mixed, questions="questions.jsonl").load()
    (corpus,) = loaded.corpora.values()
    kinds = {p.id: (p.source.document, p.kind) for p in corpus.passages}
    found = {q.id: [kinds.get(support, support) for support in q.supports] for q in loaded.questions}
    assert found == {
        "a": [("five.pdf", "page")],
        "b": [("five.pdf", "table")],
        "c": [("one.md", None), "five.pdf#page=9"],
        "d": [],
    }
    assert loaded.card["counts"] == {"gold passages that are not in the corpus": 1}
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("questions.jsonl")]
    assert said == [
        "questions.jsonl: question c: not in the folder: five.pdf#page=9; supports are FILE#page=3, FILE#table=2, "
        "FILE#text=words of a passage, or ids of passages"
    ]


def test_what_is_set_aside_and_gold_that_is_not_there_are_told(mixed, capsys):
    rows = [{"id": str(n), "question": f"When in {n}?", "supports": ["one.md"]} for n in range(8)]
    (mixed / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(folder(mixed, questions="q.jsonl").load().questions) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("q.jsonl")]
    mend = '"split": "test" in a line puts it among those that are scored'
    assert said[0] == f"q.jsonl: 2 of 8 questions are scored, the last quarter; {mend}"
    assert [line.split(";")[0] for line in said[1:]] == [
        f"q.jsonl: question {n}: not in the folder: one.md" for n in (6, 7)
    ]
    (mixed / "q.jsonl").write_text("".join(json.dumps({**row, "split": "test"}) + "\n" for row in rows))
    folder(mixed, questions="q.jsonl").load()
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("q.jsonl")]
    assert len(said) == 6 and said[5] == "q.jsonl: gold that is not in the folder: 8 questions in all"


def test_a_run_without_questions_is_refused_and_ask_is_not(mixed, tmp_path):
    words = [
        "dataset=folder",
        f"dataset.path={mixed}",
        "retriever=tfidf",
        "enhancer=none",
        "generator=none",
        "metric=[]",
    ]
    config = compose(words).config
    with pytest.raises(InputError, match="comes without questions to score"):
        Pipeline(config, Workspace(Store(tmp_path / "store"), quiet=True)).data()
    pipeline = Pipeline(config, Workspace(Store(tmp_path / "store"), quiet=True), "When does the ferry leave?")
    data = pipeline.data()
    (ranking,) = pipeline.rankings(data, {})
    assert {data.corpora[data.questions[0].corpus_id].passages[n].source.document for n in (1, 8)} == {
        "deep/two.md",
        "one.md",
    }
    assert len(ranking.passages) == 2


# -- key and resume ----------------------------------------------------------------------------------------------------


def key(path: Path, **more: Any) -> Any:
    node = compose(["dataset=folder", f"dataset.path={path}"]).config["dataset"] | more
    return fingerprint(node)


def test_the_key_follows_names_and_content_not_the_place(mixed, tmp_path):
    first = key(mixed)
    moved = tmp_path / "moved"
    mixed.rename(moved)
    assert key(moved) == first and key(moved, workers=7) == first
    assert key(moved, passage_characters=99) != first
    (moved / "one.md").rename(moved / "won.md")
    second = key(moved)
    (moved / "won.md").write_text("# Isles\n\nThe ferry leaves at ten.\n")
    assert len({str(k) for k in (first, second, key(moved))}) == 3


def test_t11_a_reading_that_was_killed_goes_on(mixed, tmp_path, monkeypatch):
    listing, store, read = list_files(mixed, []), Store(tmp_path / "store"), []
    real = folder_files.read_document

    def killed(path: Path) -> Any:
        if len(read) == 3:
            raise KeyboardInterrupt
        read.append(path.name)
        return real(path)

    monkeypatch.setattr(folder_files, "read_document", killed)
    with pytest.raises(KeyboardInterrupt):
        read_all(listing, store, 1, quiet=True)
    assert len(read) == 3
    monkeypatch.setattr(folder_files, "read_document", lambda path: read.append(path.name) or real(path))
    documents, faults = read_all(listing, store, 1, quiet=True)
    assert len(read) == 5 and len(set(read)) == 5 and not faults
    undisturbed, _ = read_all(listing, None, 1, quiet=True)
    assert documents == undisturbed and list(documents) == sorted(documents)
    for path in (tmp_path / "store" / "documents").glob("*/document.json"):
        path.write_text("{")  # damaged: read again
    assert read_all(listing, store, 1, quiet=True)[0] == undisturbed


@pytest.mark.slow
def test_processes_read_the_same(mixed, tmp_path):
    for n in range(8):
        (mixed / f"more{n}.md").write_text(f"# More {n}\n\nText {n}.\n")
    (mixed / "empty.pdf").touch()
    listing = list_files(mixed, [])
    assert read_all(listing, Store(tmp_path / "store"), 2, quiet=True) == read_all(listing, None, 1, quiet=True)


def test_a_script_without_a_guard_is_not_run_again_by_those_that_read(tmp_path):
    (tmp_path / "f").mkdir()
    for n in range(8):
        (tmp_path / "f" / f"{n}.md").write_text(f"# Title {n}\n\nText {n}.\n")
    script = """
        from pathlib import Path
        from graphcontext.data.folder_files import list_files, read_all
        print("begun", flush=True)
        documents, faults = read_all(list_files(Path("f"), []), None, 2, quiet=True)
        print(len(documents), faults)
    """
    (tmp_path / "s.py").write_text(textwrap.dedent(script))
    done = subprocess.run([sys.executable, "s.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("begun\n8 {}\n", "")


def test_a_reader_that_raises_anything_is_one_line(mixed, monkeypatch):
    def breaks(path: Path) -> Any:
        raise KeyError("odd\nfont")

    monkeypatch.setattr(folder_files, "read_document", breaks)
    documents, faults = read_all(list_files(mixed, []), None, 1, quiet=True)
    assert not documents and len(faults) == 5 and all("\n" not in reason for reason in faults.values())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(mixed):
    (mixed / "one.md").chmod(0)
    assert "one.md" in folder(mixed).load().card["files_that_cannot_be_read"]
