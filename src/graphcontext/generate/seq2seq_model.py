"""A loaded encoder–decoder model (T5, BART, mBART): tokenizer, placement, batched greedy or beam decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphcontext import models
from graphcontext.errors import InputError, RunError, did_you_mean
from graphcontext.generate.adapters import load_tuned, template_digest
from graphcontext.generate.causal_model import cut_at_stop, device_map, release
from graphcontext.whole import load_config, load_tokenizer

DTYPES = ("float32", "bfloat16", "float16")
_LOADED: dict[tuple[Any, ...], Seq2SeqModel] = {}


@dataclass(frozen=True)
class Decoding:
    """How an output is searched for: argmax over outputs y of log p(y | x) / |y|^length_penalty, by beams.

    Args:
        max_source_length: most tokens of an input, special ones included; what is beyond is cut and counted.
        max_target_length: most new tokens of an output.
        beams: 1 is greedy.
        length_penalty: read only where there are several beams; 0 compares plain log-probabilities, above 0 favours
            long outputs.
        repetition_penalty: ≥ 1; divides the logit of a token that the output holds already. 1 is off.

    Raises:
        InputError: a value that is not allowed.
    """

    max_source_length: int
    max_target_length: int
    beams: int = 1
    length_penalty: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.max_source_length < 3:
            raise InputError(f"max_source_length={self.max_source_length}; allowed: 3 and more tokens")
        if self.max_target_length < 1 or self.beams < 1:
            got = f"max_target_length={self.max_target_length}, beams={self.beams}"
            raise InputError(f"{got}; allowed: 1 and more")
        if self.repetition_penalty < 1:
            raise InputError(f"repetition_penalty={self.repetition_penalty}; allowed: 1 and more")


@dataclass(frozen=True)
class Output:
    """What the model wrote; ``finish`` is ``length`` where ``max_target_length`` cut it.

    ``n_cut`` counts the input's tokens that ``max_source_length`` left out, ``n_tokens`` the new ones.
    """

    text: str
    finish: Literal["stop", "length"]
    n_tokens: int
    n_cut: int = 0


def check_placement(where: str, dtype: str, device: str, batch_size: int) -> None:
    """Check the arguments that a component passes on to :func:`load` and :meth:`Seq2SeqModel.write`.

    Raises:
        InputError: naming ``where`` and what is allowed.
    """
    if dtype not in DTYPES:
        raise InputError(f"{where}.dtype={dtype}{did_you_mean(str(dtype), DTYPES)}")
    if device not in ("auto", "cpu", "cuda") and not str(device).startswith("cuda:"):
        raise InputError(f"{where}.device={device}; allowed: auto, cpu, cuda, cuda:N")
    if batch_size < 1:
        raise InputError(f"{where}.batch_size={batch_size}; allowed: 1 and more")


def load(model: str, revision: str | None, dtype: str, device: str, adapter: str | None = None) -> Seq2SeqModel:
    """Return the model of this name, revision and adapter; a process loads it once until :func:`free`."""
    name = (model, revision, dtype, device, adapter)
    if name not in _LOADED:
        folder = models.resolve(model, revision)
        _LOADED[name] = Seq2SeqModel(folder, dtype, device, adapter, (model, revision))
    return _LOADED[name]


def free() -> None:
    """Forget every loaded model and give its memory back."""
    release(_LOADED)


class Seq2SeqModel:
    """Tokenizer at once, weights at the first output.

    Args:
        folder: a model folder.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; in a process group each rank loads on its own GPU.
        adapter: folder of a LoRA adapter, or of a tuned model whose weights take the place of the folder's.
        name: the model's name and revision, by which an adapter knows its base; null for a folder.

    Raises:
        InputError: the folder's files are damaged, or it holds a model without encoder and decoder.
    """

    def __init__(
        self,
        folder: Path,
        dtype: str,
        device: str,
        adapter: str | None = None,
        name: tuple[str, str | None] | None = None,
    ) -> None:
        self.folder, self.dtype, self.device = folder, dtype, device
        self.adapter, self.name = adapter, name or (str(folder), None)
        self.weights: Any = None
        config = load_config(folder)
        if not getattr(config, "is_encoder_decoder", False):
            kind = config.model_type
            raise InputError(f"model folder {folder} holds a {kind}; expected one with encoder and decoder")
        self.window: int | None = getattr(config, "max_position_embeddings", None)  # T5 has relative positions
        self.tokenizer = load_tokenizer(folder)

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, the special ones around an input included."""
        return len(self.ids(text))

    def load_weights(self) -> None:
        """Load the weights and the adapter unless they are there.

        Raises:
            InputError: no such device, weights that are damaged, missing or of another kind of model, an adapter
                that does not fit.
        """
        if self.weights is not None:
            return
        import torch

        on_gpu = self.device != "cpu" and torch.cuda.is_available()
        if self.device.startswith("cuda") and not on_gpu:
            raise InputError(f"device={self.device}, but torch sees no GPU here; allowed: auto, cpu")
        arguments = {"dtype": getattr(torch, self.dtype), "device_map": device_map(self.device, on_gpu)}
        base = models.identity(*self.name) if self.adapter else {}
        tuning = (self.adapter, base, template_digest(self.tokenizer))
        self.weights = load_tuned("AutoModelForSeq2SeqLM", self.folder, *tuning, **arguments).eval()

    def write(
        self, texts: Sequence[str], decoding: Decoding, batch_size: int, keep_markers: bool = False
    ) -> list[Output]:
        """Return the output to each text, by index.

        Batches are a fixed partition of the distinct texts sorted by length. A batch is padded to its longest input,
        which can change a logit in its last bits and so, rarely, an output.

        Args:
            texts: inputs, the empty one included.
            decoding: lengths and search.
            batch_size: inputs per forward pass.
            keep_markers: leave special tokens in the text but those that begin, end and pad it: REBEL marks its
                triples by them.

        Raises:
            InputError: more tokens are asked for than the model has positions.
            RunError: the batch does not fit into memory.
        """
        self._check_window(decoding)
        if not texts:
            return []
        self.load_weights()
        whole = {text: self.ids(text) for text in dict.fromkeys(texts)}
        order = sorted(whole, key=lambda text: (-len(whole[text]), text))
        written: dict[str, Output] = {}
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            sources = [self.cut(text, whole[text], decoding.max_source_length) for text in batch]
            for text, source, (ids, finish) in zip(batch, sources, self._generate(sources, decoding), strict=True):
                n_cut = len(whole[text]) - len(source)
                written[text] = Output(self._text(ids, keep_markers), finish, len(ids), n_cut)
        return [written[text] for text in texts]

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a source, the special ones around it included."""
        return list(self.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def cut(self, text: str, ids: list[int], length: int) -> list[int]:
        """Return at most ``length`` tokens; the special ones at the end stay."""
        if len(ids) <= length:
            return ids
        return list(self.tokenizer(text, truncation=True, max_length=length)["input_ids"])

    def _check_window(self, decoding: Decoding) -> None:
        for name in ("max_source_length", "max_target_length"):
            asked = getattr(decoding, name)
            if self.window is not None and asked > self.window:
                raise InputError(f"{name}={asked}, but {self.folder.name} has {self.window} positions")

    def _generate(
        self, sources: Sequence[Sequence[int]], decoding: Decoding
    ) -> list[tuple[list[int], Literal["stop", "length"]]]:
        """Return the new ids of each source, without the final end-of-sequence, and why they end."""
        import torch

        longest = max(1, *(len(s) for s in sources))
        pad = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*s, *[pad] * (longest - len(s))] for s in sources])  # (n, longest)
        mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sources])
        device = self.weights.get_input_embeddings().weight.device
        search = {"length_penalty": decoding.length_penalty} if decoding.beams > 1 else {}
        try:
            with torch.inference_mode():
                out = self.weights.generate(
                    input_ids=ids.to(device),
                    attention_mask=mask.to(device),
                    max_new_tokens=decoding.max_target_length,
                    max_length=None,
                    num_beams=decoding.beams,
                    do_sample=False,
                    repetition_penalty=decoding.repetition_penalty,
                    forced_eos_token_id=None,  # a cut output is to be seen as one
                    **search,
                )
        except RuntimeError as error:
            if "out of memory" not in str(error) and "can't allocate memory" not in str(error):
                raise
            size = f"{len(sources)} inputs of up to {longest} tokens, {decoding.beams} beams"
            raise RunError(f"{self.folder.name}: out of memory for {size}; lower batch_size") from error
        return [cut_at_stop(row, self._stops()) for row in out[:, 1:].tolist()]  # the first one starts the decoder

    def _stops(self) -> list[int]:
        configured = self.weights.generation_config.eos_token_id
        listed = configured if isinstance(configured, list) else [configured]
        return sorted({s for s in [*listed, self.tokenizer.eos_token_id] if s is not None})

    def _text(self, ids: Sequence[int], keep_markers: bool) -> str:
        around = {self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id}
        shown = [i for i in ids if i not in around]
        decode = self.tokenizer.decode
        return decode(shown, skip_special_tokens=not keep_markers, clean_up_tokenization_spaces=False).strip()
