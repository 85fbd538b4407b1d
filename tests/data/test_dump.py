"""Reading the XML of a dump: what is kept, what is refused, and how much memory it takes."""

from __future__ import annotations

import gzip
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from dumps import answer, question, row, thread, write, xml

import graphcontext
from graphcontext.data.archive import DumpFiles, dump_files
from graphcontext.data.dump import license_of, read_dump, split_tags
from graphcontext.data.plain_text import html_to_text
from graphcontext.data.xml_rows import rows
from graphcontext.errors import InputError

BENCH = Path(__file__).parents[2] / "scripts" / "bench" / "read_dump.py"


def test_threads_with_an_accepted_answer_are_kept_with_all_their_answers(tmp_path):
    posts = question(1, "ports", accepted=3) + answer(2, 1) + answer(3, 1, Score=-1, OwnerDisplayName="eve")
    posts += question(4, "no answer") + answer(5, 4) + row(Id=6, PostTypeId=5, Body="wiki")
    dump = read_dump(dump_files(write(tmp_path, posts)))
    assert list(dump.threads) == [1]
    kept = dump.threads[1]
    assert [(a.id, a.score, a.author) for a in kept.answers] == [(2, 2, "user8"), (3, -1, "eve")]
    assert kept.accepted is kept.answers[1]
    assert (kept.author, kept.year, kept.tags, kept.license) == ("user7", 2019, ("linux",), "CC BY-SA 4.0")
    assert dump.counts["questions"] == 2
    assert dump.counts["answers"] == 3
    assert dump.counts["other posts"] == 1
    assert dump.counts["no accepted answer"] == 1


def test_answers_that_stand_before_their_question_are_kept(tmp_path):
    posts = answer(2, 9) + question(9, "merged thread", accepted=2) + answer(12, 77)
    dump = read_dump(dump_files(write(tmp_path, posts)))
    assert dump.threads[9].accepted.id == 2
    assert dump.counts["answers without question"] == 1  # thread 77 is not in the file


def test_an_accepted_id_that_points_nowhere_or_into_another_thread_is_no_accepted_answer(tmp_path):
    posts = question(1, "gone", accepted=99) + answer(2, 1) + question(3, "foreign", accepted=2) + answer(4, 3)
    dump = read_dump(dump_files(write(tmp_path, posts)))
    assert dump.threads[1].accepted is None
    assert dump.threads[3].accepted is None


def test_years_and_tags_leave_questions_out_while_reading(tmp_path):
    posts = thread(1, "a", "2018-12-31") + thread(3, "b", "2019-01-01") + thread(5, "c", "2019-02-01", Tags="<ssh>")
    dump = read_dump(dump_files(write(tmp_path, posts)), frozenset({2019}), frozenset({"linux"}))
    assert list(dump.threads) == [3]
    assert dump.counts["outside years"] == 1
    assert dump.counts["other tags"] == 1


@pytest.mark.parametrize(
    ("tags", "expected"),
    [("<ssh><c++>", ("ssh", "c++")), ("|ssh|c++|", ("ssh", "c++")), ("<ssh>", ("ssh",)), ("", ())],
)
def test_both_tag_layouts(tags, expected):
    assert split_tags(tags) == expected


def test_licence_follows_the_date_where_the_dump_names_none():
    assert license_of("2011-04-07T23:59:59.999") == "CC BY-SA 2.5"
    assert license_of("2011-04-08T00:00:00.000") == "CC BY-SA 3.0"
    assert license_of("2018-05-01T23:00:00.000") == "CC BY-SA 3.0"
    assert license_of("2018-05-02T00:00:00.000") == "CC BY-SA 4.0"


def test_gzipped_files_are_read_as_plain_ones(tmp_path):
    folder = write(tmp_path / "plain", thread(1, "a", "2019-01-01"))
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "Posts.xml.gz").write_bytes(gzip.compress((folder / "Posts.xml").read_bytes()))
    assert read_dump(dump_files(packed)).threads == read_dump(dump_files(folder)).threads


def test_entities_are_resolved_once(tmp_path):
    # an author types a < b && "c", and writes about the entity &#38; itself
    html = '<p>a &lt; b &amp;&amp; "c" &amp;#38;</p>\n'
    posts = question(1, "R&D: <b> & 'x'", 2, Body=html) + answer(2, 1)
    kept = read_dump(dump_files(write(tmp_path, posts))).threads[1]
    assert kept.title == "R&D: <b> & 'x'"
    assert kept.html == html
    assert html_to_text(kept.html) == 'a < b && "c" &#38;'


# -- bad input: one clear line -------------------------------------------------------------------


def refusal(path: Path, root: str = "posts") -> str:
    with pytest.raises(InputError) as caught:
        list(rows(path, root))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("end", [-5, -12, -150])
def test_a_dump_cut_in_mid_row_or_between_rows_is_refused_with_the_place(tmp_path, end):
    whole = xml("posts", thread(1, "a", "2019-01-01") + thread(3, "b", "2019-01-02")).encode()
    path = tmp_path / "Posts.xml"
    path.write_bytes(whole[:end])
    message = refusal(path)
    assert f"{path} is cut or malformed after row " in message
    assert "near byte" in message
    assert "fetch the file again" in message


def test_the_last_whole_row_of_a_cut_dump_is_named(tmp_path):
    path = tmp_path / "Posts.xml"
    text = xml("posts", "".join(row(Id=n, Body="x" * 5000) for n in range(1, 301)))
    path.write_text(text[: text.index('Id="300"') + 50])
    assert "after row 299 (last whole row: Id 299)" in refusal(path)


def test_a_cut_gzip_is_refused(tmp_path):
    path = tmp_path / "Posts.xml.gz"
    path.write_bytes(gzip.compress(xml("posts", thread(1, "a", "2019-01-01")).encode())[:-40])
    assert "is cut or malformed" in refusal(path)
    path.write_bytes(b"no gzip at all")
    assert "is no XML dump: Not a gzipped file" in refusal(path)


def test_an_empty_file_and_one_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "Posts.xml"
    path.write_bytes(b"")
    assert "is no XML dump: it is empty; fetch it again" in refusal(path)
    path.write_text(xml("users", row(Id=1)))
    assert "got root element <users>, expected <posts>" in refusal(path)
    for content in (b"\x89PNG\r\n", b'{"items": []}', b"plain text"):
        path.write_bytes(content)
        message = refusal(path)
        assert "is no XML dump" in message
        assert "<string>" not in message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_xml_bomb_is_refused_before_any_entity_is_expanded(tmp_path, encoding):
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE posts [<!ENTITY e0 "ha">{entities}]>'
    path = tmp_path / "Posts.xml"
    path.write_bytes((bomb + '<posts><row Id="1" Body="&e11;"/></posts>').encode(encoding))
    assert "declares a DOCTYPE (posts): refused" in refusal(path)


def test_an_external_entity_is_refused(tmp_path):
    path = tmp_path / "Posts.xml"
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path.write_text(f'<!DOCTYPE posts [<!ENTITY x SYSTEM "file://{secret}">]><posts><row Id="&x;"/></posts>')
    assert "declares a DOCTYPE" in refusal(path)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(PostTypeId=1, AcceptedAnswerId=2), "row 1 has no Id, expected an integer"),
        (row(PostTypeId=2, Id=1, ParentId="x"), "row 1 has ParentId='x', expected an integer"),
        (question(1, "a", 2, CreationDate="yesterday"), "row 1 has CreationDate='yesterday'"),
        (question(1, "a") * 2, "row 2 repeats question Id 1"),
    ],
)
def test_a_row_that_cannot_be_understood_is_named(tmp_path, bad, message):
    with pytest.raises(InputError, match=message):
        read_dump(dump_files(write(tmp_path, bad)))


# -- memory --------------------------------------------------------------------------------------


def measured(way: str, path: Path) -> dict[str, float]:
    command = [sys.executable, str(BENCH), "--way", way, "--file", str(path)]
    source = str(Path(graphcontext.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": source})
    return json.loads(done.stdout)


def test_memory_does_not_grow_with_the_file_but_with_what_is_kept(tmp_path):
    path = tmp_path / "Posts.xml"
    runpy.run_path(str(BENCH))["generate"](path, 60, accepted_every=20)
    assert path.stat().st_size > 60e6
    assert measured("rows", path)["peak_mb"] < 15  # the rows of one chunk
    loaded = measured("load", path)
    assert loaded["kept_mb"] < 10
    assert loaded["peak_mb"] < loaded["kept_mb"] + 30  # a tenth of the allowance at a ninth of 500 MB


def test_a_missing_optional_file_is_no_fault(tmp_path):
    folder = write(tmp_path, thread(1, "a", "2019-01-01"))
    assert dump_files(folder) == DumpFiles(folder / "Posts.xml")
    dump = read_dump(dump_files(folder))
    assert dump.duplicates == []
    assert dump.tag_names == frozenset()
