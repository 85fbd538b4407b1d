"""What is computed of each text, once: kept in memory, and in the store for every later run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphcontext.data.records import content_id
from graphcontext.files import append_lines, digest, read_lines


class ByText:
    """Computes a JSON value of each distinct text once.

    Corpora of single questions hold the same passages again and again, and a sweep builds their graphs twenty times.
    Where a store is bound, values lie in ``store/NAME/KEY.jsonl``, one line a text: what a kill leaves undone is done
    by the next run, and other corpora of the same pool compute only what is new.

    Args:
        name: folder of the store.
        facts: returns everything besides the text that the values depend on.
        compute: texts → a value each, None where there is none to keep (a service gave no answer).
        batch: texts that are computed between two writes.
    """

    def __init__(
        self,
        name: str,
        facts: Callable[[], Any],
        compute: Callable[[list[str]], Sequence[Any]],
        batch: int = 1024,
    ) -> None:
        self.name, self.facts, self.compute, self.batch = name, facts, compute, batch
        self._known: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}  # as read from the file, by the hash of the text
        self._root: Path | None = None
        self._file: Path | None = None

    def bind(self, workspace: Any) -> None:
        """Keep values in the workspace's store from now on."""
        self._root, self._file = workspace.store.root, None

    def of(self, texts: Sequence[str]) -> list[Any]:
        """Return the value of each text, by index."""
        missing = [text for text in sorted(set(texts)) if text not in self._known]
        if missing and self._root is not None:
            missing = self._from_store(missing)
        self._compute(missing)
        return [self._known.get(text) for text in texts]

    def _from_store(self, texts: list[str]) -> list[str]:
        """Take what the store holds; return the other texts."""
        if self._file is None and self._root is not None:
            self._file = self._root / self.name / f"{digest(self.facts())[:16]}.jsonl"
            self._kept = {row["text"]: row["value"] for row in read_lines(self._file) if {"text", "value"} <= set(row)}
        found = {text: self._kept[name] for text in texts if (name := content_id(text)) in self._kept}
        self._known |= found
        return [text for text in texts if text not in found]

    def _compute(self, texts: list[str]) -> None:
        from tqdm import tqdm

        hidden = None if len(texts) > self.batch else True
        with tqdm(total=len(texts), desc=self.name, unit="text", disable=hidden, leave=False) as bar:
            for start in range(0, len(texts), self.batch):
                batch = texts[start : start + self.batch]
                found = {t: v for t, v in zip(batch, self.compute(batch), strict=True) if v is not None}
                self._known |= found
                if self._file is not None:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    append_lines(self._file, [{"text": content_id(t), "value": v} for t, v in found.items()])
                bar.update(len(batch))
