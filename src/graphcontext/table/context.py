"""Tables of kind ``context``: how the context of one question comes about, step by step, and drawn (gcg/fig4)."""

from __future__ import annotations

import io
import math
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

from graphcontext import trace
from graphcontext.data.card import escaped
from graphcontext.data.records import Context
from graphcontext.files import write_atomic
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.compute import compute
from graphcontext.table.expand import Column, Request
from graphcontext.table.lines import Lines
from graphcontext.table.render import markdown_table

VIEW = {"row": ...}
COLORS = ("#1f4e79", "#c55a11", "#548235", "#7030a0")
INK, FAINT, PAPER = "#1b1f24", "#59636e", "#f6f8fa"


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the row ``view.row``; show one of its items, per data set: question, retrieved, triples, context, answer.

    The item is the one whose context joins most sources of triples, then holds most triples; ties by id.
    """
    view = wish.spec.viewed()
    lines = compute(wish, config_dir, root, quiet)
    parts: list[str] = []
    shown: list[dict[str, Any]] = []
    for column in lines.columns:
        parts.append(f"## {escaped(column.label)}")
        example = example_of(lines, column, view["row"])
        parts += _text(example) if example else ["(nothing to show)"]
        shown += [{"column": column.dataset, **example}] if example else []
    made = page.write(lines, parts, {"examples": shown})
    if shown:
        write_atomic(made.path.with_name(f"{lines.stem.name}.png"), to_png(shown[0], wish.spec.title, lines.command))
    return made


def example_of(lines: Lines, column: Column, row: str) -> dict[str, Any] | None:
    """Return what is shown of one data set, JSON types; None where the row did not run there."""
    line = lines.of(row, column)
    if line is None or line.run is None or not line.ran:
        return None
    seen = trace.read(line.run)
    if not seen.contexts:
        return None
    item = min(seen.contexts, key=lambda i: (*_rank(seen.contexts[i]), i))
    asked, ranking, context = seen.questions[item], seen.rankings[item], seen.contexts[item]
    texts = {unit.source: unit.text for unit in context.units if unit.triple is None}
    hits = trace.retrieved(ranking, trace.titles([context]), "(cut)")
    return {
        "item": item,
        "title": trace.title(asked),
        "question": asked.text,
        "link": asked.source.link,
        "fallback": ranking.fallback,
        "retrieved": [hit | {"text": texts.get(hit["id"], "")} for hit in hits],
        "triples": [{"triple": list(u.triple), "source": u.source} for u in context.units if u.triple],
        "reason": context.reason,
        "n_tokens": context.n_tokens,
        "n_cut": context.n_cut,
        "messages": [m for call in seen.calls.get(item, []) if call["role"] == "answer" for m in call["messages"]],
        "answer": seen.predictions[item].prediction,
        "gold": list(asked.references),
    }


def _rank(context: Context) -> tuple[int, int]:
    sources = Counter(unit.source for unit in context.units if unit.triple is not None)
    return -len(sources), -sum(sources.values())


def _text(example: dict[str, Any]) -> list[str]:
    hits = [[f"{n}", f"{hit['score']:.5f}", escaped(hit["title"])] for n, hit in enumerate(example["retrieved"], 1)]
    triples = [[escaped(part) for part in (*t["triple"], t["source"])] for t in example["triples"]]
    fallback = f" (fell back to {example['fallback']})" if example["fallback"] else ""
    parts = [f"### 1. Question {escaped(example['item'])}", escaped(example["link"]), page.fenced(example["question"])]
    parts += [f"### 2. Retrieved{fallback}", markdown_table(["rank", "score", "question"], hits, 3)]
    parts += ["### 3. Triples of the context, by source"]
    parts.append(markdown_table(["head", "relation", "tail", "source"], triples, 4) if triples else "(none)")
    if example["reason"]:
        parts.append(f"missing: {escaped(example['reason'])}")
    parts.append(
        f"### 4. Prompt with the enhanced context ({example['n_tokens']} tokens, {example['n_cut']} units cut)"
    )
    parts += [page.fenced(f"<{m['role']}> {m['content']}") for m in example["messages"]]
    parts += ["### 5. Answer", page.fenced(example["answer"] or "(empty)")]
    parts += [text for gold in example["gold"] for text in ("Gold answer", page.fenced(gold))]
    return [part for part in parts if part]


def to_png(example: dict[str, Any], title: str, command: str, dpi: int = 150) -> bytes:
    """Draw one example: question, retrieved questions, their triples as a graph coloured by source, the answer."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.2))
    FigureCanvasAgg(figure)
    figure.text(0.02, 0.965, _plain(title), fontsize=12, fontweight="bold", color=INK, va="top")
    left = figure.add_axes((0.02, 0.03, 0.33, 0.87))
    right = figure.add_axes((0.37, 0.2, 0.61, 0.7))
    below = figure.add_axes((0.37, 0.03, 0.61, 0.15))
    for axes in (left, right, below):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.axis("off")
    boxes = [("question", example["title"], example["question"])]
    boxes += [
        (f"retrieved {n}, score {h['score']:.4f}", h["title"], h["text"]) for n, h in enumerate(example["retrieved"], 1)
    ]
    height = 1 / len(boxes)
    for n, (head, name, body) in enumerate(boxes):
        _box(left, 1 - (n + 1) * height, height * 0.95, head, name, body, 58)
    _draw_triples(right, example["triples"])
    _box(below, 0, 1, "answer", "", example["answer"], 108)
    stream = io.BytesIO()
    figure.savefig(
        stream, format="png", dpi=dpi, metadata={"Software": None, "Description": f"Generated by: {command}"}
    )
    return stream.getvalue()


def _box(axes: Any, bottom: float, height: float, head: str, name: str, body: str, width: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = {"boxstyle": "round,pad=0,rounding_size=0.012", "facecolor": PAPER, "edgecolor": "#d0d7de"}
    axes.add_patch(FancyBboxPatch((0.005, bottom + 0.005), 0.99, height - 0.01, **style))
    tall = axes.get_position().height * height * 7.2  # inches
    lines = [line for text in body.splitlines() for line in textwrap.wrap(text, width) or [""]]
    named = textwrap.wrap(name, width - 6)[:2]
    room = max(1, int((tall - 0.36 - 0.16 * len(named)) / 0.132))
    lines = lines if len(lines) <= room else [*lines[: room - 1], "…"]
    unit = height / tall
    top = bottom + height - 0.11 * unit
    axes.text(0.025, top, head, fontsize=7.5, color=FAINT, va="top")
    if named:
        axes.text(
            0.025, top - 0.15 * unit, _plain("\n".join(named)), fontsize=8.5, fontweight="bold", color=INK, va="top"
        )
    at = top - (0.2 + 0.16 * len(named)) * unit
    axes.text(0.025, at, _plain("\n".join(lines)), fontsize=7, color=INK, va="top", linespacing=1.25)


def _draw_triples(axes: Any, triples: list[dict[str, Any]], most: int = 24) -> None:
    """Draw entities on an ellipse and each triple as a curve between two of them, labelled by its relation."""
    sources = list(dict.fromkeys(t["source"] for t in triples))
    if not triples:
        axes.text(0.5, 0.5, "no triples", ha="center", color=FAINT)
        return
    kept = _spread(triples, sources, most)
    names = list(dict.fromkeys(name.lower() for t in kept for name in (t["triple"][0], t["triple"][2])))
    turn = 2 * math.pi / len(names)
    place = {n: (0.5 + 0.36 * math.cos(i * turn), 0.52 + 0.42 * math.sin(i * turn)) for i, n in enumerate(names)}
    for t in kept:
        (x0, y0), (x1, y1) = place[t["triple"][0].lower()], place[t["triple"][2].lower()]
        color = COLORS[sources.index(t["source"]) % len(COLORS)]
        arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 1, "alpha": 0.7, "connectionstyle": "arc3,rad=0.12"}
        axes.annotate("", (x1, y1), (x0, y0), arrowprops={**arrow, "shrinkA": 4, "shrinkB": 4})
        at = ((x0 * 0.58 + x1 * 0.42), (y0 * 0.58 + y1 * 0.42))
        axes.text(
            *at,
            _plain(t["triple"][1][:24]),
            fontsize=6,
            color=color,
            ha="center",
            va="center",
            backgroundcolor="#ffffffb0",
        )
    for name, (x, y) in place.items():
        side = "left" if x > 0.52 else "right" if x < 0.48 else "center"
        axes.plot([x], [y], "o", color=INK, markersize=4, zorder=4)
        shift = {"left": 0.012, "right": -0.012, "center": 0}[side]
        lift = 0 if side != "center" else (0.03 if y > 0.5 else -0.03)
        axes.text(
            x + shift, y + lift, _plain(textwrap.shorten(name, 30, placeholder="…")), fontsize=7.5, ha=side, va="center"
        )
    counts = Counter(t["source"] for t in triples)
    for n, source in enumerate(sources):
        text = f"{source}: {counts[source]} triples"
        axes.text(0.0, 0.02 + 0.035 * n, _plain(text), fontsize=8, color=COLORS[n % len(COLORS)], fontweight="bold")
    if len(kept) < len(triples):
        axes.text(1, 0.02, f"{len(kept)} of {len(triples)} drawn", fontsize=7.5, color=FAINT, ha="right")


def _spread(triples: list[dict[str, Any]], sources: list[str], most: int) -> list[dict[str, Any]]:
    """Return at most ``most`` triples, source by source in turn, so that none hides the others."""
    queues = {s: [t for t in triples if t["source"] == s] for s in sources}
    kept: list[dict[str, Any]] = []
    while len(kept) < most and any(queues.values()):
        for source in sources:
            if queues[source] and len(kept) < most:
                kept.append(queues[source].pop(0))
    return kept


def _plain(words: str) -> str:
    """Return ``words`` without matplotlib's mathematics and without what its font cannot draw."""
    return words.replace("$", r"\$").replace("\t", "    ")
