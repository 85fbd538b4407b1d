"""``show``: what happened to each item of one run or several side by side, in the terminal or as a page."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError
from graphcontext.files import read_lines, write_atomic
from graphcontext.runs import Run

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}
details{border:1px solid #d0d7de;border-radius:6px;margin:.6rem 0;padding:.5rem .8rem}
summary{cursor:pointer;font-weight:600}pre{white-space:pre-wrap;background:#f6f8fa;padding:.6rem;border-radius:6px}
.runs{display:grid;grid-auto-flow:column;grid-auto-columns:1fr;gap:1rem}td,th{padding:.1rem .7rem;text-align:left}
h4{margin:.6rem 0 .2rem}"""


def text(runs: list[Run], item: str | None = None) -> str:
    """Render runs for the terminal: a line per item, or with ``item`` everything about one.

    Raises:
        InputError: no such item; the message lists the nearest.
    """
    if item is None:
        return "\n\n".join(_overview(run) for run in runs)
    return "\n\n".join("\n".join([f"== {name(run)}", *_item_lines(run, find_item(run, item))]) for run in runs)


def name(run: Run) -> str:
    """Return a run's short name: key and the choices that tell it apart."""
    config = run.config
    parts = [config[k]["_target_"].rpartition(".")[2] for k in ("retriever", "enhancer", "generator")]
    return f"{run.path.name} {config['dataset'].get('name', '')} {' + '.join(parts)}"


def find_item(run: Run, item: str) -> str:
    """Return the id that ``item`` is, or is the beginning of."""
    ids = [q.id for q in run.questions()]
    hits = [i for i in ids if i.startswith(item)]
    if item in ids or len(hits) == 1:
        return item if item in ids else hits[0]
    raise InputError(f"--item {item}: {len(hits)} items begin so in {run.path} (e.g. {', '.join((hits or ids)[:5])})")


def _overview(run: Run) -> str:
    lines = [f"== {name(run)}", run.summary(), ""]
    scores = run.scores()
    metrics = list(run.metrics["metrics"])
    lines.append(f"{'item':18}{'status':8}" + "".join(f"{m:>16}" for m in metrics) + "  question")
    titles = {q.id: q.title or q.text for q in run.questions()}
    for prediction in run.predictions():
        row = scores[prediction.id]
        values = "".join(f"{row.get(m, 0.0):16.3f}" for m in metrics)
        lines.append(f"{prediction.id:18}{prediction.status:8}{values}  {titles[prediction.id][:60]}")
    lines.append(f"\none item: graphcontext show {run.path.name} --item ID")
    return "\n".join(lines)


def _item_parts(run: Run, item: str) -> list[tuple[str, str]]:
    """Return (heading, text) for everything a run knows about one item."""
    question = next(q for q in run.questions() if q.id == item)
    ranking = next(r for r in run.rankings() if r.id == item)
    context = next(c for c in run.contexts() if c.id == item)
    prediction = next(p for p in run.predictions() if p.id == item)
    hits = [f"{n}. {hit.id}  {hit.score:.5f}" for n, hit in enumerate(ranking.passages, 1)]
    if ranking.fallback:
        hits.append(f"fall-back: {ranking.fallback}")
    units = [f"[{u.source}]\n{u.text}" for u in context.units]
    parts = [
        ("question", f"{question.text}\n{question.source.link}".strip()),
        ("ranking", "\n".join(hits) or "(none)"),
        (f"context ({context.n_tokens} tokens, {context.n_cut} units cut)", "\n\n".join(units) or "(none)"),
    ]
    parts += [(f"prompt ({c['role']})", _messages(c)) for c in _calls(run, item)]
    status = prediction.status + (f": {prediction.reason}" if prediction.reason else "")
    parts.append((f"answer ({status}, {prediction.n_tokens} tokens, {prediction.finish})", prediction.prediction))
    parts += [("gold", gold) for gold in prediction.references]
    scores = {k: round(v, 4) for k, v in run.scores()[item].items()}
    parts.append(("scores", json.dumps(scores)))
    return parts


def _calls(run: Run, item: str) -> list[dict[str, Any]]:
    return [row for row in read_lines(run.path / "calls.jsonl") if row.get("item") == item]


def _messages(call: dict[str, Any]) -> str:
    return "\n".join(f"<{m['role']}> {m['content']}" for m in call.get("messages", []))


def _item_lines(run: Run, item: str) -> list[str]:
    lines = []
    for heading, body in _item_parts(run, item):
        lines += [f"-- {heading}", *[f"   {line}" for line in body.splitlines()]]
    return lines


def write_html(runs: list[Run], item: str | None, path: str) -> Path:
    """Write one page with every item of the runs side by side; all text is escaped."""
    items = [find_item(runs[0], item)] if item else [q.id for q in runs[0].questions()]
    titles = {q.id: q.title or q.text for q in runs[0].questions()}
    sections = []
    for one in items:
        columns = []
        for run in runs:
            if one not in titles or not any(q.id == one for q in run.questions()):
                columns.append(f"<div><b>{html.escape(name(run))}</b><p>not in this run</p></div>")
                continue
            parts = "".join(f"<h4>{html.escape(h)}</h4><pre>{html.escape(b)}</pre>" for h, b in _item_parts(run, one))
            columns.append(f"<div><b>{html.escape(name(run))}</b>{parts}</div>")
        is_open = " open" if item else ""
        sections.append(
            f"<details{is_open}><summary>{html.escape(titles[one][:120])}</summary>"
            f"<div class=runs>{''.join(columns)}</div></details>"
        )
    heads = "".join(f"<h3>{html.escape(name(r))}</h3><pre>{html.escape(r.summary())}</pre>" for r in runs)
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>graphcontext runs</title>"
        f"<style>{STYLE}</style><h1>Runs</h1>{heads}<h2>Items</h2>{''.join(sections)}</html>\n"
    )
    target = Path(path).expanduser()
    write_atomic(target, page)
    return target
