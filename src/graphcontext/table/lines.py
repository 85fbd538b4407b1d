"""The rows of a table on its data sets, as they were asked for: their configs, and what becomes known of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphcontext.component import components, has_answers
from graphcontext.config import Composed
from graphcontext.files import digest
from graphcontext.keys import Keys
from graphcontext.run_folder import Run
from graphcontext.table import expand
from graphcontext.table.expand import CellConfig, Request
from graphcontext.table.spec import Row
from graphcontext.table.substitutions import altered

LIMITS = {"dataset.limit", "limits.questions", "limits.multihop"}  # typed ones hold for retrieval too
KEPT = ("scale", "dataset", "dataset.path")  # overrides that a table's file is named by otherwise


@dataclass
class Line:
    """One row on one data set, as it becomes known.

    Args:
        cell: its config.
        paper: what the paper's row names.
        declared: the row as its YAMLs declare it, without the user's overrides.
        keys: cache keys; None where its data is not here.
        reason: why it is not run.
        run: the finished run.
        failed: its run failed in whole or in part.
        without_weights: a model of it is not on this machine.
        is_whole: it retrieves for all questions and answers none, beside the row's answers to some.
        stand_in: group → (the paper's option, ours).
    """

    cell: CellConfig
    paper: Composed
    declared: Composed
    keys: Keys | None = None
    reason: str | None = None
    run: Run | None = None
    failed: bool = False
    without_weights: bool = False
    is_whole: bool = False
    stand_in: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def ran(self) -> bool:
        """Whether it shows a number."""
        return self.run is not None and self.reason is None

    @property
    def name(self) -> str:
        """The row's name, as notes and progress have it."""
        return f"{self.cell.row.name} (all questions)" if self.is_whole else self.cell.row.name


@dataclass(frozen=True)
class Lines:
    """All rows of a table as it was asked for, computed.

    Args:
        wish: the table and the user's overrides.
        columns: data sets.
        lines: every row that has an experiment, on every column.
        scale: ``sample``, ``small`` or ``paper``.
        stem: path of the table's files without ending.
        root: the working folder.
    """

    wish: Request
    columns: list[expand.Column]
    lines: list[Line]
    scale: str
    stem: Path
    root: Path

    def of(self, row: Row | str, column: expand.Column, metric: str | None = None) -> Line | None:
        """Return a row's line on one data set, the one that ``metric`` is taken from; None without experiment."""
        name = row if isinstance(row, str) else row.name
        found = [x for x in self.lines if x.cell.row.name == name and x.cell.column == column]
        whole = [x for x in found if x.is_whole] if metric in self.wish.spec.whole else []
        return next((x for x in [*whole, *found] if whole or not x.is_whole), None)

    @property
    def ran(self) -> list[Line]:
        """Return the lines that show a number."""
        return [line for line in self.lines if line.ran]

    @property
    def n_failed(self) -> int:
        return sum(line.failed for line in self.lines)

    @property
    def command(self) -> str:
        """Return the command that makes this table."""
        wish = self.wish
        rows = f"table.rows={wish.rows}" if wish.rows else ""
        baseline = f"table.baseline={wish.baseline or 'null'}" if wish.baseline != wish.spec.baseline else ""
        words = ["graphcontext table", wish.spec.name, *expand.shown(wish.overrides), rows, baseline]
        return " ".join(word for word in words if word)

    @property
    def nothing(self) -> str:
        """Return why none of the chosen rows shows a number, empty where one does."""
        wish = self.wish
        chosen = [line for line in self.lines if line.cell.row.name in wish.selected]
        if any(line.ran for line in chosen):
            return ""
        names = {row.name: row.not_run for row in wish.spec.rows if row.name in wish.selected and row.not_run}
        return "; ".join(dict.fromkeys([*(line.reason or "" for line in chosen), *names.values()]))


def declare(wish: Request, config_dir: str | None, root: Path) -> Lines:
    """Compose a table's rows and name its files; nothing is looked for or run."""
    columns = expand.columns(wish, config_dir)
    found = expand.cells(wish, config_dir)
    lines = [Line(cell, _paper(cell, config_dir, root), _declared(cell, wish, config_dir)) for cell in found]
    lines += [whole for line in lines for whole in _whole(line, wish, config_dir)]
    stem = f"{wish.spec.name}{wish.suffix}{_alterations(lines, wish)}"
    scale = expand.compose_cached(wish.overrides, (), config_dir, lenient=True, root=root).config["scale"]["name"]
    return Lines(wish, columns, lines, scale, root / "results" / scale / stem, root)


def _whole(line: Line, wish: Request, config_dir: str | None) -> list[Line]:
    """Return the line that retrieves for all questions, where the row's own is cut and its retrieval asks no LLM."""
    config = line.cell.composed.config
    typed = {override.partition("=")[0] for override in wish.overrides}
    is_asked = any("llm" in node for node in components([config["retriever"], config["enhancer"]]))
    most = config["limits"]["retrieval"]
    is_whole = config["dataset"].get("limit") == most or bool(typed & LIMITS)
    if not wish.spec.whole or is_asked or is_whole or not has_answers(config):
        return []
    limit = f"dataset.limit={'null' if most is None else most}"
    uncut = [*_base(line.cell), "generator=none", limit, f"metric=[{','.join(wish.spec.whole)}]"]
    used, declared = (
        expand.compose_cached(given, uncut, config_dir, lenient=True, root=wish.root)
        for given in (wish.overrides, _kept(wish))
    )
    if has_answers(used.config):  # a generator was typed
        return []
    return [Line(replace(line.cell, composed=used), line.paper, declared, is_whole=True)]


def _alterations(lines: list[Line], wish: Request) -> str:
    """Return ``+KEY=VALUE…`` for the file's name where overrides alter the table: the plain name is as declared."""
    others = any(altered(line.cell.composed, line.declared, scored=True) for line in lines if not line.is_whole)
    return name_of(wish) if others or wish.baseline != wish.spec.baseline else ""


def name_of(wish: Request) -> str:
    """Return the overrides of a table as the end of a file's name."""
    others = [o for o in wish.overrides if o.partition("=")[0] not in KEPT]
    others += [f"table.baseline={wish.baseline or 'null'}"] if wish.baseline != wish.spec.baseline else []
    words = re.sub(r"[^\w.=+-]+", "-", ",".join(others)).strip("-")
    return "+" + (words if len(words) <= 60 else f"{words[:50]}-{digest(others)[:8]}")


def _declared(cell: CellConfig, wish: Request, config_dir: str | None) -> Composed:
    """Compose the cell as its YAMLs declare it at this scale and on this data set, without further overrides."""
    return expand.compose_cached(_kept(wish), _base(cell), config_dir, lenient=True, root=wish.root)


def _paper(cell: CellConfig, config_dir: str | None, root: Path) -> Composed:
    """Compose what the paper's row names: the same cell at the paper's scale, without the user's overrides."""
    return expand.compose_cached(["scale=paper"], _base(cell), config_dir, root=root)


def _kept(wish: Request) -> list[str]:
    return [o for o in wish.overrides if o.partition("=")[0] in KEPT]


def _base(cell: CellConfig) -> list[str]:
    return [f"experiment={cell.row.experiment}", *cell.row.overrides, *expand.dataset_cell(cell.column)]
