"""Triples that REBEL writes: relation extraction as translation from a text to its triples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Passage
from graphcontext.enhance.llm_extractor import Parsed
from graphcontext.enhance.triples import Extraction, Triple
from graphcontext.errors import InputError
from graphcontext.generate.extractive import sentences
from graphcontext.generate.seq2seq_model import Decoding, Output, check_placement, load


class RebelExtractor:
    """Translates a passage into triples by REBEL (Huguet Cabot and Navigli 2021; GraphContextGen §4.3: τ_init).

    REBEL is a BART that writes ``<triplet> head <subj> tail <obj> relation``, further tails of one head by another
    ``<subj>``. Parts that lack one of the three are dropped and counted in ``reason``; of an output that
    ``max_target_length`` cut, the last part is one of them. An output without any whole triple is ``failed``
    (parse, or truncated), one without text is ``empty``.

    A passage is read in windows: runs of whole sentences that fit ``max_source_length``. REBEL was trained on
    paragraphs of Wikipedia; how the paper gave it a longer context is not said. A sentence that is longer than a
    window is cut, and counted.

    Differs from the paper: the best beam is read, where the model card prints the three best.

    Args:
        model: local folder or hub name of a BART with REBEL's markers.
        revision: hub commit; null for a folder.
        max_source_length: tokens of a window, special ones included.
        max_target_length: most tokens of an output.
        beams: 1 is greedy.
        length_penalty: 0 compares beams by their plain log-probability.
        max_triples: per passage, the first ones.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        batch_size: windows per forward pass (execution).
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` (execution).

    Raises:
        InputError: a value that is not allowed; at the first call, a model without REBEL's markers.
        MissingWeightsError: at the first call, the model is not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})
    name: ClassVar[str] = "rebel"
    repeatable: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        max_source_length: int = 256,
        max_target_length: int = 256,
        beams: int = 3,
        length_penalty: float = 0.0,
        max_triples: int = 16,
        dtype: str = "float32",
        batch_size: int = 16,
        device: str = "auto",
    ) -> None:
        if max_triples < 1:
            raise InputError(f"extractor.max_triples={max_triples}; allowed: 1 and more")
        check_placement("extractor", dtype, device, batch_size)
        self.decoding = Decoding(max_source_length, max_target_length, beams, length_penalty)
        self.model, self.revision, self.max_triples = model, revision, max_triples
        self.dtype, self.batch_size, self.device = dtype, batch_size, device

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the model's files."""
        return models.identity(config["model"], config.get("revision"))

    def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """Return the triples of each passage's ``context_text``, by index."""
        loaded = load(self.model, self.revision, self.dtype, self.device)
        unknown = [m for m in ("<triplet>", "<subj>", "<obj>") if m not in loaded.tokenizer.get_vocab()]
        if unknown:
            raise InputError(f"extractor.model={self.model} is no REBEL: its tokenizer has no {unknown[0]}")
        longest = self.decoding.max_source_length
        parts = [windows(p.context_text, loaded.count, longest) for p in passages]
        texts = [window for windowed in parts for window in windowed]
        outputs = iter(loaded.write(texts, self.decoding, self.batch_size, keep_markers=True))
        return [self._extraction([next(outputs) for _ in windowed]) for windowed in parts]

    def _extraction(self, outputs: Sequence[Output]) -> Extraction:
        parsed = [parse_rebel(output.text, output.finish == "length") for output in outputs]
        triples = tuple(dict.fromkeys(t for p in parsed for t in p.triples))[: self.max_triples]
        faults = [p.fault for p in parsed if p.fault]
        if faults and not triples:
            return Extraction(status="failed", reason=faults[0])
        n_malformed, n_cut = sum(p.n_malformed for p in parsed), sum(output.n_cut > 0 for output in outputs)
        reasons = [f"{n_malformed} malformed"] if n_malformed else []
        reasons += [f"{n_cut} of {len(outputs)} windows cut"] if n_cut else []
        return Extraction(triples, "ok" if triples else "empty", "; ".join(reasons) or None)


def windows(text: str, count: Callable[[str], int], longest: int) -> list[str]:
    """Return the text as runs of whole sentences of at most ``longest`` tokens; a longer sentence stands alone.

    >>> windows("One two. Three. Four five six.", lambda text: len(text.split()), 3)
    ['One two. Three.', 'Four five six.']
    """
    found: list[str] = []
    for sentence in sentences(text):
        joined = f"{found[-1]} {sentence}" if found else sentence
        if found and count(joined) <= longest:
            found[-1] = joined
        else:
            found.append(sentence)
    return found


def parse_rebel(text: str, was_cut: bool = False) -> Parsed:
    """Read REBEL's triples; ``was_cut`` says that the token limit ended the text, so that its last part is not whole.

    >>> parse_rebel("<triplet> ss <subj> sockets <obj> lists <subj> Linux <obj> platform").triples
    (('ss', 'lists', 'sockets'), ('ss', 'platform', 'Linux'))
    """
    before, *blocks = text.split("<triplet>")
    parts: list[Triple | None] = [None] if before.strip() else []
    for block in blocks:
        head, *facts = block.split("<subj>")
        parts += [_triple(head, fact) for fact in facts] or [None]
    if was_cut and parts:
        parts[-1] = None
    triples = tuple(part for part in parts if part is not None)
    n_malformed = len(parts) - len(triples)
    if n_malformed and not triples:
        shown = " ".join(text.split())[:60]
        return Parsed((), n_malformed, f'{"truncated" if was_cut else "parse"}: no triple in "{shown}"')
    return Parsed(triples, n_malformed)


def _triple(head: str, fact: str) -> Triple | None:
    """Return (head, relation, tail) of ``tail <obj> relation``, or None where one of the three is missing."""
    tail, *relations = fact.split("<obj>")
    parts = [" ".join(part.split()) for part in (head, *relations, tail)]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None
