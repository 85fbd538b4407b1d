"""A run's folder ``runs/<key12>/``: found by its key, read as it was written, never half there."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.data.records import Context, Prediction, Question, Ranking, from_json
from graphcontext.errors import InputError
from graphcontext.files import digest, write_atomic
from graphcontext.keys import Keys
from graphcontext.run_facts import describe

AGAIN = "give its command again, it is made anew from the store"


@dataclass(frozen=True)
class Run:
    """A finished run folder, read lazily.

    Args:
        path: the folder.
    """

    path: Path

    @property
    def metrics(self) -> dict[str, Any]:
        """The content of ``metrics.json``: n, n_failed, n_empty, n_truncated, metrics, facts."""
        return json.loads(self.read("metrics.json"))

    @property
    def config(self) -> dict[str, Any]:
        """The resolved config."""
        import yaml

        return yaml.safe_load(self.read("config.yaml"))

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was made with, and the hashes of its files.

        Raises:
            InputError: ``manifest.json`` is missing, or is not what the run wrote.
        """
        path = self.path / "manifest.json"
        try:
            found = json.loads(path.read_bytes())
            if found["sha256"] == digest({key: value for key, value in found.items() if key != "sha256"}):
                return found
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            raise InputError(f"{path} is missing or damaged: {AGAIN}") from error
        raise InputError(f"{path} is not what the run wrote: {AGAIN}")

    def read(self, name: str) -> bytes:
        """Return a file of the folder as the run wrote it.

        Raises:
            InputError: it is missing, or is not what the run wrote.
        """
        return self._checked(name, self.manifest["files"].get(name))

    def _checked(self, name: str, known: str | None) -> bytes:
        try:
            content = (self.path / name).read_bytes()
        except OSError as error:
            raise InputError(f"{self.path / name} is missing: {AGAIN}") from error
        if hashlib.sha256(content).hexdigest() != known:
            raise InputError(f"{self.path / name} is not what the run wrote: {AGAIN}")
        return content

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a JSONL file of the folder."""
        return [json.loads(line) for line in self.read(name).split(b"\n") if line]

    def is_whole(self) -> bool:
        """Tell whether every file of the folder is what the run wrote."""
        try:
            for name, known in self.manifest["files"].items():
                self._checked(name, known)
        except InputError:
            return False
        return True

    def summary(self) -> str:
        """Render the metrics with n, failed, empty and intervals, and what must stand under them."""
        done = self.metrics
        width = max([len(name) for name in done["metrics"]] or [0])
        counts = [f"n={done['n']}"] + [f"{k}={done['n_' + k]}" for k in ("failed", "empty", "truncated")]
        lines = ["  ".join(counts)]
        for name, metric in done["metrics"].items():
            low, high = metric["ci95"]
            of = f"  n={metric['n']}" if "n" in metric else ""  # a further column: of these items
            lines.append(f"{name:{width}}  {metric['value']:.4f}  [{low:.4f}, {high:.4f}]{of}  {metric['signature']}")
        return "\n".join([*lines, *describe(done["facts"], done["n"])])

    def questions(self) -> list[Question]:
        return [from_json(Question, row) for row in self.lines("questions.jsonl")]

    def rankings(self) -> list[Ranking]:
        return [from_json(Ranking, row) for row in self.lines("rankings.jsonl")]

    def contexts(self) -> list[Context]:
        return [from_json(Context, row) for row in self.lines("contexts.jsonl")]

    def predictions(self) -> list[Prediction]:
        return [from_json(Prediction, row) for row in self.lines("predictions.jsonl")]

    def scores(self) -> dict[str, dict[str, float]]:
        """Return item id → metric → value."""
        rows = self.lines("scores.jsonl")
        return {r["id"]: {k: v for k, v in r.items() if k not in ("id", "status", "reason")} for r in rows}

    def failed(self) -> set[str]:
        """Return the items whose scores say nothing: without an answer, or a metric gave none; they score 0."""
        return {row["id"] for row in self.lines("scores.jsonl") if row.get("status") == "failed"}


def run_path(root: Path | str, keys: Keys) -> Path:
    """Return the folder of a run: the first 12 hex digits of its key."""
    return Path(root) / "runs" / keys.run[:12]


def find(name: str, root: Path | str = ".") -> Run:
    """Find a run by its folder or by the beginning of its key.

    Raises:
        InputError: there is none, or several; the message lists what there is.
    """
    path = Path(os.path.expanduser(name))
    if (path / "metrics.json").is_file():
        return Run(path)
    folder = Path(root) / "runs"
    there = sorted(p.name for p in folder.glob("*") if (p / "metrics.json").is_file())
    hits = [n for n in there if n.startswith(path.name)] if path.name else []
    if len(hits) == 1:
        return Run(folder / hits[0])
    what = "several runs begin so" if hits else "no such run"
    listed = ", ".join((hits or there)[:8]) or "none yet: graphcontext run"
    raise InputError(f"{name}: {what} in {folder} ({listed})")


def write_folder(path: Path, files: dict[str, str], metrics: dict[str, Any], about: dict[str, Any]) -> None:
    """Write a run folder: the manifest ``about`` with the hash of each file, ``metrics.json`` last: then it is whole.

    The hashes stand in the manifest, since they differ between runs of equal results: calls have a time.
    """
    last = json.dumps(metrics, indent=1, ensure_ascii=False)
    texts = {**files, "metrics.json": last}
    about = {**about, "files": {name: hashlib.sha256(texts[name].encode()).hexdigest() for name in sorted(texts)}}
    about["sha256"] = digest({key: value for key, value in about.items() if key != "sha256"})
    files = files | {"manifest.json": json.dumps(about, indent=1, ensure_ascii=False), "metrics.json": last}
    for name, text in files.items():
        write_atomic(path / name, text)
