"""How many distinct configs were scored on a test set: each look at it makes the best of them look better.

One empty file per test set and config, ``store/test_use/<data set>/<config>``: two processes that record the
same config make one file, and nothing is ever counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphcontext.files import disk_error
from graphcontext.keys import Keys

FOLDER = "test_use"


def record(root: Path | str, config: dict[str, Any], keys: Keys) -> None:
    """Remember that a config was scored, if its questions are of a test set.

    A config counts once whatever its metrics and however many of the questions it was scored on; without a metric
    it was not scored.

    Args:
        root: the working folder, which holds ``store/``.
        config: resolved.
        keys: of its stages.
    """
    if config["dataset"].get("side", "test") != "test" or not keys.scores:
        return
    folder = _folder(root, keys.corpus)
    file = folder / _method(config)
    if file.exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise disk_error(error, file) from error


def count(root: Path | str, corpus_key: str) -> int:
    """Return how many distinct configs were scored on the test set ``corpus_key`` in this working folder."""
    folder = _folder(root, corpus_key)
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def sentence(root: Path | str, corpus_keys: Iterable[str]) -> str:
    """Return what stands under a table, empty where nothing was scored on these test sets."""
    counts = [count(root, key) for key in dict.fromkeys(corpus_keys)]
    if not any(counts):
        return ""
    shown = " + ".join(str(n) for n in counts if n)
    return f"test use: {shown} distinct configs were scored on this test set so far (choose on split=validation)"


def _folder(root: Path | str, corpus_key: str) -> Path:
    return Path(root) / "store" / FOLDER / corpus_key[:32]


def _method(config: dict[str, Any]) -> str:
    """Return what names the method: everything from the graph to the answers, not which questions were asked."""
    from graphcontext.component import fingerprint, needs_graph
    from graphcontext.files import digest

    stages = ["retriever", "enhancer", "packing", "generator"]
    if needs_graph(config["retriever"]):
        stages.insert(0, "graph")
    return digest([fingerprint(config[stage]) for stage in stages])[:32]
