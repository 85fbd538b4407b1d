"""Sentence embeddings by any sentence-transformers model, through plain transformers."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from graphcontext import models
from graphcontext.component import fingerprint
from graphcontext.errors import InputError, RunError, did_you_mean
from graphcontext.retrieve.encoder_model import DTYPES, POOLINGS, EncoderModel, load

if TYPE_CHECKING:
    from graphcontext.store import Artefact, Workspace

log = logging.getLogger(__name__)

_NO_POOL: tuple[dict[str, int], np.ndarray] = ({}, np.zeros((0, 1), np.float32))
SHARD = 1024  # texts per shard file: the unit of resume
CACHED_FROM = 65  # texts of one call that are worth an artefact: fewer are encoded again in a second or two


class SentenceEncoder:
    r"""Embeds texts as unit vectors (GraphContextGen §4.2: bge-large-en; T4: sentence-BERT).

    .. math:: e = h / \|h\|, \quad h = \text{mean or first of the last hidden states}

    Args:
        model: embedded name (``minilm``), folder in sentence-transformers or plain transformers form, or
            hub name.
        revision: hub commit; null means the one that ``prepare`` fetched, recorded by its hash.
        weights: folder of a trained encoder that takes the model's place, a training (``encoder.weights=EXPERIMENT``),
            or null for the model itself.
        pooling: ``mean`` over tokens, ``cls`` for the first, or ``auto``: what the model's folder says.
        max_length: tokens a text is cut to; null means what the model's folder says.
        query_prefix: put before a question, such as bge's instruction; the paper embeds both sides alike:
            none.
        passage_prefix: put before a passage.
        normalize: scale rows to length 1.
        dtype: ``float32``, ``bfloat16`` or ``float16`` weights; the embeddings are float32.
        batch_size: texts per forward pass (execution).
        device: ``auto``, ``cpu`` or ``cuda`` (execution).
        plan: figures for planning a training where the model is not on this machine (execution).

    Raises:
        InputError: a value that is not allowed, a folder that lacks a file or pools in another way.
        MissingWeightsError: the model is not on this machine, or not trained yet.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "device", "plan"})
    neutral: ClassVar[dict[str, Any]] = {"weights": None}
    trainable: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        pooling: str = "auto",
        max_length: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        normalize: bool = True,
        dtype: str = "float32",
        batch_size: int = 32,
        device: str = "auto",
        weights: Any = None,
        plan: dict[str, Any] | None = None,
    ):
        for name, value, allowed in [
            ("pooling", pooling, ("auto", *POOLINGS)),
            ("dtype", dtype, DTYPES),
        ]:
            if value not in allowed:
                raise InputError(f"encoder.{name}={value}{did_you_mean(str(value), allowed)}")
        if batch_size < 1:
            raise InputError(f"encoder.batch_size={batch_size}: allowed is at least 1")
        if max_length is not None and max_length < 3:
            raise InputError(f"encoder.max_length={max_length}: allowed is at least 3, or null for the model's own")
        if weights is not None and not isinstance(weights, str) and not hasattr(type(weights), "folder"):
            raise InputError(f"encoder.weights={weights!r}; allowed: a folder, a training experiment, or null")
        self.model, self.revision, self.weights = model, revision, weights or None
        self.pooling, self.max_length = pooling, max_length
        self.prefixes = {"query": query_prefix or "", "passage": passage_prefix or ""}
        self.normalize, self.dtype = normalize, dtype
        self.batch_size, self.device, self.plan = batch_size, device, plan
        self.n_encoded = 0  # texts that went through the model, not the store
        self._pools: dict[str, tuple[dict[str, int], np.ndarray]] = {}  # kind → row of each text, vectors
        self._workspace: Workspace | None = None

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the weights, for the key of what depends on them; of a training its key."""
        facts: dict[str, Any] = dict(models.identity(config["model"], config.get("revision")))
        trained = config.get("weights")
        if trained:
            is_folder = isinstance(trained, str)
            facts["trained"] = models.trained_identity(trained) if is_folder else fingerprint(trained)
        return facts

    def bind(self, workspace: Workspace) -> None:
        """Keep embeddings in the workspace's store from now on."""
        self._workspace = workspace

    def encode(self, texts: Sequence[str], kind: str = "passage") -> np.ndarray:
        """Return the embeddings (n_texts, dim) float32, in the order of ``texts``; memory-mapped where bound.

        Args:
            texts: any texts, the empty one included.
            kind: ``passage`` or ``query``: which prefix is put before them.
        """
        if kind not in self.prefixes:
            raise InputError(f"encode: kind={kind}{did_you_mean(kind, self.prefixes)}")
        rows, pooled = self._pools.get(kind, _NO_POOL)
        if texts and all(text in rows for text in texts):
            return pooled[[rows[text] for text in texts]]
        return self._encode([self.prefixes[kind] + text for text in texts])

    def pool(self, texts: Sequence[str], kind: str = "passage") -> None:
        """Encode distinct texts at once; :meth:`encode` takes their rows from there until another pool is made."""
        rows = {text: row for row, text in enumerate(texts)}
        if self._pools.get(kind, _NO_POOL)[0] != rows:
            self._pools[kind] = rows, self._encode([self.prefixes[kind] + text for text in rows])

    def _encode(self, prefixed: list[str]) -> np.ndarray:
        if self._workspace is None or len(prefixed) < CACHED_FROM:
            vectors = [self._encode_shard(shard) for _, shard in _shards(prefixed)]
            return np.concatenate(vectors) if vectors else np.zeros((0, self._load().dim), np.float32)
        artefact = self._workspace.store.artefact("embeddings", self._key(prefixed))
        vectors = _finished(artefact, len(prefixed))
        if vectors is None:
            with artefact.lock():
                vectors = _finished(artefact, len(prefixed))
                if vectors is None:
                    (artefact.path / "done.json").unlink(missing_ok=True)
                    self._fill(artefact, prefixed)
                    vectors = np.load(artefact.path / "vectors.npy", mmap_mode="r")
        return vectors

    def _key(self, prefixed: list[str]) -> str:
        """Return the cache key: the weights, how they are used, and the texts with their prefix."""
        from graphcontext.files import digest

        return digest(
            {
                "version": self.version,
                **models.identity(self.model, self.revision),
                "pooling": self.pooling,
                "max_length": self.max_length,
                "normalize": self.normalize,
                "dtype": self.dtype,
                "texts": digest(prefixed),
                **({} if self.weights is None else {"trained": models.trained_identity(str(self._folder()))}),
            }
        )

    def _fill(self, artefact: Artefact, prefixed: list[str]) -> None:
        """Encode the shards that are missing, join all into ``vectors.npy``, finish."""
        from tqdm import tqdm

        from graphcontext.files import write_atomic

        target = artefact.path / "vectors.npy"
        joined = _vectors(target, len(prefixed))
        if joined is not None:  # by a process that was killed before it could say so
            artefact.finish({"n": len(prefixed), "dim": int(joined.shape[1])})
            return
        target.unlink(missing_ok=True)
        paths = []
        hidden = None if len(prefixed) > SHARD else True
        with tqdm(total=len(prefixed), desc="embeddings", unit="text", disable=hidden, leave=False) as bar:
            for number, shard in _shards(prefixed):
                path = artefact.path / f"shard-{number:05d}.npy"
                if _vectors(path, len(shard)) is None:
                    stream = io.BytesIO()
                    np.save(stream, self._encode_shard(shard))
                    write_atomic(path, stream.getvalue())
                paths.append(path)
                bar.update(len(shard))
        dim = _join(paths, target, len(prefixed))
        for path in paths:
            path.unlink()
        artefact.finish({"n": len(prefixed), "dim": dim})

    def _encode_shard(self, texts: list[str]) -> np.ndarray:
        """Encode up to one shard in batches of similar length; the partition depends on the texts alone."""
        model = self._load()
        tokens = model.tokenise(texts)
        order = np.argsort([len(t) for t in tokens], kind="stable")
        vectors = np.empty((len(texts), model.dim), np.float32)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            vectors[batch] = model.embed([tokens[i] for i in batch])
        self.n_encoded += len(texts)
        if not np.isfinite(vectors).all():
            if self.dtype == "float32":
                damaged = "embeddings are not finite, so the weights are damaged: fetch the model again"
                raise InputError(f"encoder {self.model}: {damaged}")
            raise RunError(
                f"encoder {self.model}: embeddings are not finite in {self.dtype}; try encoder.dtype=float32"
            )
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1)
        return vectors

    def _load(self) -> EncoderModel:
        return load(self._folder(), self.pooling, self.max_length, self.dtype, self.device)

    def _folder(self) -> Path:
        """Return the folder of the model, or of what was trained from it."""
        if self.weights is None:
            return models.resolve(self.model, self.revision)
        if not isinstance(self.weights, str):
            return self.weights.folder
        return models.trained_folder(self.weights)


def warn_untrained(encoder: Any, where: str) -> None:
    """Say so where what needs an encoder that was trained on two hops is given one as it was published."""
    if isinstance(encoder, SentenceEncoder) and encoder.weights is None:
        log.warning("%s: %s was not trained on two hops, as the paper's is: encoder=mdr", where, encoder.model)


def _shards(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    for start in range(0, len(texts), SHARD):
        yield start // SHARD, texts[start : start + SHARD]


def _finished(artefact: Artefact, n: int) -> np.ndarray | None:
    """Return the embeddings of a finished artefact, None where it is not finished or not as it was left."""
    done = artefact.finished
    vectors = None if done is None else _vectors(artefact.path / "vectors.npy", n)
    return vectors if vectors is not None and vectors.shape[1] == done["facts"].get("dim") else None


def _vectors(path: Path, n: int) -> np.ndarray | None:
    """Return the (n, dim) float32 array of a file, memory-mapped; None where there is none of just this size."""
    try:
        found = np.load(path, mmap_mode="r")
        whole = isinstance(found, np.memmap) and found.offset + found.nbytes == path.stat().st_size
    except (OSError, ValueError, EOFError, SyntaxError):  # none, cut, or no array
        return None
    return found if whole and found.shape[:1] == (n,) and found.ndim == 2 and found.dtype == np.float32 else None


def _join(paths: list[Path], target: Path, n: int) -> int:
    """Write the shards as one array file, atomically, one shard in memory at a time; return its width."""
    from graphcontext.files import write_atomic

    dim = np.load(paths[0], mmap_mode="r").shape[1]

    def write(stream: BinaryIO) -> None:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (n, dim)})
        for path in paths:
            stream.write(np.load(path).astype("<f4").tobytes())

    write_atomic(target, write)
    return dim
