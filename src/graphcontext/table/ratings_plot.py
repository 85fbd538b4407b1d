"""Figure 3's picture: ratings per level as stacked bars, win rates as bars beside the even line."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from graphcontext.table import format as text
from graphcontext.table.cells import Cell, TableResult
from graphcontext.table.rated import Panel

SHADES = ("#b2182b", "#ef8a62", "#d9d9d9", "#92c5de", "#2166ac")  # 1 to 5
OURS, SIGNIFICANT, PAPER = "#1f4e79", "#c0504d", "#555555"


def to_png(result: TableResult, panels: Sequence[Panel], dpi: int = 150) -> bytes:
    """Return a PNG: one line per rated row and data set; left its ratings, right its win rate.

    Ratings are shares of all judgements, their counts inside. The win rate has its 95 % interval (red where it
    differs from 50 %, Holm-adjusted p < .05), a diamond is the paper's.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    labels = {row.id: row.label for row in result.rows} | {column.id: column.label for column in result.columns}
    names = ["\n".join(textwrap.wrap(f"{labels[p.column]}: {labels[p.row]}", 28)) for p in panels]
    figure = Figure(figsize=(9.5, 1.7 + 0.75 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for height, panel in enumerate(panels):
        _ratings(left, height, panel)
        cell = next(
            (c for c in result.cells if (c.row, c.column, c.metric) == (panel.row, panel.column, "win_rate")), None
        )
        if cell is not None:
            _win_rate(right, height, cell)
    left.set_yticks(range(len(panels)), [_shown(name) for name in names], fontsize=8)
    left.set_ylim(len(panels) - 0.4, -0.6)
    left.set_title("ratings, share of judgements", fontsize=9)
    right.set_title("win rate, % (dashed: even; diamond: paper)", fontsize=9)
    right.axvline(50, color=PAPER, linestyle=(0, (4, 3)), linewidth=0.9, zorder=0)
    right.set_xlim(0, 100)
    left.set_xlim(0, 1)
    for axes in (left, right):
        axes.tick_params(axis="x", labelsize=7.5)
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    n_levels = max(len(panel.levels) for panel in panels)
    handles = [Patch(color=_shade(level, n_levels), label=str(level + 1)) for level in range(n_levels)]
    figure.legend(handles=handles, loc="outside lower center", ncols=n_levels, fontsize=8, frameon=False)
    figure.suptitle(_shown(f"{result.title} · scale {result.scale}"), fontsize=10, fontweight="bold")
    stream = io.BytesIO()
    about = {"Software": None, "Description": text.generated_by(result)}
    figure.savefig(stream, format="png", dpi=dpi, metadata=about)
    return stream.getvalue()


def _ratings(axes: Any, height: int, panel: Panel) -> None:
    total = sum(panel.levels)
    start = 0.0
    for level, count in enumerate(panel.levels):
        if not count:
            continue
        share = count / total
        axes.barh(height, share, left=start, height=0.55, color=_shade(level, len(panel.levels)))
        if share > 0.04:
            color = "white" if level in (0, len(panel.levels) - 1) else "black"
            axes.text(start + share / 2, height, str(count), ha="center", va="center", fontsize=7, color=color)
        start += share


def _win_rate(axes: Any, height: int, cell: Cell) -> None:
    if cell.value is not None:
        color = SIGNIFICANT if text.is_significant(cell) else OURS
        axes.barh(height, cell.value, height=0.55, color=color, alpha=0.75)
        axes.plot(cell.ci95, [height] * 2, color="black", linewidth=1.2)
        axes.text(2, height, f"{cell.value:.0f} (n = {cell.n})", va="center", fontsize=7.5, color="white")
    reported = cell.reported if isinstance(cell.reported, dict) else {"": cell.reported}
    for number in reported.values():
        if number is not None:
            axes.plot([number], [height + 0.17], "D", markersize=5, markerfacecolor="white", markeredgecolor=PAPER)


def _shade(level: int, n_levels: int) -> str:
    return SHADES[round(level * (len(SHADES) - 1) / max(1, n_levels - 1))]


def _shown(words: str) -> str:
    return words.replace("$", r"\$")
