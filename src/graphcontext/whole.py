"""Load a tokenizer or a transformer from a model folder; what is not whole is refused, never filled in at random."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError
from graphcontext.model_files import verify_shards, verify_tokenizer

_MEND = "fetch it again"


def load_tokenizer(folder: Path, **options: Any) -> Any:
    """Return the tokenizer in ``folder``, or in a GGUF file.

    Raises:
        InputError: its files are missing or cannot be read.
    """
    from transformers import AutoTokenizer

    if folder.is_file():
        return _gguf_tokenizer(folder)
    verify_tokenizer(folder)
    _check_json(folder, "config.json", "tokenizer_config.json", "tokenizer.json")
    try:
        with _quiet():
            return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **options)
    except Exception as error:  # tokenizers raises nothing narrower
        raise InputError(f"model folder {folder}: the tokenizer cannot be read: {_line(error)}; {_MEND}") from error


def _gguf_tokenizer(file: Path) -> Any:
    from graphcontext.generate.gguf import read_tokenizer

    try:
        with _quiet():
            return read_tokenizer(file)
    except Exception as error:  # transformers raises many kinds for what it cannot read
        mend = "count with tokenizer=words, or name another by tokenizer.model"
        raise InputError(f"{file}: the tokenizer cannot be read: {_line(error)}; {mend}") from error


def load_config(folder: Path) -> Any:
    """Return the transformers config in ``folder``.

    Raises:
        InputError: it cannot be read, or is of a kind of model that transformers does not know.
    """
    from transformers import AutoConfig

    _check_json(folder, "config.json")
    try:
        return AutoConfig.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"model folder {folder}: config.json cannot be read: {_line(error)}; {_MEND}") from error


def load_weights(kind: str, folder: Path, ignored: tuple[str, ...] = (), **arguments: Any) -> Any:
    """Return the model in ``folder``, every weight of which was read from there.

    Args:
        kind: the class of transformers that reads it, such as ``AutoModel``.
        folder: a model folder.
        ignored: parts of names of weights that may be missing, since nothing depends on them.
        arguments: of ``from_pretrained``.

    Raises:
        InputError: a file is damaged, or a weight is missing or has another shape: it would be random.
    """
    import pickle

    import transformers
    from safetensors import SafetensorError

    _check_json(folder, "config.json")
    check_safetensors(folder)
    read = getattr(transformers, kind).from_pretrained
    faults = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, ImportError, RuntimeError)
    try:
        with _quiet():
            arguments |= {"local_files_only": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
            model, report = read(str(folder), **arguments)
    except (*faults, SafetensorError, pickle.UnpicklingError) as error:
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError:  # of the device: memory, a fault
            raise
        raise InputError(f"model folder {folder} cannot be loaded: {_line(error)}") from error
    changed = {str(key[0] if isinstance(key, tuple) else key) for key in report.get("mismatched_keys") or ()}
    missing = {key for key in report["missing_keys"] if not any(part in key for part in ignored)}
    for keys, what in ((missing, "are missing"), (changed, "have another shape than config.json says")):
        if keys:
            shown = ", ".join(sorted(keys)[:3]) + (", …" if len(keys) > 3 else "")
            other = f"the folder is damaged ({_MEND}) or holds another kind of model"
            raise InputError(f"model folder {folder}: {len(keys)} weights {what}, such as {shown}; {other}")
    return model


def check_safetensors(folder: Path) -> None:
    """Read the headers of the ``.safetensors`` files that transformers would load, which states their length.

    Raises:
        InputError: a file is cut, is none, or holds no weight.
    """
    from safetensors import SafetensorError, safe_open

    for file in _safetensors(folder):
        try:
            with safe_open(str(file), "np") as opened:
                empty = not opened.keys()
        except (OSError, ValueError, SafetensorError) as error:
            raise InputError(f"model folder {folder}: {file.name} is damaged ({_line(error)}); {_MEND}") from error
        if empty:
            raise InputError(f"model folder {folder}: {file.name} holds no weights; {_MEND}")


def _safetensors(folder: Path) -> list[Path]:
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    verify_shards(folder, index)
    return [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]


def _check_json(folder: Path, *names: str) -> None:
    for name in names:
        if not (folder / name).is_file():
            continue
        try:
            found = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"model folder {folder}: {name} is damaged ({_line(error)}); {_MEND}") from error
        if not isinstance(found, dict):
            raise InputError(f"model folder {folder}: {name} is damaged (no JSON object); {_MEND}")


def _line(error: BaseException) -> str:
    """Return the first line of what went wrong."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' own bars and reports off the terminal: what they say is raised as one line."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.disable_progress_bar()  # one bar per stage, and that is the stage's own
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
