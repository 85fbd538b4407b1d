"""A table's files: markdown, CSV, LaTeX, JSON and a plot, side by side; untouched where nothing changed."""

from __future__ import annotations

from pathlib import Path

from graphcontext.files import write_atomic
from graphcontext.table.cells import TableResult
from graphcontext.table.render import to_csv, to_json, to_markdown, to_tex

SUFFIXES = (".md", ".csv", ".tex", ".png", ".json")


def write(result: TableResult, stem: Path) -> tuple[Path, str]:
    """Write ``stem``.md, .csv, .tex, .png and .json; returns the markdown's path and content.

    The JSON is written last: where it already has this content the other files are those of this table.
    """
    files = {suffix: stem.with_name(stem.name + suffix) for suffix in SUFFIXES}
    content = to_json(result)
    old = files[".json"]
    if all(f.is_file() for f in files.values()) and old.read_text() == content:
        return files[".md"], files[".md"].read_text()
    from graphcontext.table.plot import to_png

    markdown = to_markdown(result)
    write_atomic(files[".md"], markdown)
    write_atomic(files[".csv"], to_csv(result))
    write_atomic(files[".tex"], to_tex(result))
    write_atomic(files[".png"], to_png(result))
    write_atomic(files[".json"], content)
    return files[".md"], markdown
