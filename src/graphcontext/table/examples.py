"""Tables of kind ``examples``: questions with the answers of several rows side by side (gcg/t6, gcg/t7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext import trace
from graphcontext.data.card import escaped
from graphcontext.errors import InputError, did_you_mean
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.expand import Column, Request
from graphcontext.table.lines import Line, Lines, compute

VIEW = {"row": ..., "against": None, "metric": ..., "pick": ..., "n": 3}
PICKS = ("gains", "losses", "best", "worst")


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows and show the items that ``view`` picks.

    ``view.row`` is the row that is looked at, ``view.against`` the one it is compared with, ``view.pick`` one of
    ``gains`` and ``losses`` (largest differences of ``view.metric``), ``best`` and ``worst`` (its own value), and
    ``view.n`` how many. The rule picks, not a person: ties by id.
    """
    view = wish.spec.viewed()
    _check(wish, view)
    lines = compute(wish, config_dir, root, quiet)
    parts: list[str] = [f"Chosen by rule: {rule(view)}."]
    shown: list[dict[str, Any]] = []
    for column in lines.columns:
        examples = pick(lines, column, view)
        shown += [{"column": column.dataset, **example} for example in examples]
        parts.append(f"## {escaped(column.label)}")
        parts += [_text(lines, example, view["metric"]) for example in examples] or ["(nothing to show)"]
    return page.write(lines, parts, {"rule": rule(view), "examples": shown})


def rule(view: dict[str, Any]) -> str:
    """Return in words how the items are chosen."""
    what = {
        "gains": f"where {view['row']} is most above {view['against']}",
        "losses": f"where {view['row']} is most below {view['against']}",
        "best": f"where {view['row']} is best",
        "worst": f"where {view['row']} is worst",
    }[view["pick"]]
    return f"the {view['n']} questions {what} in {view['metric']}"


def pick(lines: Lines, column: Column, view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chosen items of one data set: question, gold, and each row's answer with its scores."""
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
    traces = {x.cell.row.name: trace.read(x.run) for x in lines.ran if x.cell.column == column and x.run is not None}
    return [_example(item, traces) for item in order[: view["n"]]]


def _scores(line: Line, metric: str) -> dict[str, float]:
    return {item: row[metric] for item, row in line.run.scores().items() if metric in row}  # type: ignore[union-attr]


def _example(item: str, traces: dict[str, trace.Trace]) -> dict[str, Any]:
    first = next(iter(traces.values()))
    asked = first.questions[item]
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


def _text(lines: Lines, example: dict[str, Any], metric: str) -> str:
    labels = {row.name: row.label for row in lines.wish.spec.rows}
    about = " · ".join(escaped(str(example[k])) for k in ("item", "link", "author", "license") if example[k])
    parts = [f"### {escaped(example['title'])}", about, "Question", page.fenced(example["question"])]
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
