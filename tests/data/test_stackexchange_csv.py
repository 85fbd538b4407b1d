"""Data Explorer CSVs: columns, encodings, rows of one question, the same filters and cut as a dump."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_data import CSV_COLUMNS, SO, csv_dataset, csv_line, write_csv

from graphcontext.data.question_table import read_table
from graphcontext.data.stackexchange_csv import StackExchangeCSV
from graphcontext.errors import InputError, MissingDataError


def lines(n: int, first: int = 1, **more: str) -> list[dict[str, str]]:
    return [csv_line(first + 2 * k, **more) for k in range(n)]


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        csv_dataset(path).load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_rows_become_a_pool_that_is_cut_by_id(tmp_path):
    result = csv_dataset(write_csv(tmp_path / "a.csv", lines(8))).load()
    assert result.card["split"] == {
        **{"side": "test", "rule": "last quarter in id order", "why": "no dates", "train": 6, "test": 2}
    }
    assert [q.id for q in result.questions] == ["13", "15"]
    (corpus,) = result.corpora.values()
    first = corpus.passages[0]
    assert first.match_text == "topic 1\nHow is it done on a server? I tried all I know about 1."
    assert first.answers[0].text == "Answer 2: edit the file, then reload the service and look at its log."
    assert (first.source.link, first.source.license, result.card["tags"]) == ("", "CC BY-SA", {"linux": 8})


def test_dates_use_the_papers_years_and_more_columns_are_read(tmp_path):
    more = {"OwnerDisplayName": "ann", "AnswerScore": "-4", "ContentLicense": "CC BY-SA 3.0", "Views": "9"}
    rows = lines(20, CreationDate="2019-05-01 10:00:00", **more) + lines(20, 1001, CreationDate="2021-05-01", **more)
    result = csv_dataset(write_csv(tmp_path / "a.csv", rows)).load()
    assert result.card["split"]["rule"] == "years 2019–2020 / 2021–2023"
    (corpus,) = result.corpora.values()
    passage = corpus.passages[0]
    assert (passage.source.author, passage.source.license, passage.source.date) == (
        "ann",
        "CC BY-SA 3.0",
        "2019-05-01 10:00:00",
    )
    assert passage.answers[0].votes == -4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_column_order_case_encoding_and_delimiter_do_not_matter(tmp_path, encoding, delimiter):
    plain = csv_dataset(write_csv(tmp_path / "p" / "a.csv", lines(8))).load()
    names = {"QuestionId": "question_id", "AnswerBody": "ANSWERBODY", "QuestionTitle": " Question Title"}
    rows = [{names.get(k, k): row[k] for k in sorted(row, reverse=True)} for row in lines(8)]
    other = csv_dataset(write_csv(tmp_path / "o" / "a.csv", rows, encoding, delimiter)).load()
    assert (other.questions, other.corpora) == (plain.questions, plain.corpora)


def test_quotes_line_breaks_and_huge_bodies_are_kept(tmp_path):
    body = '<p>He said "use it", then:</p>\n<pre>\r\n"a","b"\n</pre>' + "<p>" + "word " * 200 + "</p>" * 60_000
    dump = read_table(write_csv(tmp_path / "a.csv", [csv_line(1, AnswerBody=body), csv_line(3)]))
    assert len(body) > 131_072  # the csv module's own limit
    assert dump.threads[1].accepted.html == body and dump.threads[3].title == "topic 3"


def test_doubled_rows_and_questions_without_an_answer_are_counted(tmp_path):
    rows = [*lines(8), csv_line(1), csv_line(101, AnswerId="", AnswerBody="")]
    card = csv_dataset(write_csv(tmp_path / "a.csv", rows)).load().card
    assert card["read"]["questions"] == 9 and card["read"]["answers"] == 8
    assert card["filters"]["doubled rows"] == 1 and card["filters"]["no accepted answer"] == 1
    assert card["kept"] == 8


def test_further_answers_need_the_column_that_names_the_accepted_one(tmp_path):
    second = csv_line(1, AnswerId="900", AnswerBody=SO.format("second"))
    assert "line 10: question 1 has a second answer; a column AcceptedAnswerId" in refusal(
        write_csv(tmp_path / "a.csv", [*lines(8), second])
    )
    rows = [row | {"AcceptedAnswerId": row["AnswerId"]} for row in lines(8)]
    rows[0]["AcceptedAnswerId"] = "900"
    both = write_csv(tmp_path / "b.csv", [*rows, second | {"AcceptedAnswerId": "900"}])
    (corpus,) = csv_dataset(both).load().corpora.values()
    assert [(a.accepted, a.text[:13]) for a in corpus.passages[0].answers] == [
        (False, "Answer 2: edi"),
        (True, "Answer second"),
    ]


def test_a_blank_accepted_answer_is_none_and_a_missing_column_is_said(tmp_path):
    rows = [row | {"AcceptedAnswerId": row["AnswerId"]} for row in lines(8)]
    open_ = [csv_line(201, AcceptedAnswerId=""), csv_line(201, AnswerId="900", AcceptedAnswerId="")]
    result = csv_dataset(write_csv(tmp_path / "a.csv", [*rows, *open_])).load()
    assert (result.card["read"]["questions"], result.card["read"]["answers"], result.card["kept"]) == (9, 10, 8)
    assert result.card["filters"]["no accepted answer"] == 1
    without = csv_dataset(write_csv(tmp_path / "b.csv", lines(8))).load()
    assert without.questions == csv_dataset(write_csv(tmp_path / "c.csv", rows)).load().questions
    assert "assumed" not in result.card
    assert without.card["assumed"] == "each answer is the accepted one (no column AcceptedAnswerId)"


def test_rows_of_one_question_that_differ_in_the_accepted_answer_are_refused(tmp_path):
    first, second = csv_line(1, AcceptedAnswerId=""), csv_line(1, AnswerId="900", AcceptedAnswerId="900")
    assert "line 3: question 1 has an accepted answer here and none in its first row" in refusal(
        write_csv(tmp_path / "a.csv", [first, second])
    )
    assert "line 3: question 1 has a second answer" in refusal(write_csv(tmp_path / "b.csv", [second, first]))


@pytest.mark.parametrize("column", [c for c in CSV_COLUMNS if c != "Tags"])
def test_a_missing_column_is_named(tmp_path, column):
    rows = [{("Ansver Body" if k == column == "AnswerBody" else k): v for k, v in row.items()} for row in lines(3)]
    rows = [{k: v for k, v in row.items() if k != column} for row in rows]
    message = refusal(write_csv(tmp_path / "a.csv", rows))
    assert f"has no column {column}" in message and "(found: " in message
    assert ("did you mean Ansver Body?" in message) == (column == "AnswerBody")


def test_tags_are_needed_only_where_they_are_asked_for(tmp_path):
    rows = [{k: v for k, v in row.items() if k != "Tags"} for row in lines(8)]
    path = write_csv(tmp_path / "a.csv", rows)
    assert csv_dataset(path).load().card["kept"] == 8
    with pytest.raises(InputError, match="has no column Tags"):
        csv_dataset(path, tags=["linux"]).load()
    with pytest.raises(InputError, match=r"dataset.tags names linx; did you mean linux\?"):
        csv_dataset(write_csv(tmp_path / "b.csv", lines(8)), tags=["linx"]).load()


FAULTS = {
    "empty": (b"", "is empty; expected a CSV with QuestionId"),
    "no utf-8": (b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,caf\xe9,b,2,c\n", "is no UTF-8 text"),
    "nul": (b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,a\0b,b,2,c\n", "line 2 holds a NUL"),
    "cut": (b'QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,a,b,2,"c', "line 2: the row is cut"),
    "short row": (b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,a,b\n", "has 3 fields, the header 5"),
    "nested quotes": (b'QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,"a "b" c",b,2,c\n', "malformed"),
    "twice": (b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody,ANSWERID\n", "AnswerId stands there 2 times"),
    "id": (b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1_0,a,b,2,c\n", "line 2 has QuestionId='1_0'"),
    "date": (
        b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody,CreationDate\n1,a,b,2,c,5/29/2009\n",
        "line 2 has CreationDate='5/29/2009', expected an ISO 8601 date",
    ),
    "answer of two": (
        b"QuestionId,QuestionTitle,QuestionBody,AnswerId,AnswerBody\n1,a,b,2,c\n3,d,e,2,f\n",
        "line 3: AnswerId 2 stands in another row with other values",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_one_line(tmp_path, fault):
    raw, message = FAULTS[fault]
    (tmp_path / "a.csv").write_bytes(raw)
    assert message in refusal(tmp_path / "a.csv")


def test_the_folder_of_one_csv_will_do_and_names_the_site(tmp_path):
    folder = tmp_path / "unix.stackexchange.com"
    write_csv(folder / "QueryResults.csv", lines(8))
    for path in (folder, folder / "QueryResults.csv"):
        assert csv_dataset(path).load().questions[0].source.link == "https://unix.stackexchange.com/questions/13"
    write_csv(folder / "b.csv", lines(8))
    with pytest.raises(InputError, match=r"expected one CSV in this folder, found QueryResults.csv, b.csv"):
        csv_dataset(folder).load()


def test_the_key_follows_content_and_not_the_name(tmp_path):
    def key(folder: Path) -> dict[str, str]:
        return StackExchangeCSV.identity({"name": "stackexchange_csv", "path": str(folder)})

    one, two = write_csv(tmp_path / "x" / "a.csv", lines(8)), write_csv(tmp_path / "y" / "b.csv", lines(8))
    assert key(one) == key(two) == key(two.parent)
    write_csv(two, lines(9))
    assert key(one) != key(two)


def test_absent_data_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="stackoverflow_cli"):
        csv_dataset(None).load()


@pytest.mark.needs_data
def test_the_real_file_of_the_default_place(data_root, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(data_root))
    result = csv_dataset(None).load()
    card = result.card
    assert (card["read"]["questions"], card["read"]["answers"]) == (150, 150)
    assert (card["kept"], card["filters"]["answer length"]) == (147, 3)
    assert (card["pool"], card["scored_candidates"]) == (111, 36)
    assert result.questions[0].source.link.startswith("https://stackoverflow.com/questions/")
    assert csv_dataset(None, side="validation").load().card["scored_candidates"] == 11
