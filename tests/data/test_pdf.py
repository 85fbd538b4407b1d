"""PDFs become pages, paragraphs under headings and tables; what cannot be read says why in one line."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from document_files import GRID, LINES, pdf, scan

from graphcontext.data import pdf as pdf_module
from graphcontext.data import pdf_layout
from graphcontext.data.document import UnreadableError
from graphcontext.data.location import data_root
from graphcontext.data.pdf import _hyphenated, read_pdf, read_tables
from graphcontext.data.pdf_layout import Box, Layout, Rule, blocks, merged, segments
from graphcontext.data.pdf_regions import Region, _crossing

ROWS = [["Port", "Ships", "Tons"], ["Alda", "12", "340"], ["Brim", "7", "95"], ["Corve", "31", "1,204"]]
WORDS = [["Dish", "From", "Made of"], ["Pie", "Alda", "fish"], ["Stew", "Brim", "lentils"], ["Cake", "Corve", "oats"]]


def tables(path: Path) -> list[tuple[int, str, list[list[str]]]]:
    return [(page, table.number, [list(row) for row in table.rows]) for page, table in read_tables(path)]


@pytest.mark.parametrize("style", [GRID, LINES, []], ids=["grid", "lines", "none"])
def test_a_table_is_found_with_any_ruling_lines(tmp_path, style):
    file = pdf(tmp_path / "a.pdf", [["Some words before the table.", ("Table 4: Ports", ROWS, style), "And after it."]])
    assert tables(file) == [(1, "4", ROWS)]


@pytest.mark.parametrize("style", [GRID, LINES, []], ids=["grid", "lines", "none"])
def test_a_table_of_words_is_found_where_it_has_a_caption(tmp_path, style):
    file = pdf(tmp_path / "a.pdf", [[("Table B-2. Dishes", WORDS, style)]])
    assert tables(file) == [(1, "B-2", WORDS)]


def test_prose_is_no_table(tmp_path):
    text = (
        "In the morning the boats leave and in the evening they return with whatever the sea was willing to give. " * 12
    )
    assert tables(pdf(tmp_path / "a.pdf", [[text, text]])) == []


def test_a_cell_of_several_lines_is_one_cell(tmp_path):
    rows = [["Kind", "What it is"], ["Pie", "fish under\na crust"], ["Stew", "lentils\nand salt"], ["Soup", "barley"]]
    file = pdf(tmp_path / "a.pdf", [[("Table 1: Food", rows, GRID)]])
    assert tables(file)[0][2][1] == ["Pie", "fish under a crust"]


@pytest.mark.parametrize("align", ["TOP", "MIDDLE", "BOTTOM"])
@pytest.mark.parametrize("n_rows", [2, 3])
def test_a_row_of_a_small_gridded_table_is_one_row(tmp_path, align, n_rows):
    rows = [["Kind", "What it is", "Level"], ["Pie", "fish that lies\nunder a crust", "soft"]]
    rows += [["Stew", "lentils and\nsome salt\nand oil", "hard"]] * (n_rows - 2)
    file = pdf(tmp_path / "a.pdf", [[("Table 1: Food", rows, [*GRID, ("VALIGN", (0, 0), (-1, -1), align)])]])
    assert tables(file)[0][2] == [[cell.replace("\n", " ") for cell in row] for row in rows]


def test_rows_of_a_box_with_a_line_below_its_header_stay_apart(tmp_path):
    style = [("BOX", (0, 0), (-1, -1), 0.5, "black"), ("INNERGRID", (0, 0), (-1, 0), 0.5, "black")]
    style += [("LINEBELOW", (0, 0), (-1, 0), 0.5, "black"), ("LINEAFTER", (0, 0), (-1, -1), 0.5, "black")]
    for rows in (WORDS, [*WORDS[:2], ["", "or Brim", ""], *WORDS[2:]]):
        (found,) = tables(pdf(tmp_path / "a.pdf", [[("Table 1: Dishes", rows, style)]]))
        assert [row[0] for row in found[2]] == ["Dish", "Pie", "Stew", "Cake"]


def test_a_page_is_read_in_order_with_its_table_in_place(tmp_path):
    parts = ["# Harbours", "The first paragraph ends here.", ("Table 1: Ports", ROWS, GRID), "# Boats", "The second."]
    document = read_pdf(pdf(tmp_path / "a.pdf", [parts, ["On the next page."]], title="Of ships"))
    assert document.title == "Of ships"
    assert [(part.text, part.heading, part.page, part.caption) for part in document.parts] == [
        ("The first paragraph ends here.", "Harbours", 1, ""),
        ("", "Harbours", 1, "Table 1: Ports"),
        ("The second.", "Boats", 1, ""),
        ("On the next page.", "Boats", 2, ""),
    ]
    assert document.pages[0].startswith("Harbours\n\nThe first paragraph ends here.\n\nTable 1: Ports\n| Port | Ships")
    assert len(document.pages) == 2


def test_the_title_is_the_largest_text_or_the_file_s_name(tmp_path):
    assert read_pdf(pdf(tmp_path / "a.pdf", [["# A Large Title", "Words. " * 9]], "untitled")).title == "A Large Title"
    assert read_pdf(pdf(tmp_path / "b.pdf", [["Words. " * 9]], "Microsoft Word - x.doc")).title == "b"


@pytest.mark.parametrize(
    "title",
    [
        "(anonymous)",
        "(unspecified)",
        "Untitled",
        "PowerPoint Presentation",
        "Document1",
        "Slide 1",
        "Microsoft Word - x",
    ],
)
def test_a_title_that_a_program_put_in_is_none(tmp_path, title):
    assert read_pdf(pdf(tmp_path / "ships.pdf", [["Words. " * 9]], title)).title == "ships"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda p: scan(p), "no text: a scan"),
        (lambda p: pdf(p, [["secret"]], password="key"), "locked with a password"),
        (lambda p: p.write_text("hello"), "is no PDF"),
        (lambda p: p.write_bytes(pdf(p, [["words " * 50]]).read_bytes()[:900]), "cut or damaged"),
        (lambda p: p.write_bytes(b"%PDF-1.4\n" + bytes(2000)), "cut or damaged"),
    ],
    ids=["scan", "password", "other", "cut", "zeros"],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, make, reason):
    make(tmp_path / "a.pdf")
    with pytest.raises(UnreadableError, match=reason) as error:
        read_pdf(tmp_path / "a.pdf")
    assert "\n" not in str(error.value)


def test_running_heads_and_page_numbers_are_no_text(tmp_path):
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"), invariant=1)
    for number in range(1, 5):
        canvas.drawString(60, 815, f"Yearly report, part {number}")
        canvas.drawString(60, 400, "abcd"[number - 1] * 5)
        canvas.drawString(290, 20, str(number))
        canvas.showPage()
    canvas.save()
    assert [part.text for part in read_pdf(tmp_path / "a.pdf").parts] == ["aaaaa", "bbbbb", "ccccc", "ddddd"]


def box(text: str, x: float, y: float, width: float = 60) -> Box:
    return Box(text, x, y, x + width, y + 10, 10)


def test_columns_are_read_one_after_the_other():
    left, right = (
        [box(f"l{n}", 50, 100 + 12 * n) for n in range(4)],
        [box(f"r{n}", 150, 100 + 12 * n) for n in range(4)],
    )
    found = [word.text for block in blocks([*right, *left]) for line in block for word in line]
    assert found == ["l0", "l1", "l2", "l3", "r0", "r1", "r2", "r3"]


def test_pieces_of_a_line_and_of_a_rule():
    assert [piece.text for piece in segments([box("a", 0, 0, 10), box("b", 13, 0, 10), box("c", 40, 0, 9)])] == [
        "a b",
        "c",
    ]
    assert merged([Rule(10, 0, 20), Rule(11, 21, 40), Rule(10, 60, 70)]) == (Rule(10, 0, 40), Rule(10, 60, 70))


@pytest.mark.parametrize("angle", [0, 90, 180, 270])
def test_a_turned_page_is_read_upright(tmp_path, angle):
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 600), invariant=1)
    canvas.translate(300, 300)
    canvas.rotate(angle)
    canvas.translate(-300, -300)
    for row, cells in enumerate(ROWS):
        for column, cell in enumerate(cells):
            canvas.drawString(105 + 90 * column, 505 - 20 * row, cell)
    canvas.grid([100, 190, 280, 370], [520, 500, 480, 460, 440])
    canvas.drawString(100, 300, "Words of the page, some more than one.")
    canvas.save()
    document = read_pdf(tmp_path / "a.pdf")
    assert [part.rows or part.text for part in document.parts] == [
        tuple(map(tuple, ROWS)),
        "Words of the page, some more than one.",
    ]
    assert not document.notes


@pytest.mark.parametrize("angle", [45, 90, 180])
def test_text_of_another_direction_is_left_out_and_told(tmp_path, angle):
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"), invariant=1)
    canvas.drawString(60, 700, "Upright words of the page.")
    canvas.translate(300, 300)
    canvas.rotate(angle)
    canvas.drawString(0, 0, "Stamped across")
    canvas.save()
    document = read_pdf(tmp_path / "a.pdf")
    assert [part.text for part in document.parts] == ["Upright words of the page."]
    assert document.notes == ("pages with text of another direction, which is left out: 1",)


def test_on_a_page_of_too_many_lines_no_ruled_table_is_looked_for_and_it_is_told(tmp_path, monkeypatch):
    file = pdf(tmp_path / "a.pdf", [[("", WORDS, GRID)]])  # 5 horizontal and 4 vertical lines
    monkeypatch.setattr(pdf_layout, "MOST_RULES", 8)
    document = read_pdf(file)
    assert document.notes == ("pages with too many lines to look for ruled tables: 1",)
    assert not any(part.rows for part in document.parts) and "lentils" in document.pages[0]
    monkeypatch.setattr(pdf_layout, "MOST_RULES", 9)
    assert read_pdf(file).parts[0].rows == tuple(map(tuple, WORDS))


def test_lines_that_cross_are_one_region_and_a_vertical_line_alone_is_none():
    page = Layout((), (Rule(10, 0, 50), Rule(40, 0, 50), Rule(90, 0, 50)), (Rule(20, 10, 40), Rule(70, 0, 99)), 99, 99)
    assert sorted(_crossing(page), key=lambda r: r.top) == [Region(0, 10, 50, 40), Region(0, 90, 50, 90)]


class Counted(float):
    """A number that counts how often it is compared."""

    n = 0

    def _count(self, other: float, compare: Any) -> bool:
        Counted.n += 1
        return compare(float(self), other)

    def __lt__(self, other: float) -> bool:
        return self._count(other, operator.lt)

    def __gt__(self, other: float) -> bool:
        return self._count(other, operator.gt)

    def __le__(self, other: float) -> bool:
        return self._count(other, operator.le)

    def __ge__(self, other: float) -> bool:
        return self._count(other, operator.ge)


def test_lines_are_compared_with_those_near_them_only():
    horizontal = tuple(Rule(5 * n, 20 * n, 20 * n + 9) for n in range(300))
    vertical = tuple(Rule(Counted(20 * n + 5), 5 * n - 5, 5 * n + 5) for n in range(300))
    Counted.n = 0
    assert len(_crossing(Layout((), horizontal, vertical, 6000, 1500))) == 300
    assert Counted.n < 20_000  # of 90,000 pairs


def side_by_side(path: Path) -> Path:
    """Write a page with two tables beside each other."""
    from reportlab.platypus import Table, TableStyle

    left = Table([["Ship", "Seats"], ["Petrel", "180"], ["Dunlin", "220"]], style=TableStyle(GRID))
    right = Table([["Port", "Boats"], ["Oak", "7"], ["Dun", "9"]], style=TableStyle(GRID))
    return pdf(path, [["Before the tables.", ("", [[left, right]], []), "After the tables."]])


def test_of_two_tables_side_by_side_both_are_read(tmp_path):
    document = read_pdf(side_by_side(tmp_path / "a.pdf"))
    assert [part.rows[0] if part.rows else part.text for part in document.parts] == [
        "Before the tables.",
        ("Ship", "Seats"),
        ("Port", "Boats"),
        "After the tables.",
    ]
    assert "| Oak | 7 |" in document.pages[0] and not document.notes


def test_a_table_that_is_lost_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_module, "blocks", lambda words: blocks([w for w in words if "\x00" not in w.text]))
    assert read_pdf(side_by_side(tmp_path / "a.pdf")).notes == ("pages of which a table is lost: 1",)


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("dis-", "ability", "disability"),
        ("Anglo-", "Saxon", "Anglo- Saxon"),
        ("2030-", "2031", "2030- 2031"),
        ("", "a", "a"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line(first, second, whole):
    assert _hyphenated(first, second) == whole


@pytest.mark.needs_data
@pytest.mark.slow
def test_four_of_five_gold_cells_are_found():
    script = Path(__file__).parents[2] / "scripts" / "pdf_tables.py"
    if not (data_root() / "pdf_tables").is_dir():
        pytest.skip("pdf_tables is not below GRAPHCONTEXT_DATA")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    shares = re.findall(r"^\| (\S+) \| \d+ \| \d+ \| ([\d.]+)%", done.stdout, re.MULTILINE)
    assert len(shares) == 7 and all(float(share) >= 80 for _, share in shares)
