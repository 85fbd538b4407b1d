"""Markdown, HTML, text and .docx become titled paragraphs and tables; passages are cut from them."""

from __future__ import annotations

import doctest

import pytest
from document_files import docx, paragraph, zip_bomb

from graphcontext.data import document as document_module
from graphcontext.data.document import (
    LARGEST_TEXT,
    Cutting,
    Document,
    Part,
    UnreadableError,
    joined,
    markdown,
    passages,
    sentences,
)
from graphcontext.data.documents import read_document


def shown(document: Document) -> list[tuple[str, str]]:
    return [(part.heading, part.text or f"{part.caption}{list(map(list, part.rows))}") for part in document.parts]


def written(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_markdown(tmp_path):
    text = (
        "---\nkey: value\n---\n# Isles\n\nSome *soft* **bold** [link](http://x.org).\n<!-- hidden -->\n- a point\n\n"
        "Table 2: Ports\n\n| a | b |\n|:--|--:|\n| 1 | 2\\|3 |\n\n## Winds\n\nNorth.\n\n```sh\n# no heading\n```\n"
    )
    document = read_document(written(tmp_path / "a.md", text))
    assert document.title == "Isles"
    assert shown(document) == [
        ("", "Some soft bold link."),
        ("", "a point"),
        ("", "Table 2: Ports[['a', 'b'], ['1', '2|3']]"),
        ("Winds", "North."),
        ("Winds", "# no heading"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It opened in the year\n1998. It cost much.", ["It opened in the year 1998. It cost much."]),
        ("1998. A year.", ["1998. A year."]),
        ("Steps:\n1. Go\n2. Stop\n\n3) Rest", ["Steps: Go Stop", "Rest"]),
        ("---\n\nA line.\n\n---\n\nThe rest.", ["A line.", "The rest."]),
        ("See <https://a.org/x> or <bob@a.org>.", ["See https://a.org/x or bob@a.org."]),
        ("If a <b and c> d, List<String>.", ["If a <b and c> d, List<String>."]),
        ('A <b>word</b>,<br/> <a href="x">link</a> <details open>', ["A word , link"]),
    ],
)
def test_markdown_keeps_what_only_looks_like_a_mark(tmp_path, text, found):
    assert [part.text for part in read_document(written(tmp_path / "a.md", text)).parts] == found


def test_html_drops_scripts_and_reads_no_entity_of_its_own(tmp_path):
    secret = written(tmp_path / "secret.txt", "SECRET")
    text = (
        f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{secret}"><!ENTITY y "{"ha" * 50}">]><html><head><title>Isles'
        "</title><style>p {}</style></head><body><h1>Winds</h1><p>North &amp; &x; &y; south<script>evil()</script></p>"
        "<div>one<p>two</p>three</div><table><caption>Table 3: Ports</caption><tr><th>a<th>b</tr><tr><td>1</td><td>2"
        "</td></tr></table><noscript>no</noscript></body></html>"
    )
    document = read_document(written(tmp_path / "a.html", text))
    assert document.title == "Isles"
    assert shown(document)[1:] == [
        ("Winds", "one"),
        ("Winds", "two"),
        ("Winds", "three"),
        ("Winds", "Table 3: Ports[['a', 'b'], ['1', '2']]"),
    ]
    first = document.parts[0].text
    assert first.startswith("North &") and "SECRET" not in first and "evil" not in first and "haha" not in first


def nested(depth: int) -> str:
    return f"<body><p>First.</p>{'<div>' * depth}deep{'</div>' * depth}<p>Last.</p></body>"


def test_html_nested_deep_is_read_and_told_where_it_is_cut(tmp_path):
    document = read_document(written(tmp_path / "a.html", nested(400)))
    assert [part.text for part in document.parts] == ["First.", "deep", "Last."] and not document.notes
    cut = read_document(written(tmp_path / "b.html", nested(5000)))
    assert "Last." in str(shown(cut)) or cut.notes[0].startswith("what comes after line 1 is lost: Excessive depth")


def test_a_long_text_of_html_is_read_whole(tmp_path):
    document = read_document(written(tmp_path / "a.html", f"<p>{'word ' * 2_100_000}</p><p>Last.</p>"))
    assert [part.text[:5] for part in document.parts] == ["word ", "Last."]


def test_text_that_is_not_utf8_is_read_and_noted(tmp_path):
    document = read_document(written(tmp_path / "a.txt", "Café\n\nnaïve", "latin-1"))
    assert [part.text for part in document.parts] == ["Café", "naïve"]
    assert "Windows-1252" in document.notes[0]
    assert read_document(written(tmp_path / "b.txt", "Café", "utf-16")).parts[0].text == "Café"


@pytest.mark.parametrize(
    ("head", "text", "encoding"),
    [
        ('<meta charset="windows-1251">', "Привет, мир.", "cp1251"),
        ('<meta http-equiv=Content-Type content="text/html; charset=Shift_JIS">', "日本語です。①", "cp932"),
        ("<meta charset=iso-8859-2>", "Łódź żółć.", "iso-8859-2"),
        ("<meta charset=iso-8859-1>", "“naïve” €", "cp1252"),
        ("<?xml version='1.0' encoding='koi8-r'?>", "Привет.", "koi8-r"),
        ("<meta charset='iso-8859-2'>", "Łódź in UTF-8", "utf-8"),
    ],
)
def test_html_is_read_in_the_encoding_that_it_declares(tmp_path, head, text, encoding):
    document = read_document(written(tmp_path / "a.html", f"{head}<p>{text}</p>", encoding))
    assert [part.text for part in document.parts] == [text] and not document.notes


@pytest.mark.parametrize("name", ["klingon", "punycode", "base64", "utf-16", "idna"])
def test_html_of_an_encoding_that_is_unknown_is_noted(tmp_path, name):
    document = read_document(written(tmp_path / "a.html", f"<meta charset={name}><p>Café</p>", "latin-1"))
    assert document.parts[0].text == "Café" and "Windows-1252" in document.notes[0]


def test_html_with_bytes_that_its_encoding_has_not_is_noted(tmp_path):
    (tmp_path / "a.html").write_bytes(b"<meta charset=shift_jis><p>\x93\xfa \x81</p>")
    assert read_document(tmp_path / "a.html").notes == ("holds bytes that are no cp932",)


def test_docx(tmp_path):
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("a", "b"))
    body = paragraph("Isles", "Title") + paragraph("Some text.") + paragraph("Winds", "Heading2")
    body += paragraph("Table 1: Ports") + f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>" + paragraph("End.")
    document = read_document(docx(tmp_path / "a.docx", body))
    assert document.title == "Isles"
    assert shown(document) == [
        ("", "Some text."),
        ("Winds", "Table 1: Ports[['a', 'b'], ['a', 'b']]"),
        ("Winds", "End."),
    ]


def control(body: str) -> str:
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{body}</w:sdtContent></w:sdt>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


def cell(text: str, columns: int = 1) -> str:
    return f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>{paragraph(text)}</w:tc>'


def test_docx_text_within_controls_and_insertions_is_read(tmp_path):
    rows = row(cell("a"), cell("b")) + control(row(cell("c"), control(cell("d"))))
    body = control(paragraph("Cover", "Title") + paragraph("In a control.")) + f"<w:ins>{paragraph('Put in.')}</w:ins>"
    body += control(f"<w:tbl>{rows}</w:tbl>") + paragraph("End.")
    document = read_document(docx(tmp_path / "a.docx", body))
    assert document.title == "Cover"
    assert [text for _, text in shown(document)] == [
        "In a control.",
        "Put in.",
        "[['a', 'b'], ['c', 'd']]",
        "End.",
    ]


def test_docx_text_that_is_gone_or_there_twice_is_read_once(tmp_path):
    box = f"<w:txbxContent>{paragraph('Box.')}</w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    moved = "<w:r><w:t>Moved.</w:t></w:r>"
    body = f"<w:p><w:r><w:t>Main.</w:t></w:r><w:r>{both}</w:r></w:p><w:p><w:moveFrom>{moved}</w:moveFrom></w:p>"
    body += f"<w:moveFrom>{paragraph('Away.')}</w:moveFrom><w:p><w:moveTo>{moved}</w:moveTo></w:p>"
    assert [part.text for part in read_document(docx(tmp_path / "a.docx", body)).parts] == ["Main. Box.", "Moved."]


def test_docx_cells_over_several_columns_keep_the_values_in_theirs(tmp_path):
    last = '<w:tr><w:trPr><w:gridBefore w:val="2"/></w:trPr>' + cell("20") + cell("99") + "</w:tr>"
    rows = row(cell("Region"), cell("Riders", 2), cell("Cost")) + row(*map(cell, ("North", "10", "20", "99"))) + last
    (table,) = read_document(docx(tmp_path / "a.docx", f"<w:tbl>{rows}</w:tbl>")).parts
    assert table.rows == (("Region", "Riders", "", "Cost"), ("North", "10", "20", "99"), ("", "", "20", "99"))


def test_html_cells_over_several_rows_keep_the_values_in_their_columns(tmp_path):
    text = (
        "<table><thead><tr><th rowspan=9>Line<th>Stop<th>Min</tr></thead><tbody>"
        "<tr><td rowspan=2>Red<td>Alpha<td>5</tr><tr><td>Beta<td>9</tr>"
        "<tr><td>Blue<td rowspan=9999999999>Alpha<td colspan=²>7</tr><tr><td>Grey<td>8</tr></table>"
    )
    (table,) = read_document(written(tmp_path / "a.html", text)).parts
    assert table.rows == (
        ("Line", "Stop", "Min"),
        ("Red", "Alpha", "5"),
        ("", "Beta", "9"),
        ("Blue", "Alpha", "7"),
        ("Grey", "", "8"),
    )


LOL = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("a.docx", lambda p: docx(p, paragraph("&b;"), LOL), "entities of its own"),
        ("a.docx", lambda p: zip_bomb(p, LARGEST_TEXT // 2**20 + 2), "would unpack to more"),
        ("a.docx", lambda p: docx(p, "", member="other.xml"), "no Word document"),
        ("a.docx", lambda p: p.write_bytes(docx(p, paragraph("x" * 999)).read_bytes()[:60]), "no .docx, or damaged"),
        ("a.docx", lambda p: p.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99)), "locked with a password"),
        ("a.docx", lambda p: docx(p, "<w:p>"), "is damaged"),
        ("a.txt", lambda p: p.write_bytes(b""), "0 bytes"),
        ("a.txt", lambda p: p.write_bytes(b"ab\x00cd"), "zero bytes"),
        ("a.md", lambda p: p.write_text("\n \n"), "no text"),
        ("a.html", lambda p: p.write_text("<script>x</script>"), "no text"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, name, make, reason):
    make(tmp_path / name)
    with pytest.raises(UnreadableError, match=reason) as error:
        read_document(tmp_path / name)
    assert "\n" not in str(error.value)


# -- passages ----------------------------------------------------------------------------------------------------------


def test_sentences_are_joined_up_to_the_limit_and_never_cut_inside():
    found = [p for p in passages(Document("T", (Part("One two. Three four. Five!", "H"),)), "a.md", Cutting(20, 99))]
    assert [p.match_text for p in found] == ["One two. Three four.", "Five!"]
    assert found[0].context_text == "T > H: One two. Three four."
    assert found[0].source.document == found[0].source.link == "a.md"


def test_abbreviations_do_not_end_a_sentence():
    text = "Dr. Ames met J. Colt at St. Ann's. They left. See Fig. 3 of it?  Yes."
    assert sentences(text) == ["Dr. Ames met J. Colt at St. Ann's.", "They left.", "See Fig. 3 of it?", "Yes."]
    assert sentences("a" * 10, 4) == ["aaaa", "aaaa", "aa"]
    assert joined([], 5) == []


def test_equal_texts_are_two_passages():
    found = passages(
        Document("T", (Part("Same.", "A"), Part("Same.", "B"), Part("Same.", "A"))), "a.md", Cutting(20, 99)
    )
    assert len({p.id for p in found}) == 3


def test_a_page_is_a_node_without_text_to_match():
    document = Document("T", (Part("First.", page=1), Part("Third.", page=3)), ("First.", "", "Third."))
    found = passages(document, "a.pdf", Cutting(99, 99))
    assert [(p.kind, p.source.page, p.match_text) for p in found] == [
        ("page", 1, ""),
        (None, 1, "First."),
        ("page", 2, ""),
        ("page", 3, ""),
        (None, 3, "Third."),
    ]
    assert found[0].context_text == "T, page 1\nFirst."


def test_a_table_over_the_limit_is_cut_between_rows_with_its_header():
    rows = (("Port", "Ships"), *((f"Port {n}", str(n)) for n in range(1, 8)))
    document = Document("T", (Part("", rows=rows, caption="Table 1: Ports"),))
    found = [p.match_text for p in passages(document, "a.md", Cutting(99, 140))]
    assert len(found) > 1 and all(len(text) <= 140 for text in found)
    assert found[0].startswith("Table 1: Ports (rows 1 to ") and found[-1].splitlines()[0].endswith("to 7 of 7)")
    assert all("| Port | Ships |\n| --- | --- |\n" in text for text in found)
    cells = [line for text in found for line in text.splitlines()[3:]]
    assert cells == [f"| Port {n} | {n} |" for n in range(1, 8)]


def test_pipes_of_a_cell_are_escaped():
    assert markdown([["a|b"], ["c\nd\\"]]) == "| a\\|b |\n| --- |\n| c d\\\\ |"


def test_doctests():
    assert doctest.testmod(document_module).failed == 0
