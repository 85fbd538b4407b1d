"""``show``: what happened to each item of one run or several side by side, in the terminal or as a page."""

from __future__ import annotations

import html
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from graphcontext.component import records_steps
from graphcontext.data.records import Passage, Ranking
from graphcontext.errors import InputError
from graphcontext.files import write_atomic
from graphcontext.path import names
from graphcontext.path_svg import figure, svg
from graphcontext.run_folder import Run
from graphcontext.trace import Trace, passages, title
from graphcontext.trace import parts as trace_parts
from graphcontext.trace import read as read_trace

NO_PATH = "there is no path to draw; retriever=traversal and retriever=mdr have one"
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
td.number{text-align:right;font-variant-numeric:tabular-nums}
.path{overflow-x:auto;margin:.3rem 0}"""


def text(runs: list[Run], item: str | None = None) -> str:
    """Render runs for the terminal: a line per item, or with ``item`` everything about one.

    Raises:
        InputError: no run has such an item; the message lists some that there are.
    """
    if item is None:
        return "\n\n".join(_overview(run) for run in runs)
    one = find_item(runs, item)
    parts = []
    for trace in map(read_trace, runs):
        lines = _item_lines(trace, one) if one in trace.questions else [f"   {one} is not in this run"]
        parts.append("\n".join([f"== {name(trace.run)}", *lines]))
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


def _overview(run: Run) -> str:
    trace = read_trace(run)
    lines = [f"== {name(run)}", run.summary(), ""]
    metrics = list(run.metrics["metrics"])
    width = max([4, *map(len, trace.questions)])
    lines.append(f"{'item':{width}}  {'status':8}" + "".join(f"{m:>16}" for m in metrics) + "  question")
    for item, prediction in trace.predictions.items():
        values = "".join(f"{trace.scores[item].get(m, 0.0):16.3f}" for m in metrics)
        lines.append(f"{item:{width}}  {prediction.status:8}{values}  {title(trace.questions[item])[:60]}")
    lines.append(f"\none item: graphcontext show {run.path.name} --item ID")
    return "\n".join(lines)


def _item_lines(trace: Trace, item: str) -> list[str]:
    """Return everything a run knows about one item, as lines under headings."""
    asked = trace.questions[item]
    parts = [("question", f"{asked.text}\n{asked.source.link}".strip()), *trace_parts(trace, item)]
    parts += [("gold", gold) for gold in trace.predictions[item].references]
    parts.append(("scores", "  ".join(f"{k} {v:.4f}" for k, v in trace.scores[item].items())))
    lines = []
    for heading, body in parts:
        lines += [f"-- {heading}", *[f"   {line}" for line in body.splitlines()]]
    return lines


# -- the page ------------------------------------------------------------------------------------


def write_html(runs: list[Run], item: str | None, path: str) -> Path:
    """Write one page with every item of the runs side by side; all text is escaped."""
    traces = [read_trace(run) for run in runs]
    items = [find_item(runs, item)] if item else list(dict.fromkeys(i for one in traces for i in one.questions))
    sections = "\n".join(_section(traces, one, bool(item)) for one in items)
    heads = "\n".join(_head(run) for run in runs)
    title = "Run" if len(runs) == 1 else "Runs"
    page = (
        "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>graphcontext: {html.escape(', '.join(run.path.name for run in runs))}</title>\n"
        f"<style>{STYLE}</style>\n<h1>{title}</h1><div class=runs>{heads}</div>\n"
        f"{_config_difference(runs)}<h2>{html.escape(_items_heading(runs, len(items)))}</h2>\n{sections}\n</html>\n"
    )
    return write_file("--html", path, page)


def write_svg(runs: list[Run], item: str | None, path: str) -> Path:
    """Write the path of one item of one run as SVG.

    Raises:
        InputError: several runs, no item, or one without a path.
    """
    if len(runs) != 1 or not item:
        raise InputError(f"--svg {path}: needs one RUN and --item ID")
    trace, one = read_trace(runs[0]), find_item(runs, item)
    asked, ranking = trace.questions[one], trace.rankings[one]
    return write_drawing(asked.text, ranking, passages(trace, one), path, asked.supports)


def write_drawing(
    question: str, ranking: Ranking, known: Mapping[str, Passage], path: str, gold: Collection[str] = ()
) -> Path:
    """Write the drawing of a ranking's steps as a file.

    Raises:
        InputError: it has none.
    """
    if not ranking.steps:
        raise InputError(f"--svg {path}: {NO_PATH}")
    return write_file("--svg", path, svg(question, ranking.steps, names(ranking, known, gold)))


def check_drawn(retriever: dict[str, Any], path: str) -> None:
    """Refuse a drawing of what the retriever of a config never records.

    Raises:
        InputError: it records no steps.
    """
    if not records_steps(retriever):
        raise InputError(f"--svg {path}: {NO_PATH}")


def write_file(flag: str, path: str, text: str) -> Path:
    """Write what a flag asks for.

    Raises:
        InputError: it cannot be there.
    """
    target = check_file(flag, path)
    write_atomic(target, text)
    return target


def check_file(flag: str, path: str) -> Path:
    """Return where a file goes that a flag asks for.

    Raises:
        InputError: it cannot be there.
    """
    target = Path(os.path.expanduser(path))
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(
            f"{flag} {path}: {'is a folder' if target.is_dir() else f'there is no folder {target.parent}'}"
        )
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


def _section(runs: list[Trace], item: str, is_open: bool) -> str:
    """Return one item: question and gold across the page, then a column per run."""
    having = next(run for run in runs if item in run.questions)
    asked = having.questions[item]
    values = [next(iter(r.scores[item].values()), None) if item in r.questions else None for r in runs]
    known = [v for v in values if v is not None]
    marks = "".join(_mark(v, len(known) > 1 and min(known) < max(known) == v) for v in values)
    link = html.escape(asked.source.link)
    gold = "".join(_block("gold", text_) for text_ in having.predictions[item].references)
    return (
        f"<details class=item{' open' if is_open else ''}><summary><span>{html.escape(title(asked)[:160])}</span>"
        f"<span class=id>{html.escape(item)}</span>{marks}</summary>"
        f"{_block('question', asked.text)}{f'<a href={chr(34)}{link}{chr(34)}>{link}</a>' if _is_web(link) else ''}"
        f"<div class=gold>{gold}</div><div class=runs>{''.join(_column(run, item) for run in runs)}</div></details>"
    )


def _is_web(link: str) -> bool:
    return link.startswith(("https://", "http://"))


def _mark(value: float | None, is_best: bool) -> str:
    return f"<span class='score{' best' if is_best else ''}'>{'–' if value is None else f'{value:.3f}'}</span>"


def _column(trace: Trace, item: str) -> str:
    head = f"<h3>{html.escape(name(trace.run))}</h3>"
    if item not in trace.questions:
        return f"<div>{head}<p>not in this run</p></div>"
    *shown, answer = trace_parts(trace, item)
    bad = " bad" if trace.predictions[item].status == "failed" else ""
    scores = "".join(f"<tr><td>{html.escape(k)}<td class=number>{v:.4f}" for k, v in trace.scores[item].items())
    asked = trace.questions[item]
    way = figure(asked.text, trace.rankings[item], passages(trace, item), asked.supports)
    folded = "".join(
        _block(heading, body)
        if heading.startswith("ranking")
        else f"<h4>path</h4>{way}"
        if heading == "path"
        else f"<details><summary>{html.escape(heading)}</summary><pre>{html.escape(body)}</pre></details>"
        for heading, body in shown
    )
    return f"<div>{head}<div class='answer{bad}'>{_block(*answer)}</div><table>{scores}</table>{folded}</div>"


def _block(heading: str, body: str) -> str:
    return f"<h4>{html.escape(heading)}</h4><pre>{html.escape(body)}</pre>"
