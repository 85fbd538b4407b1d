"""A finished table as Markdown, CSV and JSON, and all five files (LaTeX: ``latex``, picture: ``plot``)."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graphcontext.files import write_atomic
from graphcontext.table import format as text
from graphcontext.table.cells import Cell, Column, Measure, Row, TableResult, best_rows
from graphcontext.table.latex import to_tex
from graphcontext.table.plot import to_png

__all__ = ["to_csv", "to_json", "to_markdown", "to_png", "to_tex", "write"]

WIDTH = 120  # of a terminal
HEADINGS = ("row", "ours", "95 % interval", "paper", "Δ", "p", "n", "sd (seeds)", "status")
LEFT = {"row", "95 % interval", "status"}
ESCAPES = {"\\": "\\\\", "|": "\\|", "*": "\\*", "`": "\\`", "](": "]\\("}
TAG = re.compile(r"<(?=[A-Za-z/!?])")


def to_markdown(result: TableResult, sections: Sequence[str] = ()) -> str:
    """Return the table as Markdown that also reads in a terminal of 120 columns.

    One block per data set and metric, ours beside the paper's; columns that hold nothing are left out. A
    reason that would break the width becomes a numbered note.

    Args:
        result: the table.
        sections: Markdown of further sections, before the notes.
    """
    notes = text.Notes(result)
    facts = " · ".join(f"{k} {v}" for k, v in (("scale", result.scale), ("table", result.table)))
    parts = [f"<!-- {re.sub('-(?=-)', '- ', text.generated_by(result))} -->"]
    parts.append(f"# {escape_markdown(result.title)}\n\n{escape_markdown(facts)}")
    parts.append(textwrap.fill(escape_markdown(" ".join(text.legend(result))), WIDTH))
    for column in result.columns:
        paper = text.paper_names(column)
        beside = f" (paper: {escape_markdown(paper)})" if paper else ""
        parts.append(f"## {escape_markdown(column.label)}{beside}")
        for metric in result.metrics:
            if result.block(column, metric):
                parts.append(_block(result, column, metric, notes))
    if result.ranks:
        parts.append(f"## Mean rank\n\n{_ranks(result)}")
    parts += sections
    if notes.lines:
        parts.append("Notes\n\n" + "\n".join(_note(i, note) for i, note in enumerate(notes.lines, 1)))
    return "\n\n".join(parts) + "\n"


def to_csv(result: TableResult) -> str:
    """Return one line per cell, numbers to six digits, after a comment line (``comment="#"`` in pandas).

    Where the table has mean ranks, each line ends with its row's.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    rows = {row.id: row for row in result.rows}
    pairs = ("ci95", "diff_ci95")
    names = [f.name for f in dataclasses.fields(Cell)]
    spread = [n for name in names for n in ((f"{name}_low", f"{name}_high") if name in pairs else (name,))]
    ranks = {rank.row: rank.rank for rank in result.ranks}
    writer.writerow(["group", "label", *spread, *(["mean_rank"] if ranks else [])])
    for cell in _ordered(result):
        values: list[object] = []
        for name in names:
            value = getattr(cell, name)
            values += list(value or (None, None)) if name in pairs else [value]
        row = rows[cell.row]
        values += [ranks.get(cell.row)] if ranks else []
        writer.writerow([row.group, row.label, *(_plain(value) for value in values)])
    return f"# {text.generated_by(result)}\n{stream.getvalue()}"


def to_json(result: TableResult, more: Mapping[str, object] | None = None) -> str:
    """Return ``{"generated", "table", "scale", …, "footnotes", "cells"}``, one cell a line, all digits.

    Args:
        result: the table.
        more: further keys of a table of another kind (a sweep's points).
    """

    def dump(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    head = {
        "generated": text.generated_by(result),
        "table": result.table,
        "title": result.title,
        "scale": result.scale,
        "unit": result.unit,
        "digits": result.digits,
        "baseline": result.baseline,
        "rows": [dataclasses.asdict(row) for row in result.rows],
        "columns": [dataclasses.asdict(column) for column in result.columns],
        "metrics": [dataclasses.asdict(metric) for metric in result.metrics],
        "footnotes": list(result.footnotes),
        **({"ranks": [dataclasses.asdict(rank) for rank in result.ranks]} if result.ranks else {}),
        **(more or {}),
    }
    fields = ",\n ".join(f"{dump(key)}: {dump(value)}" for key, value in head.items())
    cells = ",\n  ".join(dump(dataclasses.asdict(cell)) for cell in _ordered(result))
    return f'{{{fields},\n "cells": [\n  {cells}\n ]\n}}\n'


def write(
    result: TableResult,
    stem: Path,
    sections: Sequence[str] = (),
    more: Mapping[str, object] | None = None,
    picture: Callable[[], bytes] | None = None,
) -> tuple[Path, str]:
    """Write ``stem``.md, .csv, .tex, .png and .json, each at once or not at all.

    The JSON is written last: where it already has this content, the other files are this table's, and stay.

    Args:
        result: the table.
        stem: path of the files without ending.
        sections: Markdown of further sections.
        more: further keys of the JSON; they hold all that the sections and the picture show.
        picture: draws another PNG than ours with intervals beside the paper's.

    Returns:
        The path of the Markdown file and its content.
    """
    md, csv_, tex, png, json_ = (stem.parent / f"{stem.name}{end}" for end in (".md", ".csv", ".tex", ".png", ".json"))
    content = to_json(result, more)
    if all(p.is_file() for p in (md, csv_, tex, png, json_)) and json_.read_text(encoding="utf-8") == content:
        return md, md.read_text(encoding="utf-8")
    markdown = to_markdown(result, sections)
    write_atomic(md, markdown)
    write_atomic(csv_, to_csv(result))
    write_atomic(tex, to_tex(result))
    write_atomic(png, picture() if picture else to_png(result))
    write_atomic(json_, content)
    return md, markdown


def escape_markdown(words: str) -> str:
    """Return ``words`` so that Markdown and HTML show them as they are, on one line."""
    words = " ".join(words.split()).replace("&", "&amp;")
    for character, escaped in ESCAPES.items():
        words = words.replace(character, escaped)
    return TAG.sub("&lt;", words)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Return a Markdown table padded to equal width: ``n_left`` columns left, the others right; texts are escaped."""
    return "\n".join(_aligned([heads, *rows], ["<"] * n_left + [">"] * (len(heads) - n_left)))


def _aligned(lines: Sequence[Sequence[str]], sides: Sequence[str]) -> list[str]:
    """Return the lines of a Markdown table padded to equal width, the first one its heads; sides: ``<`` or ``>``."""
    widths = [max(3, *map(len, column)) for column in zip(*lines)]
    rule = [":" + "-" * (w - 1) if s == "<" else "-" * (w - 1) + ":" for w, s in zip(widths, sides)]
    shown = [lines[0], rule, *lines[1:]]
    return ["| " + " | ".join(f"{v:{s}{w}}" for v, s, w in zip(line, sides, widths)) + " |" for line in shown]


def _ranks(result: TableResult) -> str:
    """Return the mean ranks as a Markdown table, the paper's beside ours where it has any."""
    labels = {row.id: escape_markdown(row.label) for row in result.rows}
    shown = [[labels[r.row], text.number(r.rank, 2), text.number(r.reported, 2)] for r in result.ranks]
    kept = 3 if any(r.reported is not None for r in result.ranks) else 2
    return markdown_table(("row", "ours", "paper")[:kept], [line[:kept] for line in shown])


def _block(result: TableResult, column: Column, metric: Measure, notes: text.Notes) -> str:
    block = result.block(column, metric)
    bold = best_rows((cell for _, cell in block), metric.higher_is_better)
    arrow = "" if metric.higher_is_better else ", lower is better"
    lines = _lines(result, column, block, bold)
    if max(map(len, lines)) > WIDTH:
        lines = _lines(result, column, block, bold, notes)
    return f"### {escape_markdown(metric.label)}{arrow}\n\n" + "\n".join(lines)


def _lines(
    result: TableResult,
    column: Column,
    block: list[tuple[Row, Cell]],
    bold: set[str],
    notes: text.Notes | None = None,
) -> list[str]:
    """Return the lines of a Markdown table, padded to equal width, without the columns that hold nothing."""
    table = [list(HEADINGS)]
    group = ""
    for row, cell in block:
        if row.group != group:
            group = row.group
            table.append([f"*{escape_markdown(group)}*" if group else "", *[""] * (len(HEADINGS) - 1)])
        values = _values(result, column, cell, row.id in bold)
        if notes is not None and cell.status.startswith("not run ("):
            values[-1] = f"not run [{notes.number(cell.status)}]"
        else:
            values[-1] = escape_markdown(values[-1])
        table.append([escape_markdown(row.label), *values])
    kept = [i for i in range(len(HEADINGS)) if i == 0 or any(line[i] for line in table[1:])]
    return _aligned([[line[i] for i in kept] for line in table], ["<" if HEADINGS[i] in LEFT else ">" for i in kept])


def _values(result: TableResult, column: Column, cell: Cell, bold: bool) -> list[str]:
    """Return a cell's texts in the order of ``HEADINGS``, without the row's label."""
    digits = result.digits
    ours = "" if cell.value is None else text.number(cell.value, digits)
    mark = "*" if text.is_significant(cell) else ""  # alone in its table cell, so it opens no emphasis
    return [
        f"**{ours}**" if bold else ours + mark,
        text.interval(cell.ci95, digits),
        text.reported(cell.reported, column, digits),
        text.signed(cell.diff, digits),
        text.probability(cell.p_holm),
        "" if cell.n is None else str(cell.n),
        text.seeds(cell, digits),
        cell.status,
    ]


def _note(place: int, note: str) -> str:
    return textwrap.fill(escape_markdown(note), WIDTH, initial_indent=f"{place}. ", subsequent_indent="   ")


def _ordered(result: TableResult) -> list[Cell]:
    return [cell for c in result.columns for m in result.metrics for _, cell in result.block(c, m)]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.6g}" if isinstance(value, float) else value
