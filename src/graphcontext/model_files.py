"""What a folder of a model must hold: checked before anything is loaded, naming the file that is missing."""

from __future__ import annotations

import json
from pathlib import Path

from graphcontext.errors import InputError
from graphcontext.hashes import changed_file

WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # in the order in which transformers looks for them
TOKENIZERS = (  # any one of these sets of files is a tokenizer
    ("tokenizer.json",),
    ("vocab.txt",),
    ("tokenizer.model",),
    ("sentencepiece.bpe.model",),
    ("spiece.model",),
    ("vocab.json", "merges.txt"),
    ("tekken.json",),
)
READ_BESIDE = (  # an encoder's, where it has them, beside its weights and its tokenizer
    *("config.json", "sentence_bert_config.json"),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)
ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")  # in the order in which peft looks for them
SPACY_FILES = ("meta.json", "tokenizer", "vocab/strings.json")  # beside config.cfg, in every saved pipeline


def verify_folder(path: Path) -> None:
    """Check that a model folder is whole: a config, every weight shard that its index names, its pooling's config.

    A folder with ``modules.json`` (sentence-transformers) may keep its transformer in a folder of its own; one
    with ``config.cfg`` is a spaCy pipeline.

    Raises:
        InputError: naming the file that is missing.
    """
    if (path / "config.cfg").is_file():
        for name in SPACY_FILES:
            if not (path / name).is_file():
                raise InputError(f"spaCy pipeline {path} lacks {name}")
        return
    modules = path / "modules.json"
    steps = steps_of(modules) if modules.is_file() else {}
    transformer = path / steps.get("Transformer", "")
    if not (transformer / "config.json").is_file():
        raise InputError(f"model folder {transformer} lacks config.json")
    _verify_weights(transformer)
    if "Pooling" in steps and not (path / steps["Pooling"] / "config.json").is_file():
        raise InputError(f"model folder {path} lacks {steps['Pooling']}/config.json, which modules.json names")


def verify_tokenizer(folder: Path) -> None:
    """Check that ``folder`` holds a tokenizer: without its files, transformers makes up one without any words.

    Raises:
        InputError: naming the files that are missing.
    """
    if any(all((folder / name).is_file() for name in names) for names in TOKENIZERS):
        return
    raise InputError(f"model folder {folder} lacks its tokenizer (tokenizer.json, or vocab.txt, or tokenizer.model)")


def steps_of(modules: Path) -> dict[str, str]:
    """Return kind → folder of each step that a sentence-transformers ``modules.json`` names."""
    try:
        return {step["type"].rpartition(".")[2]: step["path"] for step in json.loads(modules.read_text())}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"model folder {modules.parent}: modules.json is damaged: it lists no steps") from error


def _verify_weights(folder: Path) -> None:
    """Check the first form of weights that transformers would load from ``folder``."""
    for name in WEIGHTS:
        index = folder / f"{name}.index.json"
        if index.is_file():
            verify_shards(folder, index)
            return
        if (folder / name).is_file():
            return
    if not any(file.is_file() for file in folder.glob("*.gguf")):
        raise InputError(f"model folder {folder} lacks weights (model.safetensors)")


def verify_shards(folder: Path, index: Path) -> None:
    """Check that ``folder`` holds every file that its index of weights names."""
    try:
        shards = set(json.loads(index.read_text())["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"model folder {folder}: {index.name} is damaged: it has no weight_map") from error
    for shard in sorted(shards):
        if not (folder / shard).is_file():
            raise InputError(f"model folder {folder} lacks {shard}, which {index.name} names")


def verify_stored(folder: Path, where: str) -> None:
    """Hold what ``graphcontext train`` has put into a folder against its ``done.json``; another's is not looked at.

    Curves and the config, which nothing is computed from, may be changed or away.

    Args:
        folder: of an adapter, a model or an encoder.
        where: the key that names it, for the message.

    Raises:
        InputError: a file is not what was stored, or the training trained nothing.
    """
    if not (folder / "done.json").is_file():
        return
    mend = "train it again, or take a sound copy"
    try:
        done = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{where}: done.json is not what was stored; {mend}") from error
    if not isinstance(done, dict) or done.get("stage") != "adapter" or not isinstance(done.get("files"), dict):
        return
    if (name := changed_file(folder, done["files"])) is not None:
        raise InputError(f"{where}: {name} is not what was stored; {mend}")
    if (done.get("facts") or {}).get("kind") == "none":
        raise InputError(f"{where}: this training trained nothing (adapter=none): {where.partition('=')[0]}=null")
