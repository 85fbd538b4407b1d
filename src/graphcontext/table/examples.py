"""Tables of kind ``examples``: questions with the answers of several rows side by side (gcg/t7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext import trace
from graphcontext.data.card import escaped
from graphcontext.errors import InputError, did_you_mean
from graphcontext.evaluate.decomposition import LABELS
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.compute import compute
from graphcontext.table.expand import Column, Request
from graphcontext.table.lines import Line, Lines

VIEW = {"row": ..., "against": None, "metric": ..., "pick": ..., "n": 3, "each": []}
PICKS = ("gains", "losses", "best", "worst")


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows and show the items that ``view`` picks.

    ``view.row`` is the row that is looked at, ``view.against`` the one it is compared with, ``view.pick`` one of
    ``gains`` and ``losses`` (largest differences of ``view.metric``), ``best`` and ``worst`` (its own value), and
    ``view.n`` how many. The rule picks, not a person: ties by id. ``view.each`` names scores that are 1 or 0
    (``lost_cut``): the rule then picks among the items that have each.
    """
    view = wish.spec.viewed()
    _check(wish, view)
    lines = compute(wish, config_dir, root, quiet)
    parts: list[str] = [f"Chosen by rule: {rule(view)}."]
    shown: list[dict[str, Any]] = []
    for column in lines.columns:
        parts.append(f"## {escaped(column.label)}")
        for kind in view["each"] or [None]:
            examples = pick(lines, column, view, kind)
            shown += [{"column": column.dataset, "kind": kind, **example} for example in examples]
            parts += [_kind(lines, column, view["row"], kind)] if kind else []
            parts += [_text(lines, example, view, 4 if kind else 3) for example in examples] or ["(nothing to show)"]
    return page.write(lines, parts, {"rule": rule(view), "examples": shown})


def rule(view: dict[str, Any]) -> str:
    """Return in words how the items are chosen."""
    what = {
        "gains": f"where {view['row']} is most above {view['against']}",
        "losses": f"where {view['row']} is most below {view['against']}",
        "best": f"where {view['row']} is best",
        "worst": f"where {view['row']} is worst",
    }[view["pick"]]
    each = f", of each of {', '.join(view['each'])}" if view["each"] else ""
    return f"the {view['n']} questions {what} in {view['metric']}{each}"


def pick(lines: Lines, column: Column, view: dict[str, Any], kind: str | None = None) -> list[dict[str, Any]]:
    """Return the chosen items of one data set, of ``kind`` alone: question, retrieved, gold, answers with scores."""
    line = lines.of(view["row"], column)
    other = lines.of(view["against"], column) if view["against"] else None
    if line is None or not line.ran or (view["against"] and (other is None or not other.ran)):
        return []
    scores = _scores(line, view["metric"])
    if other is not None:
        base = _scores(other, view["metric"])
        scores = {item: value - base[item] for item, value in scores.items() if item in base}
    sign = 1 if view["pick"] in ("losses", "worst") else -1
    order = sorted(scores, key=lambda item: (sign * scores[item], item))
    if other is not None:  # a gain is above zero, a loss below
        order = [item for item in order if sign * scores[item] < 0]
    if kind:
        of = _scores(line, kind)
        order = [item for item in order if of.get(item) == 1]
    traces = {x.cell.row.name: trace.read(x.run) for x in lines.ran if x.cell.column == column and x.run is not None}
    named = trace.titles(context for t in traces.values() for context in t.contexts.values())
    row = view["row"]
    return [
        _example(item, traces, row) | {"retrieved": trace.retrieved(traces[row].rankings[item], named)}
        for item in order[: view["n"]]
    ]


def _scores(line: Line, metric: str) -> dict[str, float]:
    return {item: row[metric] for item, row in line.run.scores().items() if metric in row}  # type: ignore[union-attr]


def _example(item: str, traces: dict[str, trace.Trace], row: str) -> dict[str, Any]:
    asked = traces[row].questions[item]
    answers = [
        {
            "row": name,
            "answer": t.predictions[item].prediction,
            "status": t.predictions[item].status,
            "scores": t.scores[item],
        }
        for name, t in traces.items()
        if item in t.predictions
    ]
    facts = {"item": item, "title": trace.title(asked), "question": asked.text, "link": asked.source.link}
    source = {"author": asked.source.author, "license": asked.source.license}
    return facts | source | {"gold": list(asked.references), "answers": answers}


def _kind(lines: Lines, column: Column, row: str, kind: str) -> str:
    """Return the heading of one kind of item, with how many there are."""
    line = lines.of(row, column)
    values = list(_scores(line, kind).values()) if line is not None and line.ran else []
    count = f"{sum(value == 1 for value in values)} of {len(values)} questions" if values else "not computed"
    return f"### {escaped(LABELS.get(kind.removeprefix('lost_'), kind))}: {count}"


def _text(lines: Lines, example: dict[str, Any], view: dict[str, Any], level: int) -> str:
    metric, labels = view["metric"], {row.name: row.label for row in lines.wish.spec.rows}
    about = " · ".join(escaped(str(example[k])) for k in ("item", "link", "author", "license") if example[k])
    parts = [f"{'#' * level} {escaped(example['title'])}", about, "Question", page.fenced(example["question"])]
    hits = [f"{n}. {escaped(hit['title'])} ({hit['score']:.4f})" for n, hit in enumerate(example["retrieved"], 1)]
    parts += [f"Retrieved by {escaped(labels[view['row']])}", "\n".join(hits)] if hits else []
    for gold in example["gold"]:
        parts += ["Gold answer", page.fenced(gold)]
    for answer in example["answers"]:
        value = answer["scores"].get(metric)
        score = f" ({metric} {value:.3f})" if value is not None else ""
        parts += [f"{escaped(labels[answer['row']])}{score}", page.fenced(answer["answer"] or f"({answer['status']})")]
    return "\n\n".join(parts)


def _check(wish: Request, view: dict[str, Any]) -> None:
    names = [row.name for row in wish.spec.rows]
    allowed = {"row": names, "against": [None, *names], "pick": PICKS}
    for key, values in allowed.items():
        if view[key] not in values:
            hint = did_you_mean(str(view[key]), [v for v in values if v])
            raise InputError(f"table {wish.spec.name}: view.{key}={view[key]}{hint}")
    if view["pick"] in ("gains", "losses") and view["against"] is None:
        raise InputError(f"table {wish.spec.name}: view.pick={view['pick']} needs view.against")
