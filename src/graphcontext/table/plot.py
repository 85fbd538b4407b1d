"""A finished table as a picture: ours with its interval beside the paper's numbers."""

from __future__ import annotations

import io
import math
import textwrap
from typing import Any

from graphcontext.table import format as text
from graphcontext.table.cells import Cell, Column, Measure, Row, TableResult

OURS, SIGNIFICANT, PAPER, FAINT = "#1f4e79", "#c0504d", "#555555", "#9a9a9a"
PAPER_MARKERS = ("D", "s", "^", "v", "p", "h")
DASHES = (0, (4, 3))
PANEL, LINE, GAP = 2.6, 0.27, 1.0  # inches: a panel's width, a row's height, between data sets


def to_png(result: TableResult, dpi: int = 150) -> bytes:
    """Return a PNG: one panel per data set and metric, one line per row of the table.

    A filled dot with its 95 % interval is ours (red where it differs from the baseline, Holm-adjusted
    p < .05), hollow marks are the paper's numbers, a dashed line is the baseline. The same table gives the
    same bytes on the same machine.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    metrics = [m for m in result.metrics if any(result.block(column, m) for column in result.columns)]
    metrics = metrics or list(result.metrics[:1])
    labels = 0.5 + 0.068 * max(len(row.label) for row in result.rows)
    width = labels + PANEL * len(metrics) + 0.2
    title = textwrap.wrap(_shown(f"{result.title} · scale {result.scale}"), int(width * 9.5))
    marks, footer = _marks(result), _footer(result, width)
    entries = [0.5 + 0.058 * len(mark.get_label()) for mark in marks]  # inches
    per_line = len(marks) if sum(entries) < width else max(1, int(width / max(entries)))
    legend = 0.17 * math.ceil(len(marks) / per_line)
    lines = LINE * max(2, len(_lines(result.rows)))
    top, bottom = 0.8 + 0.2 * len(title), 0.55 + legend + 0.16 * len(footer)
    height = top + bottom + len(result.columns) * lines + (len(result.columns) - 1) * GAP
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(result.columns), len(metrics), squeeze=False, sharey=True)
    sides = {
        "left": labels / width,
        "right": 1 - 0.15 / width,
        "bottom": bottom / height,
        "top": 1 - top / height,
    }
    figure.subplots_adjust(**sides, wspace=0.12, hspace=GAP / lines)
    for line, column in enumerate(result.columns):
        for place, metric in enumerate(metrics):
            _panel(axes[line][place], result, column, metric)
        _label_rows(axes[line][0], result.rows)
    left, under = 0.12 / width, (bottom - 0.32) / height
    figure.text(left, 1 - 0.2 / height, "\n".join(title), fontsize=11, fontweight="bold", va="top")
    style = {
        "frameon": False,
        "fontsize": 7.5,
        "handletextpad": 0.5,
        "columnspacing": 1.4,
        "borderaxespad": 0,
    }
    figure.legend(handles=marks, loc="upper left", bbox_to_anchor=(left * 0.5, under), ncols=per_line, **style)
    words = {"fontsize": 7, "color": PAPER, "va": "top", "linespacing": 1.3}
    figure.text(left, under - (legend + 0.1) / height, "\n".join(footer), **words)
    stream = io.BytesIO()
    about = {"Software": None, "Description": text.generated_by(result)}
    figure.savefig(stream, format="png", dpi=dpi, metadata=about)
    return stream.getvalue()


def _lines(rows: tuple[Row, ...]) -> list[Row | str]:
    """Return what stands on the vertical axis from the top: group headings and rows."""
    lines: list[Row | str] = []
    group = ""
    for row in rows:
        if row.group and row.group != group:
            lines.append(row.group)
        group = row.group
        lines.append(row)
    return lines


def _label_rows(axes: Any, rows: tuple[Row, ...]) -> None:
    lines = _lines(rows)
    labels = [line if isinstance(line, str) else _shown(line.label) for line in lines]
    axes.set_yticks(range(len(lines)), labels, fontsize=8)
    for label, line in zip(axes.get_yticklabels(), lines, strict=True):
        if isinstance(line, str):
            label.set(fontstyle="italic", color=FAINT)
    axes.set_ylim(len(lines) - 0.4, -0.6)


def _panel(axes: Any, result: TableResult, column: Column, metric: Measure) -> None:
    names = column.paper or (column.label,)
    counts, absent = set(), []
    for height, line in enumerate(_lines(result.rows)):
        if isinstance(line, str):
            continue
        axes.axhline(height, color="#eeeeee", linewidth=0.8, zorder=0)
        cell = result.cell(line, column, metric)
        if cell is None:
            continue
        counts |= {cell.n} - {None}
        _draw_paper(axes, cell, names, height)
        if cell.value is None:
            absent.append(height)
            continue
        _draw_ours(axes, cell, height)
        if line.id == result.baseline:
            axes.axvline(cell.value, color=OURS, linestyle=DASHES, linewidth=0.8, alpha=0.6, zorder=1)
    n = f", n = {min(counts)}" + (f"–{max(counts)}" if len(counts) > 1 else "") if counts else ", not run"
    name = _shown(column.label)
    lines = [name, n.removeprefix(", ")] if len(name) + len(n) > 34 else [f"{name}{n}"]  # what a panel's width holds
    shortened = [line if len(line) <= 34 else f"{line[:16]}…{line[-17:]}" for line in lines]
    axes.set_title("\n".join([_shown(metric.label), *shortened]), fontsize=8.5, linespacing=1.3)
    axes.tick_params(axis="x", labelsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    if counts and absent:
        _say_not_run(axes, absent)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _draw_ours(axes: Any, cell: Cell, height: float) -> None:
    color = SIGNIFICANT if text.is_significant(cell) else OURS
    if cell.ci95 is not None:
        axes.plot(cell.ci95, [height - 0.14] * 2, color=color, linewidth=1.8, solid_capstyle="butt", zorder=3)
    axes.plot([cell.value], [height - 0.14], "o", color=color, markersize=5, zorder=4)


def _say_not_run(axes: Any, heights: list[int]) -> None:
    """Write ``not run`` on those lines, in a lane right of all marks."""
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.18 * (high - low))
    for height in heights:
        at = axes.get_yaxis_transform()
        axes.text(0.995, height, "not run", fontsize=6.5, color=FAINT, ha="right", va="center", transform=at)


def _draw_paper(axes: Any, cell: Cell, names: tuple[str, ...], height: float) -> None:
    numbers = cell.reported if isinstance(cell.reported, dict) else {names[0]: cell.reported}
    for name, value in numbers.items():
        if value is not None:
            marker = PAPER_MARKERS[names.index(name) % len(PAPER_MARKERS)] if name in names else "D"
            style = {"markerfacecolor": "none", "markeredgecolor": PAPER, "markeredgewidth": 0.9}
            axes.plot([value], [height + 0.17], marker, markersize=4.5, zorder=2, **style)


def _marks(result: TableResult) -> list[Any]:
    """Return the legend's entries."""
    from matplotlib.lines import Line2D

    dot = {"marker": "o", "linewidth": 1.8, "markersize": 5}
    marks = [Line2D([], [], color=OURS, label="ours, 95 % interval", **dot)]
    baseline = text.tested_against(result)
    if baseline is not None:
        label = f"ours, differs from {_shown(baseline)} (p < .05)"
        marks.append(Line2D([], [], color=SIGNIFICANT, label=label, **dot))
        marks.append(Line2D([], [], color=OURS, linestyle=DASHES, linewidth=0.8, label=_shown(baseline)))
    most = max((column.paper for column in result.columns), key=len, default=())
    if not any(_reported(cell) for cell in result.cells):
        return marks
    labels = [f"paper, {_shown(name)}" for name in most] if len(most) > 1 else ["paper"]
    style = {"color": "none", "markerfacecolor": "none", "markeredgecolor": PAPER, "markersize": 5}
    hollow = [Line2D([], [], marker=m, label=label, **style) for m, label in zip(PAPER_MARKERS, labels)]
    return [*marks, *hollow]


def _reported(cell: Cell) -> bool:
    """Tell whether the paper has a number for a cell."""
    numbers = cell.reported.values() if isinstance(cell.reported, dict) else [cell.reported]
    return any(number is not None for number in numbers)


def _footer(result: TableResult, inches: float) -> list[str]:
    notes = [f"{i}. {' '.join(note.split())}" for i, note in enumerate(result.footnotes, 1)]
    lines = [line for note in notes for line in textwrap.wrap(note, max(40, int(inches * 17)))]
    return [_shown(line) for line in (*lines, text.generated_by(result))]


def _shown(words: str) -> str:
    """Return ``words`` without matplotlib's mathematics."""
    return words.replace("$", r"\$")
