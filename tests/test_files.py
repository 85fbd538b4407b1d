"""Atomic writes, append-only JSONL and canonical hashes."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.errors import RunError
from graphcontext.files import append_lines, canonical, digest, jsonl, open_up, put_below, read_lines, write_atomic

FULL = OSError(errno.ENOSPC, "No space left on device")


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": ["ä", None]}) == '{"a":["ä",null],"b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_write_atomic_makes_folders_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.json"
    write_atomic(path, "one")
    write_atomic(path, b"two")
    assert path.read_text() == "two"
    assert [p.name for p in path.parent.iterdir()] == ["file.json"]


def test_a_full_disk_leaves_the_old_file_and_nothing_half_written(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "metrics.json"
    write_atomic(path, "old")

    def full(*_: object) -> None:
        raise FULL

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(RunError, match=r"disk full while writing .*metrics\.json"):
                write_atomic(path, "new")
        assert path.read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == ["metrics.json"]


@pytest.mark.parametrize("mask", [0o022, 0o007, 0o077])
def test_files_of_a_library_get_the_modes_that_the_umask_says(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with put_below(tmp_path / "model") as made:
            (made / "1_Pooling").mkdir()
            for name in ("model.safetensors", "1_Pooling/config.json"):
                handle, temporary = tempfile.mkstemp(dir=made)  # lets its owner read it alone
                os.close(handle)
                os.replace(temporary, made / name)
        scratch = Path(tempfile.mkdtemp(dir=tmp_path))
        open_up(scratch)
    finally:
        os.umask(before)
    files = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "model").rglob("*.*")}
    assert files == {"model.safetensors": 0o666 & ~mask, "config.json": 0o666 & ~mask}
    assert scratch.stat().st_mode & 0o777 == 0o777 & ~mask and not list(scratch.iterdir())


@contextlib.contextmanager
def files_up_to(size: int):
    """Let the system refuse what makes a file larger: errno 27, as a full disk is 28."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_fault_of_the_disk_within_torch_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = {"a": torch.zeros(100_000)}
    with files_up_to(100_000), pytest.raises(RunError, match=r"^cannot write .*last\.pt: File too large$"):
        write_atomic(tmp_path / "last.pt", lambda stream: torch.save(state, stream))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_by_whatever_name_a_library_gives_it(tmp_path: Path) -> None:
    class Raw:
        def write(self, stream) -> None:
            stream.raw.fault = FULL
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")

    with pytest.raises(RunError, match=r"disk full while writing .*last\.pt; free some space"):
        write_atomic(tmp_path / "last.pt", Raw().write)
    with pytest.raises(ZeroDivisionError):  # no fault of the disk
        write_atomic(tmp_path / "last.pt", lambda stream: 1 / 0)
    with pytest.raises(RuntimeError, match="own"), put_below(tmp_path):
        raise RuntimeError("own")
    with pytest.raises(RunError, match="disk full while writing"), put_below(tmp_path):
        raise ValueError("I/O error: No space left on device (os error 28)")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_the_disk_within_safetensors_is_one_line_too(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    refused = pytest.raises(RunError, match=r"^cannot write .*: File too large$")
    with files_up_to(100_000), refused, put_below(tmp_path) as made:
        save_file({"a": torch.zeros(100_000)}, made / "model.safetensors")
    assert list(tmp_path.iterdir()) == []
    with put_below(tmp_path) as made:
        (made / "inner").mkdir()
        (made / "inner" / "x").write_text("1")
        (made / "y").write_text("2")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "x", "y"]


def test_a_full_disk_while_appending_is_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with pytest.raises(RunError, match="disk full while writing /dev/full") as raised:
        append_lines(Path("/dev/full"), [{"id": "1"}])
    assert "\n" not in str(raised.value)


def test_an_unwritable_place_is_one_line_too(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(RunError, match=r"cannot write .*x\.json: Permission denied"):
        write_atomic(tmp_path / "x.json", "new")


def test_lines_come_back_in_order_and_a_missing_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert read_lines(path) == []
    append_lines(path, [])
    assert not path.exists()
    append_lines(path, [{"id": "a"}, {"id": "ü\u2028x"}])
    append_lines(path, [{"id": "c"}])
    assert [row["id"] for row in read_lines(path)] == ["a", "ü\u2028x", "c"]
    assert path.read_text() == jsonl([{"id": "a"}, {"id": "ü\u2028x"}, {"id": "c"}])


@given(cut=st.integers(min_value=0, max_value=46))
def test_t11_a_line_cut_anywhere_is_left_out_and_the_next_starts_afresh(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        whole = jsonl([{"id": "a", "t": "é"}, {"id": "b", "t": "ß"}]).encode()  # 2 lines of 23 bytes
        assert len(whole) == 46
        path.write_bytes(whole[: 46 - cut])
        before = [row["id"] for row in read_lines(path)]
        # Without its newline a line is still whole: it is cut from the second byte on.
        assert before == ["a", "b"][: 2 - (cut > 1) - (cut > 24)]
        append_lines(path, [{"id": "c"}])
        assert [row["id"] for row in read_lines(path)] == [*before, "c"]


def test_what_is_not_an_object_is_not_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'[1]\n3\n"x"\nnull\n\xff\xfe\n\0\0\0\n{"id": "a"}\n')
    assert read_lines(path) == [{"id": "a"}]


def test_a_file_where_a_folder_is_wanted_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*store/score/x: "):
        write_atomic(tmp_path / "store" / "score" / "x", "text")
