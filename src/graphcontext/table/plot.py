"""A finished table as a picture: ours with its interval beside the paper's numbers."""

from __future__ import annotations

import io
import textwrap
from typing import Any

from graphcontext.table import format as text
from graphcontext.table.cells import Cell, Column, Measure, Row, TableResult

OURS, SIGNIFICANT, PAPER, FAINT = "#1f4e79", "#c0504d", "#555555", "#9a9a9a"
PAPER_MARKERS = ("D", "s", "^", "v", "p", "h")
PANEL, LABELS, LINE = 2.6, 2.3, 0.27  # inches: a panel's width, the row labels' width, a row's height


def to_png(result: TableResult, dpi: int = 150) -> bytes:
    """Return a PNG: one panel per data set and metric, one line per row of the table.

    A filled dot with its 95 % interval is ours (red where it differs from the baseline, Holm-adjusted
    p < .05), hollow marks are the paper's numbers, a dashed line is the baseline. The same table gives the
    same bytes on the same machine.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    metrics = [m for m in result.metrics if any(result.block(column, m) for column in result.columns)]
    n_lines = max(2, len(_lines(result.rows)))
    footer = _footer(result, PANEL * len(metrics) + LABELS)
    bottom, top, gap = 0.75 + 0.16 * len(footer), 0.85, 0.85
    height = top + bottom + len(result.columns) * (n_lines * LINE) + (len(result.columns) - 1) * gap
    width = LABELS + PANEL * len(metrics) + 0.2
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(result.columns), len(metrics), squeeze=False, sharey=True)
    figure.subplots_adjust(
        left=LABELS / width,
        right=1 - 0.15 / width,
        bottom=bottom / height,
        top=1 - top / height,
        wspace=0.12,
        hspace=gap / (n_lines * LINE),
    )
    for line, column in enumerate(result.columns):
        for place, metric in enumerate(metrics):
            _panel(axes[line][place], result, column, metric)
        _label_rows(axes[line][0], result.rows)
    title = f"{result.title} · scale {result.scale}"
    figure.text(0.12 / width, 1 - 0.2 / height, title, fontsize=11, fontweight="bold", va="top")
    _legend(figure, result, (bottom - 0.42) / height)
    figure.text(
        0.12 / width,
        (bottom - 0.62) / height,
        "\n".join(footer),
        fontsize=7,
        color=PAPER,
        va="top",
        linespacing=1.3,
    )
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
            axes.axvline(cell.value, color=OURS, linestyle=(0, (4, 3)), linewidth=0.8, alpha=0.6, zorder=1)
    n = f", n = {min(counts)}" + (f"–{max(counts)}" if len(counts) > 1 else "") if counts else ", not run"
    axes.set_title(f"{_shown(metric.label)}\n{_shown(column.label)}{n}", fontsize=8.5, linespacing=1.3)
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


def _legend(figure: Any, result: TableResult, height: float) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=OURS, marker="o", linewidth=1.8, markersize=5, label="ours, 95 % interval")]
    baseline = text.tested_against(result)
    if baseline is not None:
        label = f"ours, differs from {_shown(baseline)} (p < .05)"
        marks.append(Line2D([], [], color=SIGNIFICANT, marker="o", linewidth=1.8, markersize=5, label=label))
        dashes = (0, (4, 3))
        marks.append(Line2D([], [], color=OURS, linestyle=dashes, linewidth=0.8, label=_shown(baseline)))
    most = max((column.paper for column in result.columns), key=len, default=())
    labels = [f"paper, {_shown(name)}" for name in most] if len(most) > 1 else ["paper"]
    style = {"color": "none", "markerfacecolor": "none", "markeredgecolor": PAPER, "markersize": 5}
    for marker, label in zip(PAPER_MARKERS, labels):
        marks.append(Line2D([], [], marker=marker, label=label, **style))
    width = figure.get_size_inches()[0]
    columns = len(marks) if width > 9 else 3 if width > 6 else 2
    figure.legend(
        handles=marks,
        loc="center left",
        bbox_to_anchor=(0.08 / width, height),
        ncols=columns,
        frameon=False,
        fontsize=7.5,
        handletextpad=0.5,
        columnspacing=1.4,
    )


def _footer(result: TableResult, inches: float) -> list[str]:
    notes = [f"{i}. {' '.join(note.split())}" for i, note in enumerate(result.footnotes, 1)]
    lines = [line for note in notes for line in textwrap.wrap(note, max(40, int(inches * 17)))]
    return [_shown(line) for line in (*lines, text.generated_by(result))]


def _shown(words: str) -> str:
    """Return ``words`` without matplotlib's mathematics."""
    return words.replace("$", r"\$")
