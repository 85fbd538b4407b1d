"""Find the XML files of a Stack Exchange dump: in a folder, beside ``Posts.xml``, or in a ``.7z``."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.hashes import hash_file

LARGEST_RATIO, LEAST_REFUSED = 200, 100 * 10**6  # a real dump unpacks to 5–8 times its archive; bytes
PARTS = ("Posts.xml", "PostLinks.xml", "Tags.xml")
EXPECTED = "Posts.xml, Posts.xml.gz or one .7z archive (PostLinks.xml and Tags.xml beside it are optional)"


@dataclass(frozen=True)
class DumpFiles:
    """The files of one dump; ``links`` and ``tags`` are None where the dump has none."""

    posts: Path
    links: Path | None = None
    tags: Path | None = None


def source_files(path: Path) -> list[Path]:
    """Return the files that hold the dump at ``path``, as stored: one archive, or the XML files of a folder.

    Args:
        path: a folder, its ``Posts.xml`` (or ``Posts.xml.gz``), or a ``.7z`` archive.

    Raises:
        InputError: it holds no dump; the message lists what was found there and what is expected.
    """
    if path.is_file():
        if path.suffix.lower() == ".7z":
            return [path]
        if path.name.lower() not in ("posts.xml", "posts.xml.gz"):
            raise InputError(f"{path} is no dump: got a file {path.name}, expected {EXPECTED}")
        beside = [_part(path.parent, name) for name in PARTS[1:]]
        return [path, *(file for file in beside if file)]
    if not path.is_dir():
        raise InputError(f"{path} is no dump: it is neither a file nor a folder; expected {EXPECTED}")
    found = [_part(path, name) for name in PARTS]
    if found[0]:
        return [file for file in found if file]
    archives = sorted(file for file in path.iterdir() if file.suffix.lower() == ".7z" and file.is_file())
    if len(archives) == 1:
        return archives
    raise InputError(f"{path} holds no dump: {_listing(path)}; expected {EXPECTED}")


def dump_files(path: Path) -> DumpFiles:
    """Return the readable files of the dump at ``path``; an archive is extracted into the cache once."""
    files = source_files(path)
    if files[0].suffix.lower() == ".7z":
        folder = extract(files[0])
        files = [file for name in PARTS if (file := _part(folder, name))]
    by_part = {file.name.lower().removesuffix(".gz"): file for file in files}
    return DumpFiles(by_part["posts.xml"], by_part.get("postlinks.xml"), by_part.get("tags.xml"))


def check_member(archive: Path, name: str) -> None:
    """Refuse a member name that could be written outside the folder it is extracted into.

    Raises:
        InputError: an absolute name, a drive, or a ``..`` part (with either kind of slash).
    """
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or ".." in parts or (len(plain) > 1 and plain[1] == ":"):
        raise InputError(f"archive {archive} is unsafe: member {name!r} points outside; nothing was extracted")


def check_sha1(archive: Path, expected: str) -> None:
    """Compare an archive with the SHA-1 that archive.org lists for it.

    Raises:
        InputError: another file; both sums are named.
    """
    with archive.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha1").hexdigest()
    if found != expected.lower():
        raise InputError(f"{archive} is another file: SHA-1 {found}, expected {expected}; fetch it again")


def extract(archive: Path) -> Path:
    """Extract the needed members of a ``.7z`` into the downloads cache, once, and return their folder.

    Raises:
        InputError: it is no archive, is damaged or locked, lacks ``Posts.xml``, has an unsafe member or link, or would
            unpack to far more than a dump does (nothing is extracted then).
    """
    import py7zr
    from py7zr.exceptions import ArchiveError, PasswordRequired

    folder = _extracted(archive)
    if (folder / "Posts.xml").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        with py7zr.SevenZipFile(archive) as opened:
            targets = _targets(archive, opened.list())
            _check_size(archive, sum(member.uncompressed for member in opened.list()))
            opened.extract(path=scratch, targets=list(targets.values()))
        for part, name in targets.items():
            member = scratch / name
            if member.is_symlink() or not member.is_file():
                raise InputError(f"archive {archive} is unsafe: member {name!r} is a link or no plain file")
            member.rename(scratch / part)
        _publish(scratch, folder)
    except PasswordRequired as fault:
        mend = "unpack it yourself and name the folder in dataset.path"
        raise InputError(f"archive {archive} is locked with a password; {mend}") from fault
    except (ArchiveError, lzma.LZMAError, EOFError, ValueError) as fault:
        reason = str(fault) or type(fault).__name__
        raise InputError(f"archive {archive} is damaged or no 7z file ({reason}); fetch it again") from fault
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def discard(path: Path) -> None:
    """Remove what was extracted from the archive at ``path``, as its content is refused; nothing else is touched."""
    source = source_files(path)[0]
    if source.suffix.lower() == ".7z":
        shutil.rmtree(_extracted(source), ignore_errors=True)


def _extracted(archive: Path) -> Path:
    return models.home() / "downloads" / f"{archive.stem}-{hash_file(archive)[:12]}"


def _check_size(archive: Path, unpacked: int) -> None:
    packed = archive.stat().st_size
    if unpacked > LEAST_REFUSED and unpacked > LARGEST_RATIO * packed:
        sizes = f"{packed / 1e6:.1f} MB would unpack to {unpacked / 1e6:.0f} MB"
        raise InputError(
            f"archive {archive} is unsafe: {sizes} ({unpacked // packed} times, at most {LARGEST_RATIO}); "
            "nothing was extracted"
        )


def _publish(scratch: Path, folder: Path) -> None:
    """Rename the finished folder into place; another process that was first wins."""
    try:
        os.rename(scratch, folder)
    except OSError:
        if not (folder / "Posts.xml").is_file():
            raise


def _targets(archive: Path, members: list) -> dict[str, str]:
    """Return part name → member name, after every member of the archive was checked."""
    wanted = {part.lower(): part for part in PARTS}
    targets: dict[str, str] = {}
    for member in members:
        check_member(archive, member.filename)
        part = wanted.get(PurePosixPath(member.filename).name.lower())
        if part and not member.is_directory:
            if member.is_symlink:
                raise InputError(f"archive {archive} is unsafe: member {member.filename!r} is a link")
            if part in targets:
                two = f"{targets[part]} and {member.filename}"
                raise InputError(f"archive {archive} holds {part} twice: {two}; unpack it and name one folder")
            targets[part] = member.filename
    if "Posts.xml" not in targets:
        names = [member.filename for member in members]
        raise InputError(f"archive {archive} holds no Posts.xml: found {_short(names)}")
    return targets


def _part(folder: Path, name: str) -> Path | None:
    """Return the file ``name`` or ``name.gz`` of a folder, in any case of letters; plain is preferred."""
    by_lower = {file.name.lower(): file for file in folder.iterdir() if file.is_file()}
    return by_lower.get(name.lower()) or by_lower.get(f"{name.lower()}.gz")


def _listing(folder: Path) -> str:
    """Say what lies in a folder, and which of its sub-folders hold a dump."""
    entries = sorted(folder.iterdir())
    dumps = [entry for entry in entries if entry.is_dir() and _part(entry, "Posts.xml")]
    hint = f"; did you mean {dumps[0]}?" if dumps else ""
    return f"found {_short([os.fsencode(entry.name).decode(errors='replace') for entry in entries])}{hint}"


def _short(names: list[str], most: int = 8) -> str:
    if not names:
        return "nothing"
    more = f", … ({len(names)} entries)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
