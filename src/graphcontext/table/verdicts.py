"""From finished tables and runs to verdicts on what a paper states; nothing is run.

A claim's cells name their runs (``runs/<key12>``); the runs' per-item scores go through the tests of the tables:
paired permutation over the shared items, Holm over all comparisons of one paper, data set and metric.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphcontext.errors import InputError
from graphcontext.evaluate.statistics import SEED, Difference, holm, paired_difference
from graphcontext.run_folder import Run
from graphcontext.table.cells import UNITS
from graphcontext.table.claims import Claim, Claims
from graphcontext.table.finished import Finished, finished

VERDICTS = ("supported", "contradicted", "inconclusive", "not tested")
LEVEL = 0.05
MOST_FAILED = 0.1  # share of the items; a test over more of them would compare failures
CARRIED = ("ratings",)  # kinds of tables whose cells carry the test themselves: it is not of a run's scores


@dataclass(frozen=True)
class Verdict:
    """What is known of one comparison under one metric on one data set; values in the table's unit.

    Args:
        claim: its id.
        left, right: rows, or the number that the left one is compared with.
        column: the data set as the table's file names it (``t3@my_site``: ``@my_site``), with the overrides in that
            name; empty where no table is there.
        metric: its name.
        verdict: ``supported`` (the difference has the stated sign, p_holm < .05), ``contradicted`` (the other
            sign, p_holm < .05), ``inconclusive``, or ``not tested``.
        reason: why it is not tested, or what to read the verdict with (a fall-back, items that failed).
        n: shared items.
        left_value, right_value: means over the shared items.
        diff, diff_ci95: left − right and its 95 % bootstrap interval.
        p, p_holm: of the test; adjusted within ``family``.
        family: the tests that were adjusted together, with their number.
        runs: the runs that were compared.
    """

    claim: str
    left: str
    right: str
    column: str
    metric: str
    verdict: str = "not tested"
    reason: str = ""
    n: int | None = None
    left_value: float | None = None
    right_value: float | None = None
    diff: float | None = None
    diff_ci95: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None
    family: str | None = None
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Test:
    """A test before its p is adjusted; values are fractions."""

    claim: Claim
    pair: tuple[str, str]  # what was compared: two runs, or a run and a number
    difference: Difference
    means: tuple[float, float]
    n: int
    reason: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """Rows that two claims compare are one test, whichever is left."""
        return tuple(sorted(self.pair))


class _NotTestedError(Exception):
    """Why a comparison is not tested."""


class Judged:
    """The verdicts on one paper's claims at one scale.

    Args:
        claims: the paper's.
        scale: ``sample``, ``small`` or ``paper``.
        root: the working folder, with ``results/`` and ``runs/``.
    """

    def __init__(self, claims: Claims, scale: str, root: Path):
        self.claims, self.scale, self.root = claims, scale, root
        self.files = {table: finished(root, scale, table) for table in claims.specs}
        self._read: dict[str, tuple[dict[str, dict[str, float]], dict[str, str], set[str]]] = {}
        self.verdicts = self._adjusted([place for claim in claims.claims for place in self._places(claim)])

    @property
    def stand_ins(self) -> list[str]:
        """Return what the tables say of stand-ins, each once."""
        said = [note for files in self.files.values() for file in files for note in file.data["footnotes"]]
        marks = ("stands in for", ": the paper's is ", "chosen by you")
        return [note for note in dict.fromkeys(said) if any(mark in note for mark in marks)]

    def count(self, claim: str | None = None) -> Counter[str]:
        """Return how many comparisons (of one claim) have each verdict."""
        return Counter(v.verdict for v in self.verdicts if claim in (None, v.claim))

    def _places(self, claim: Claim) -> Iterator[tuple[Verdict, _Test | None]]:
        """Yield each comparison of a claim, once: where it stands, and its test where there is one."""
        labels = self.claims.specs[claim.left.table].datasets
        stated = {labels[dataset] for dataset in claim.datasets}
        columns = [
            (file, column, label)
            for file in self.files[claim.left.table]
            for column, label, paper in file.columns()
            if not paper or stated & set(paper)  # a data set that the user chose counts for every claim
            if not self._holds_again(file, column)
        ]
        absent = f"nothing here: graphcontext table {claim.left.table} scale={self.scale}"
        for rows in claim.pairs():
            for metric in claim.metrics:
                if not columns:
                    yield Verdict(claim.id, *rows, "", metric, reason=absent), None
                seen: set[_Test] = set()
                for file, column, label in columns:
                    blank = Verdict(claim.id, *rows, label, metric)
                    try:
                        test = self._test(claim, file, rows, column, metric)
                    except _NotTestedError as why:
                        yield replace(blank, reason=str(why)), None
                        continue
                    if test not in seen:
                        yield blank, test
                    seen.add(test)

    def _holds_again(self, file: Finished, column: str) -> bool:
        """Tell whether all that is known of a column stands in an earlier file of its table too."""
        files = self.files[file.table]
        mine = file.measured(column)
        earlier = (other.measured(c) for other in files[: files.index(file)] for c, _, _ in other.columns())
        return bool(mine) and any(mine <= theirs for theirs in earlier)

    def _test(self, claim: Claim, file: Finished, rows: tuple[str, str], column: str, metric: str) -> _Test:
        left = _measured(file, rows[0], column, metric)
        spec = self.claims.specs[claim.left.table]
        if spec.kind in CARRIED:
            return _carried(claim, left, UNITS[spec.unit])
        a, asked_a = self._scores(left, metric)
        if claim.right.value is not None:
            number = claim.right.value / UNITS[spec.unit]
            x = np.array([a[i][metric] for i in a])
            found = paired_difference(x, np.full(len(x), number), SEED)
            means = (float(x.mean()), number)
            return _Test(claim, (left["run"], rows[1]), found, means, len(x), self._remarks(list(a), left))
        right = _measured(self._beside(claim, file), rows[1], column, metric)
        if right["run"] == left["run"]:
            raise _NotTestedError("same stand-in: both rows are one run")
        b, asked_b = self._scores(right, metric)
        shared = [i for i in a if i in b and asked_a[i] == asked_b[i]]
        if not shared:
            raise _NotTestedError("the runs share no item")
        x, y = (np.array([scores[i][metric] for i in shared]) for scores in (a, b))
        found = paired_difference(x, y, SEED)
        means = (float(x.mean()), float(y.mean()))
        remarks = self._remarks(shared, left, right)
        return _Test(claim, (left["run"], right["run"]), found, means, len(shared), remarks)

    def _remarks(self, items: list[str], *cells: dict[str, Any]) -> str:
        """Return what to read a verdict with: how many items failed, which score 0, and rows that fell back."""
        failed = set[str]().union(*(self._read[cell["run"]][2] for cell in cells)) & set(items)
        said = f"{len(failed)} of {len(items)} items failed"
        if len(failed) > MOST_FAILED * len(items):
            raise _NotTestedError(said)
        return "; ".join(part for part in (said if failed else "", _fallen(*cells)) if part)

    def _beside(self, claim: Claim, file: Finished) -> Finished:
        """Return the right side's table: the same file, or the other table's of the same variant."""
        if claim.right.table == claim.left.table:
            return file
        found = [f for f in self.files[claim.right.table] if f.variant == file.variant]
        if not found:
            raise _NotTestedError(f"nothing here: graphcontext table {claim.right.table} scale={self.scale}")
        return found[0]

    def _scores(self, cell: dict[str, Any], metric: str) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
        """Return item → scores and item → question of a cell's run."""
        name = cell["run"]
        if name not in self._read:
            run = Run(self.root / "runs" / str(name))
            try:
                self._read[name] = run.scores(), {q.id: q.text for q in run.questions()}, run.failed()
            except InputError as error:
                raise _NotTestedError("its runs are not in runs/: make the table again") from error
        scores, asked, _ = self._read[name]
        scored = {item: row for item, row in scores.items() if metric in row}  # of a further column not every item
        if not scored or any(item not in asked for item in scored):
            raise _NotTestedError(f"run {name} is damaged: delete its folder and make the table again")
        return scored, asked

    def _adjusted(self, places: list[tuple[Verdict, _Test | None]]) -> list[Verdict]:
        """Adjust the p of each test within its data set and metric, and say what follows from it."""
        families: dict[tuple[str, str], dict[tuple[str, ...], float]] = defaultdict(dict)
        for at, test in places:
            if test is not None:
                families[at.column, at.metric][test.identity] = test.difference.p
        adjusted = {key: dict(zip(tests, holm(list(tests.values())), strict=True)) for key, tests in families.items()}
        found = []
        for at, test in places:
            if test is not None:
                family = adjusted[at.column, at.metric]
                name = f"{self.claims.name}: {at.column}/{at.metric} ({len(family)})"
                at = replace(_judged(at, test, family[test.identity], self._unit(test.claim)), family=name)
            found.append(at)
        return found

    def _unit(self, claim: Claim) -> float:
        return UNITS[self.claims.specs[claim.left.table].unit]


def _judged(at: Verdict, test: _Test, p_holm: float, factor: float) -> Verdict:
    found = test.difference
    stated = found.diff > 0 if test.claim.rises else found.diff < 0
    return replace(
        at,
        verdict="inconclusive" if p_holm >= LEVEL else "supported" if stated else "contradicted",
        reason=test.reason,
        n=test.n,
        left_value=test.means[0] * factor,
        right_value=test.means[1] * factor,
        diff=found.diff * factor,
        diff_ci95=(found.low * factor, found.high * factor),
        p=found.p,
        p_holm=p_holm,
        runs=test.pair,
    )


def _measured(file: Finished, row: str, column: str, metric: str) -> dict[str, Any]:
    """Return a cell that holds a number."""
    cell = file.cell(row, column, metric)
    if cell is None:
        raise _NotTestedError(f"{file.table}{file.variant} has no such cell: make the table again")
    if cell["value"] is None:
        raise _NotTestedError(f"{row}: {cell['status'].removeprefix('not run (').removesuffix(')')}")
    return cell


def _carried(claim: Claim, cell: dict[str, Any], factor: float) -> _Test:
    """Return the test that a cell carries, if it is the one that the claim needs."""
    if cell["p"] is None or claim.right.value is None:
        raise _NotTestedError(f"{claim.left.table} does not test {cell['metric']} against that")
    against = cell["value"] - cell["diff"]
    if abs(against - claim.right.value) > 1e-9:
        raise _NotTestedError(f"{claim.left.table} tests {cell['metric']} against {against:g}")
    low, high = (bound / factor for bound in cell["diff_ci95"])
    found = Difference(cell["diff"] / factor, low, high, cell["p"])
    pair = (f"{cell['row']}/{cell['column']}", f"{against:g}")
    return _Test(claim, pair, found, (cell["value"] / factor, against / factor), cell["n"], _fallen(cell))


def _fallen(*cells: dict[str, Any]) -> str:
    rows: Sequence[str] = [cell["row"] for cell in cells if cell["status"] == "fallback"]
    return f"most questions fell back: {', '.join(rows)}" if rows else ""
