"""Tables of kind ``curves``: scores over a setting or over the density of the graph, a line per group (kgp/fig5 …)."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError
from graphcontext.table.cells import Cell, Made, TableResult
from graphcontext.table.compute import compute
from graphcontext.table.expand import Request
from graphcontext.table.lines import Line, Lines
from graphcontext.table.render import escape_markdown, markdown_table, write
from graphcontext.table.scores import result_of

VIEW = {"x": ..., "label": None}
METRICS = ("milliseconds",)  # of retrieval, a question; as the run that ranked measured it
FACTS = ("density", "mean_degree", "n_edges")  # of graphs; any other x is a key of the config
COLORS = ("#1f4e79", "#c55a11", "#548235", "#7030a0", "#9a9a9a", "#a40e26")


@dataclass(frozen=True)
class Point:
    """Where a row stands on the x axis, on one data set.

    Args:
        row, column: ids in the table.
        group: the line it belongs to.
        x: value of the setting, or the mean over the graphs of the corpora.
        facts: mean density, mean degree and edges of the graphs, where the row has some.
    """

    row: str
    column: str
    group: str
    x: float
    facts: dict[str, float]


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows and write the table with the points under it; the picture is the curves."""
    view = wish.spec.viewed()
    lines = compute(wish, config_dir, root, quiet)
    points = points_of(lines, str(view["x"]))
    result = _timed(result_of(lines), lines)
    label = str(view["label"] or view["x"])
    sections = [_section(result, column, points, label) for column in result.columns]
    more = {"x": view["x"], "points": [dataclasses.asdict(point) for point in points]}
    picture = (lambda: to_png(result, points, label)) if points else None
    path, markdown = write(result, lines.stem, [s for s in sections if s], more, picture)
    return Made(path, markdown, result, lines.n_failed, lines.nothing)


def points_of(lines: Lines, x: str) -> list[Point]:
    """Return a point per row that ran, by data set and group, from left to right.

    Raises:
        InputError: a row's config has no such key, or its value is no number.
    """
    found = []
    for row in lines.wish.spec.rows:
        for column in lines.columns:
            ran = [line for line in lines.lines if line.ran and (line.cell.row, line.cell.column) == (row, column)]
            if ran:
                facts = _graph_facts(ran[0])
                value = facts.get(x) if x in FACTS else _setting(ran[0], x, lines.wish.spec.name)
                if value is not None:
                    group = lines.wish.spec.groups.get(row.group, row.group)
                    found.append(Point(row.name, column.dataset, group, value, facts))
    groups = list(dict.fromkeys(point.group for point in found))
    return sorted(found, key=lambda point: (point.column, groups.index(point.group), point.x))


def _graph_facts(line: Line) -> dict[str, float]:
    graphs = list(line.run.metrics["facts"].get("graphs", {}).values())  # type: ignore[union-attr]
    return {key: sum(graph[key] for graph in graphs) / len(graphs) for key in FACTS} if graphs else {}


def _setting(line: Line, key: str, table: str) -> float:
    node: Any = line.cell.composed.config
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise InputError(f"table {table}: view.x={key} is {node!r} in row {line.cell.row.name}; it takes a number")
    return float(node)


def _timed(result: TableResult, lines: Lines) -> TableResult:
    """Fill the cells of ``milliseconds``: seconds of the ranking stage by its number of questions."""
    cells = [_time(cell, lines) if cell.metric in METRICS else cell for cell in result.cells]
    return dataclasses.replace(result, cells=tuple(cells))


def _time(cell: Cell, lines: Lines) -> Cell:
    line = next(x for x in lines.lines if (x.cell.row.name, x.cell.column.dataset) == (cell.row, cell.column))
    if not line.ran:
        return dataclasses.replace(cell, status=f"not run ({line.reason})")
    known = line.run.manifest["stages"]["ranking"]  # type: ignore[union-attr]
    status = "not reported" if cell.reported is None else "stand-in"  # a time is of its machine
    value = 1000 * known["seconds"] / known["n"]
    return dataclasses.replace(cell, value=value, n=known["n"], run=line.run.path.name, status=status)  # type: ignore[union-attr]


def _section(result: TableResult, column: Any, points: list[Point], label: str) -> str:
    """Return the points of one data set as Markdown, empty where there are none."""
    labels = {row.id: row.label for row in result.rows}
    heads = ["line", "row", label, "edges", "mean degree", "density", *(m.label for m in result.metrics)]
    rows = []
    for p in (p for p in points if p.column == column.id):
        shape = [f"{p.facts['n_edges']:,.0f}", f"{p.facts['mean_degree']:.1f}", f"{p.facts['density']:.4f}"]
        cells = [_cell(result, p, m.id) for m in result.metrics]
        scores = ["–" if c is None or c.value is None else f"{c.value:.{result.digits}f}" for c in cells]
        row = [escape_markdown(p.group), escape_markdown(labels[p.row]), f"{p.x:.4g}"]
        rows.append([*row, *(shape if p.facts else ["–"] * 3), *scores])
    return f"## Curves: {escape_markdown(column.label)}\n\n{markdown_table(heads, rows)}" if rows else ""


def _cell(result: TableResult, point: Point, metric: str) -> Cell | None:
    return next((c for c in result.cells if (c.row, c.column, c.metric) == (point.row, point.column, metric)), None)


def to_png(result: TableResult, points: list[Point], label: str, dpi: int = 150) -> bytes:
    """Draw a panel per metric and data set: a line per group, each point with its interval."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = [c for c in result.columns if any(p.column == c.id for p in points)]
    figure = Figure(figsize=(max(7.0, 1.2 + 3.9 * len(columns)), 1.3 + 2.5 * len(result.metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(result.metrics), len(columns), squeeze=False, sharex="col")
    for across, column in enumerate(columns):
        for down, metric in enumerate(result.metrics):
            panel = axes[down][across]
            _draw(panel, result, [p for p in points if p.column == column.id], metric.id)
            panel.set_ylabel(metric.label if across == 0 else "", fontsize=8)
        n = {c.n for c in result.cells if c.column == column.id and c.n is not None}
        title = f"{column.label}, n = {max(n)}" if n else column.label
        axes[0][across].set_title(title.replace("$", r"\$"), fontsize=9)
        axes[-1][across].set_xlabel(label, fontsize=8)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(f"{result.title} · scale {result.scale}".replace("$", r"\$"), fontsize=10.5, fontweight="bold")
    stream = io.BytesIO()
    about = {"Software": None, "Description": f"Generated by: {result.command}"}
    figure.savefig(stream, format="png", dpi=dpi, metadata=about)
    return stream.getvalue()


def _draw(axes: Any, result: TableResult, points: list[Point], metric: str) -> None:
    xs = [p.x for p in points if p.x > 0]
    if xs and max(xs) > 30 * min(xs):
        axes.set_xscale("log")
    for color, group in zip(COLORS * 9, dict.fromkeys(p.group for p in points)):
        found = [(p.x, _cell(result, p, metric)) for p in points if p.group == group]
        known = [(x, cell) for x, cell in found if cell is not None and cell.value is not None]
        axes.plot(
            [x for x, _ in known], [cell.value for _, cell in known], "o-", color=color, markersize=3.5, linewidth=1.3,
            label=group or "all rows",
        )  # fmt: skip
        for x, cell in known:
            if cell.ci95 is not None:
                axes.plot([x, x], cell.ci95, color=color, linewidth=0.9, alpha=0.4)
    axes.tick_params(labelsize=7.5)
    axes.grid(axis="y", color="#eeeeee")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
