"""The hash of a file, of a folder: by names and bytes."""

from __future__ import annotations

from pathlib import Path

from graphcontext.hashes import hash_folder


def test_the_hash_of_a_folder_covers_names_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    one = hash_folder(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert hash_folder(tmp_path) != one
