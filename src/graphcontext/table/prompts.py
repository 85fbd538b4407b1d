"""Tables of kind ``prompts``: the prompt of each role as its YAML has it, and one as it was asked (gcg/t8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext import trace
from graphcontext.component import components
from graphcontext.data.card import escaped
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.compute import compute
from graphcontext.table.expand import Request
from graphcontext.table.lines import Lines


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows; show every prompt template they use, and per row and role the first call that was made."""
    lines = compute(wish, config_dir, root, quiet)
    templates, calls = templates_of(lines), calls_of(lines)
    parts = ["## Templates"]
    for template in templates:
        parts += [f"### {escaped(template['used_by'])}", f"rows: {escaped(', '.join(template['rows']))}"]
        for key in ("system", "user", "user_without_context"):
            if template[key]:
                parts += [f"`{key}`", page.fenced(template[key])]
    parts.append("## As asked")
    for call in calls:
        parts.append(
            "### {label} on {column}: role {role}, item {item}".format(**{k: escaped(str(v)) for k, v in call.items()})
        )
        parts += [page.fenced(f"<{m['role']}> {m['content']}") for m in call["messages"]]
        parts += ["Answer", page.fenced(call["response"] or "(empty)")]
    if not calls:
        parts.append("(no row asked a language model)")
    return page.write(lines, parts, {"templates": templates, "calls": calls})


def templates_of(lines: Lines) -> list[dict[str, Any]]:
    """Return each distinct prompt template of the rows, with the component that uses it."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines.lines:
        config = line.cell.composed.config
        for holder in components([config["enhancer"], config["generator"]]):
            prompt = holder.get("prompt")
            if not isinstance(prompt, dict):
                continue
            texts = {key: _texts(prompt)[key] for key in ("system", "user", "user_without_context")}
            name = holder["_target_"].rpartition(".")[2]
            entry = found.setdefault(repr((name, texts)), {"used_by": name, "rows": [], **texts})
            if line.cell.row.name not in entry["rows"]:
                entry["rows"].append(line.cell.row.name)
    return list(found.values())


def _texts(node: dict[str, Any]) -> dict[str, str]:
    from graphcontext.component import instantiate

    prompt = instantiate(node, "prompt")
    return {key: getattr(prompt, key) for key in ("system", "user", "user_without_context")}


def calls_of(lines: Lines) -> list[dict[str, Any]]:
    """Return, per data set, row and role, the first call of the run in the order of its questions."""
    found = []
    for line in lines.ran:
        read = trace.read(line.run)  # type: ignore[arg-type]
        ordered = [*read.questions, *(item for item in read.calls if item not in read.questions)]
        seen: set[str] = set()
        for item in ordered:
            for call in read.calls.get(item, []):
                if call["role"] in seen:
                    continue
                seen.add(call["role"])
                about = {"row": line.cell.row.name, "label": line.cell.row.label, "column": line.cell.column.label}
                said = {key: call[key] for key in ("role", "item", "messages", "response")}
                found.append(about | said)
    return found
