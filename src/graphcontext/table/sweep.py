"""Tables of kind ``sweep``: one row over graphs of several densities, and what that does (gcg/threshold)."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.table.cells import Cell, Made, TableResult
from graphcontext.table.compute import compute
from graphcontext.table.expand import Request
from graphcontext.table.lines import Line, Lines
from graphcontext.table.render import escape_markdown, markdown_table, write
from graphcontext.table.scores import result_of

OURS, SECOND, FAINT = "#1f4e79", "#c55a11", "#9a9a9a"
COLORS = (OURS, "#548235", "#7030a0", SECOND)


@dataclass(frozen=True)
class Point:
    """A graph's density and what it led to, on one data set.

    Args:
        row, column: ids in the table.
        threshold: cosine above which two questions are joined.
        n_edges, mean_degree, density: of the pool's graph; mean_degree = 2E/n, density = 2E/(n(n−1)).
        isolated: pool questions without any edge, share.
        fallback: questions without a neighbour that fell back to cosine, share.
    """

    row: str
    column: str
    threshold: float
    n_edges: int
    mean_degree: float
    density: float
    isolated: float
    fallback: float


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows and write the table with the points under it; the picture is the curves."""
    lines = compute(wish, config_dir, root, quiet)
    result = result_of(lines)
    points = points_of(lines)
    sections = [_section(result, column, points) for column in result.columns]
    more = {"points": [dataclasses.asdict(point) for point in points]}
    path, markdown = write(
        result, lines.stem, [s for s in sections if s], more, (lambda: to_png(result, points)) if points else None
    )
    return Made(path, markdown, result, lines.n_failed, lines.nothing)


def points_of(lines: Lines) -> list[Point]:
    """Return a point per row that ran over a graph, by data set, sparsest first."""
    found = [_point(line) for line in lines.ran if line.run is not None and "graphs" in line.run.metrics["facts"]]
    return sorted(found, key=lambda point: (point.column, point.mean_degree, point.threshold))


def _point(line: Line) -> Point:
    facts = line.run.metrics["facts"]  # type: ignore[union-attr]
    graphs = list(facts["graphs"].values())
    n_nodes = sum(g["n_nodes"] for g in graphs)
    n_edges = sum(g["n_edges"] for g in graphs)
    pairs = sum(g["n_nodes"] * (g["n_nodes"] - 1) / 2 for g in graphs)
    return Point(
        row=line.cell.row.name,
        column=line.cell.column.dataset,
        threshold=sum(g["threshold"] for g in graphs) / len(graphs),
        n_edges=n_edges,
        mean_degree=2 * n_edges / n_nodes if n_nodes else 0.0,
        density=n_edges / pairs if pairs else 0.0,
        isolated=sum(g["isolated"] for g in graphs) / n_nodes if n_nodes else 0.0,
        fallback=facts["fallbacks"].get("cosine", 0) / max(1, line.run.metrics["n"]),  # type: ignore[union-attr]
    )


def _section(result: TableResult, column: Any, points: list[Point]) -> str:
    """Return the points of one data set as Markdown, empty where there are none."""
    labels = {row.id: row.label for row in result.rows}
    heads = [
        "graph",
        "τ",
        "edges",
        "mean degree",
        "density",
        "isolated",
        "fell back",
        *(m.label for m in result.metrics),
    ]
    rows = []
    for p in (p for p in points if p.column == column.id):
        values = [_cell(result, p, m.id) for m in result.metrics]
        numbers = [f"{p.threshold:.4f}", f"{p.n_edges:,}", f"{p.mean_degree:.2f}", f"{p.density:.4f}"]
        shares = [f"{p.isolated:.0%}", f"{p.fallback:.0%}"]
        scores = ["–" if c is None or c.value is None else f"{c.value:.{result.digits}f}" for c in values]
        rows.append([escape_markdown(labels[p.row]), *numbers, *shares, *scores])
    if not rows:
        return ""
    return f"## Density, fall-back and score: {escape_markdown(column.label)}\n\n{markdown_table(heads, rows)}"


def _cell(result: TableResult, point: Point, metric: str) -> Cell | None:
    return next((c for c in result.cells if (c.row, c.column, c.metric) == (point.row, point.column, metric)), None)


def to_png(result: TableResult, points: list[Point], dpi: int = 150) -> bytes:
    """Draw, per data set, each score with its interval over the mean degree, and the fall-back share below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = [c for c in result.columns if any(p.column == c.id for p in points)]
    figure = Figure(figsize=(max(8.5, 1.2 + 4.4 * len(columns)), 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(columns), squeeze=False, sharex=True, height_ratios=[2.2, 1])
    for place, column in enumerate(columns):
        mine = [p for p in points if p.column == column.id]
        _draw_scores(axes[0][place], result, mine, column)
        _draw_shares(axes[1][place], mine)
    handles, labels = axes[0][0].get_legend_handles_labels()
    more, more_labels = axes[1][0].get_legend_handles_labels()
    figure.legend(
        [*handles, *more], [*labels, *more_labels], loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    figure.suptitle(f"{result.title} · scale {result.scale}".replace("$", r"\$"), fontsize=10.5, fontweight="bold")
    stream = io.BytesIO()
    about = {"Software": None, "Description": f"Generated by: {result.command}"}
    figure.savefig(stream, format="png", dpi=dpi, metadata=about)
    return stream.getvalue()


def _draw_scores(axes: Any, result: TableResult, points: list[Point], column: Any) -> None:
    degrees = [p.mean_degree for p in points]
    for metric, color in zip(result.metrics, COLORS):
        cells = [_cell(result, p, metric.id) for p in points]
        values = [c.value if c else None for c in cells]
        axes.plot(degrees, values, "o-", color=color, markersize=4.5, linewidth=1.4, label=metric.label)
        for degree, cell in zip(degrees, cells):
            if cell is not None and cell.ci95 is not None:
                axes.plot([degree] * 2, cell.ci95, color=color, linewidth=1, alpha=0.45)
        base = next(
            (c for c in result.cells if (c.row, c.column, c.metric) == (result.baseline, column.id, metric.id)), None
        )
        if base is not None and base.value is not None:
            label = next(row.label for row in result.rows if row.id == result.baseline)
            axes.axhline(
                base.value,
                color=color,
                linestyle=(0, (4, 3)),
                linewidth=0.9,
                alpha=0.8,
                label=f"{label}, {metric.label}",
            )
    n = {c.n for c in result.cells if c.column == column.id and c.n is not None}
    axes.set_title(f"{column.label}, n = {max(n)}".replace("$", r"\$") if n else column.label, fontsize=9)
    axes.set_ylabel("score, 95 % interval", fontsize=8)
    _style(axes)


def _draw_shares(axes: Any, points: list[Point]) -> None:
    degrees = [p.mean_degree for p in points]
    axes.plot(
        degrees,
        [p.fallback for p in points],
        "s-",
        color=SECOND,
        markersize=4,
        linewidth=1.2,
        label="fell back to cosine",
    )
    axes.plot(
        degrees,
        [p.isolated for p in points],
        "^:",
        color=FAINT,
        markersize=4,
        linewidth=1.2,
        label="pool questions without edge",
    )
    axes.set_ylim(-0.05, 1.05)
    axes.set_ylabel("share", fontsize=8)
    axes.set_xlabel("mean degree of the pool's graph", fontsize=8)
    axes.set_xscale("symlog", base=2, linthresh=1)
    ticks = sorted({0, *(round(d) for d in degrees)})
    axes.set_xticks(ticks, [str(t) for t in ticks])
    _style(axes)


def _style(axes: Any) -> None:
    axes.tick_params(labelsize=7.5)
    axes.grid(axis="y", color="#eeeeee")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
