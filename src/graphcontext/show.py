"""``show``: what happened to each item of one run or several side by side, in the terminal or as a page."""

from __future__ import annotations

import html
import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError
from graphcontext.files import read_lines, write_atomic
from graphcontext.runs import Run

STYLE = """:root{color-scheme:light}
body{font:15px/1.5 system-ui,sans-serif;max-width:80rem;margin:1.5rem auto;padding:0 1rem;color:#1b1f24}
h1{font-size:1.5rem;margin:0 0 .8rem}h2{font-size:1.15rem;margin:1.6rem 0 .5rem}
h3{font-size:.95rem;margin:0 0 .4rem;overflow-wrap:anywhere}
h4{font-size:.8rem;margin:.9rem 0 .2rem;color:#59636e;text-transform:uppercase;letter-spacing:.04em}
.runs{display:grid;grid-auto-flow:column;grid-auto-columns:minmax(0,1fr);gap:1rem}
.run,details.item{border:1px solid #d0d7de;border-radius:6px;padding:.6rem .8rem}
details.item{margin:.5rem 0}summary{cursor:pointer}
.item>summary{display:flex;gap:1rem;font-weight:600}.item>summary>span:first-child{flex:1}
.item>summary::before{content:"▸";color:#59636e}.item[open]>summary::before{content:"▾"}
.id,.score{font:13px/1.7 ui-monospace,monospace;color:#59636e;white-space:nowrap;font-weight:400}
.score{min-width:3rem;text-align:right}.item>.runs{margin-top:1rem}
.score.best{color:#116329;font-weight:600}.bad{color:#a40e26}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f8fa;padding:.5rem .7rem;border-radius:6px;margin:.2rem 0;
font:13px/1.5 ui-monospace,monospace}
.answer pre{background:#eef6ff}.gold pre{background:#effaf1}
table{border-collapse:collapse;font-size:.9rem}td,th{padding:.1rem .9rem .1rem 0;text-align:left;vertical-align:top}
td.number{text-align:right;font-variant-numeric:tabular-nums}"""


@dataclass(frozen=True)
class _Read:
    """A run's files, each read once and keyed by item."""

    run: Run
    questions: dict[str, Question]
    rankings: dict[str, Ranking]
    contexts: dict[str, Context]
    predictions: dict[str, Prediction]
    scores: dict[str, dict[str, float]]
    calls: dict[str, list[dict[str, Any]]]


def text(runs: list[Run], item: str | None = None) -> str:
    """Render runs for the terminal: a line per item, or with ``item`` everything about one.

    Raises:
        InputError: no run has such an item; the message lists some that there are.
    """
    if item is None:
        return "\n\n".join(_overview(run) for run in runs)
    one = find_item(runs, item)
    parts = []
    for read in map(_read, runs):
        lines = _item_lines(read, one) if one in read.questions else [f"   {one} is not in this run"]
        parts.append("\n".join([f"== {name(read.run)}", *lines]))
    return "\n\n".join(parts)


def name(run: Run) -> str:
    """Return a run's short name: key and the choices that tell it apart."""
    config = run.config
    parts = [config[k]["_target_"].rpartition(".")[2] for k in ("retriever", "enhancer", "generator")]
    return f"{run.path.name} {config['dataset'].get('name', '')} {' + '.join(parts)}"


def find_item(runs: list[Run], item: str) -> str:
    """Return the id, in any of the runs, that ``item`` is or is the beginning of."""
    ids = list(dict.fromkeys(q.id for run in runs for q in run.questions()))
    hits = [i for i in ids if i.startswith(item)]
    if item in ids or len(hits) == 1:
        return item if item in ids else hits[0]
    where = ", ".join(str(run.path) for run in runs)
    raise InputError(f"--item {item}: {len(hits)} items begin so in {where} (e.g. {', '.join((hits or ids)[:5])})")


def _read(run: Run) -> _Read:
    calls: dict[str, list[dict[str, Any]]] = {}
    for row in read_lines(run.path / "calls.jsonl"):
        calls.setdefault(str(row.get("item")), []).append(row)
    files = (run.questions(), run.rankings(), run.contexts(), run.predictions())
    return _Read(run, *({record.id: record for record in records} for records in files), run.scores(), calls)


def _overview(run: Run) -> str:
    read = _read(run)
    lines = [f"== {name(run)}", run.summary(), ""]
    metrics = list(run.metrics["metrics"])
    width = max([4, *map(len, read.questions)])
    lines.append(f"{'item':{width}}  {'status':8}" + "".join(f"{m:>16}" for m in metrics) + "  question")
    for item, prediction in read.predictions.items():
        values = "".join(f"{read.scores[item].get(m, 0.0):16.3f}" for m in metrics)
        lines.append(f"{item:{width}}  {prediction.status:8}{values}  {_title(read.questions[item])[:60]}")
    lines.append(f"\none item: graphcontext show {run.path.name} --item ID")
    return "\n".join(lines)


def _title(question: Question) -> str:
    return " ".join((question.title or question.text).split())


def _item_lines(read: _Read, item: str) -> list[str]:
    """Return everything a run knows about one item, as lines under headings."""
    asked = read.questions[item]
    parts = [("question", f"{asked.text}\n{asked.source.link}".strip()), *_parts(read, item)]
    parts += [("gold", gold) for gold in read.predictions[item].references]
    parts.append(("scores", "  ".join(f"{k} {v:.4f}" for k, v in read.scores[item].items())))
    lines = []
    for heading, body in parts:
        lines += [f"-- {heading}", *[f"   {line}" for line in body.splitlines()]]
    return lines


def _parts(read: _Read, item: str) -> list[tuple[str, str]]:
    """Return (heading, text) of ranking, context, prompts and answer."""
    ranking, context, prediction = read.rankings[item], read.contexts[item], read.predictions[item]
    shown = {unit.source: unit.text.strip().partition("\n")[0][:80] for unit in reversed(context.units)}
    hits = [f"{n}. {hit.score:.5f}  {hit.id}  {shown.get(hit.id, '')}".rstrip() for n, hit in _numbered(ranking)]
    if ranking.fallback:
        hits.append(f"fall-back: {ranking.fallback}")
    units = "\n\n".join(f"[{source}]\n" + "\n".join(u.text for u in group) for source, group in _by_source(context))
    facts = (f"{prediction.n_tokens} tokens" if prediction.n_tokens else "", prediction.finish or "")
    about = ", ".join([_status(prediction), *filter(None, facts)])
    return [
        (f"ranking{_reason(ranking)}", "\n".join(hits) or "(none)"),
        (f"context ({context.n_tokens} tokens, {context.n_cut} units cut){_reason(context)}", units or "(none)"),
        *((f"prompt ({call['role']})", _messages(call)) for call in read.calls.get(item, [])),
        (f"answer ({about})", prediction.prediction or "(none)"),
    ]


def _by_source(context: Context) -> Any:
    """Return (source, units) of neighbouring units with one source: an extractor's sentences are one block."""
    return itertools.groupby(context.units, key=lambda unit: unit.source)


def _numbered(ranking: Ranking) -> Any:
    return enumerate(ranking.passages, 1)


def _status(record: Any) -> str:
    return record.status + (f": {record.reason}" if record.reason else "")


def _reason(record: Any) -> str:
    return f" — {_status(record)}" if record.reason or record.status == "failed" else ""


def _messages(call: dict[str, Any]) -> str:
    return "\n".join(f"<{m['role']}> {m['content']}" for m in call.get("messages", []))


# -- the page ------------------------------------------------------------------------------------


def write_html(runs: list[Run], item: str | None, path: str) -> Path:
    """Write one page with every item of the runs side by side; all text is escaped."""
    read = [_read(run) for run in runs]
    items = [find_item(runs, item)] if item else list(dict.fromkeys(i for one in read for i in one.questions))
    sections = "\n".join(_section(read, one, bool(item)) for one in items)
    heads = "\n".join(_head(run) for run in runs)
    title = "Run" if len(runs) == 1 else "Runs"
    page = (
        "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>graphcontext: {html.escape(', '.join(run.path.name for run in runs))}</title>\n"
        f"<style>{STYLE}</style>\n<h1>{title}</h1><div class=runs>{heads}</div>\n"
        f"{_config_difference(runs)}<h2>{html.escape(_items_heading(runs, len(items)))}</h2>\n{sections}\n</html>\n"
    )
    target = Path(os.path.expanduser(path))
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(
            f"--html {path}: {'is a folder' if target.is_dir() else f'there is no folder {target.parent}'}"
        )
    write_atomic(target, page)
    return target


def _items_heading(runs: list[Run], n: int) -> str:
    metric = next(iter(runs[0].metrics["metrics"]), None)
    scored = f", {metric} of {', '.join(run.path.name for run in runs)}" if metric else ""
    return f"{n} item{'s' if n > 1 else ''}{scored}"


def _head(run: Run) -> str:
    done = run.metrics
    rows = "".join(
        f"<tr><td>{html.escape(metric)}<td class=number>{m['value']:.4f}"
        f"<td class=number>[{m['ci95'][0]:.4f}, {m['ci95'][1]:.4f}]"
        for metric, m in done["metrics"].items()
    )
    counts = f"n={done['n']}, {done['n_failed']} failed, {done['n_empty']} empty, {done['n_truncated']} truncated"
    return f"<div class=run><h3>{html.escape(name(run))}</h3>{counts}<table>{rows}</table></div>"


def _config_difference(runs: list[Run]) -> str:
    """Return a table of the config keys in which each later run differs from the first."""
    from graphcontext.compare import difference

    parts = []
    for run in runs[1:]:
        changed = difference(runs[0].config, run.config)
        rows = "".join(
            f"<tr><td>{html.escape(key)}<td>{html.escape(str(a))}<td>→<td>{html.escape(str(b))}"
            for key, (a, b) in changed.items()
        )
        heading = f"Config: {runs[0].path.name} → {run.path.name} ({len(changed)} keys differ)"
        parts.append(f"<details><summary>{html.escape(heading)}</summary><table>{rows}</table></details>")
    return f"<h2>What differs</h2>{''.join(parts)}" if parts else ""


def _section(runs: list[_Read], item: str, is_open: bool) -> str:
    """Return one item: question and gold across the page, then a column per run."""
    having = next(run for run in runs if item in run.questions)
    asked = having.questions[item]
    values = [next(iter(r.scores[item].values()), None) if item in r.questions else None for r in runs]
    known = [v for v in values if v is not None]
    marks = "".join(_mark(v, len(known) > 1 and min(known) < max(known) == v) for v in values)
    link = html.escape(asked.source.link)
    gold = "".join(_block("gold", text_) for text_ in having.predictions[item].references)
    return (
        f"<details class=item{' open' if is_open else ''}><summary><span>{html.escape(_title(asked)[:160])}</span>"
        f"<span class=id>{html.escape(item)}</span>{marks}</summary>"
        f"{_block('question', asked.text)}{f'<a href={chr(34)}{link}{chr(34)}>{link}</a>' if _is_web(link) else ''}"
        f"<div class=gold>{gold}</div><div class=runs>{''.join(_column(run, item) for run in runs)}</div></details>"
    )


def _is_web(link: str) -> bool:
    return link.startswith(("https://", "http://"))


def _mark(value: float | None, is_best: bool) -> str:
    return f"<span class='score{' best' if is_best else ''}'>{'–' if value is None else f'{value:.3f}'}</span>"


def _column(read: _Read, item: str) -> str:
    head = f"<h3>{html.escape(name(read.run))}</h3>"
    if item not in read.questions:
        return f"<div>{head}<p>not in this run</p></div>"
    *shown, answer = _parts(read, item)
    bad = " bad" if read.predictions[item].status == "failed" else ""
    scores = "".join(f"<tr><td>{html.escape(k)}<td class=number>{v:.4f}" for k, v in read.scores[item].items())
    folded = "".join(
        _block(heading, body)
        if heading.startswith("ranking")
        else f"<details><summary>{html.escape(heading)}</summary><pre>{html.escape(body)}</pre></details>"
        for heading, body in shown
    )
    return f"<div>{head}<div class='answer{bad}'>{_block(*answer)}</div><table>{scores}</table>{folded}</div>"


def _block(heading: str, body: str) -> str:
    return f"<h4>{html.escape(heading)}</h4><pre>{html.escape(body)}</pre>"
