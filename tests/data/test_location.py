"""Where data is looked for."""

from __future__ import annotations

import pytest

from graphcontext.data.location import SHIPPED, data_path, data_root
from graphcontext.errors import InputError, MissingDataError


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(root))
    return root


def test_the_default_is_the_folder_named_like_the_data_set_then_the_others(root):
    (root / "other.7z").write_bytes(b"")
    assert data_path("site", None, ("other.7z",)) == root / "other.7z"
    (root / "site").mkdir()
    assert data_path("site", None, ("other.7z",)) == root / "site"


def test_a_typed_path_is_tried_as_it_is_then_below_the_root_then_in_the_own_folder(root, monkeypatch):
    (root / "site" / "x").mkdir(parents=True)
    assert data_path("site", "x") == root / "site" / "x"
    (root / "x").mkdir()
    assert data_path("site", "x") == root / "x"
    monkeypatch.chdir(root / "site")
    assert str(data_path("site", "x")) == "x"


def test_the_home_folder_is_expanded(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    (root / "dumps").mkdir()
    assert data_path("site", "~/dumps") == root / "dumps"
    monkeypatch.setenv("GRAPHCONTEXT_DATA", "~/dumps")
    assert data_root() == root / "dumps"


def test_shipped_data_is_found_without_any_setting(monkeypatch):
    monkeypatch.delenv("GRAPHCONTEXT_DATA", raising=False)
    assert data_path("cqa_sample") == SHIPPED / "cqa_sample"


def test_absent_data_says_where_it_looked_and_how_to_get_it(root):
    with pytest.raises(MissingDataError) as caught:
        data_path("site", None, ("a.7z",), "https://archive.example.org/a.7z")
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert f"looked at {root / 'site'}, {root / 'a.7z'}; fetch https://archive.example.org/a.7z" in message
    assert "GRAPHCONTEXT_DATA" in message
    assert "\n" not in message
    assert "sample" not in message


def test_a_typed_path_that_is_not_there_is_named_with_what_is_called_alike(root, monkeypatch):
    (root / "reports").mkdir()
    with pytest.raises(MissingDataError) as caught:
        data_path("folder", str(root / "reportz"))
    near = f"did you mean {root / 'reports'}?"
    assert str(caught.value) == f"dataset.path={root / 'reportz'}: no such file or folder; {near}"
    monkeypatch.chdir(root)
    with pytest.raises(MissingDataError) as caught:
        data_path("folder", "reportz", key="one_hop.path")
    looked = f"looked at reportz, {root / 'reportz'}, {root / 'folder' / 'reportz'}"
    assert str(caught.value) == f"one_hop.path=reportz: no such file or folder; did you mean reports?; {looked}"
    with pytest.raises(MissingDataError, match=r"nowhere/x: no such file or folder; fetch https://x\.org/a\.7z and"):
        data_path("site", str(root / "nowhere" / "x"), url="https://x.org/a.7z")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("x" * 5000, r"xxx'… \(5000 characters\): File name too long"),
        ("a\udcff", r"'a\\udcff': the name is no UTF-8 text"),
        ("a\ud800", r"'a\\ud800': the name is no UTF-8 text"),
        ("a\0b", r"'a\\x00b': embedded null byte"),
    ],
)
def test_a_path_that_no_file_can_have_is_one_short_line(root, path, reason):
    with pytest.raises(InputError, match=rf"dataset\.path=.*{reason}") as caught:
        data_path("site", path)
    assert len(str(caught.value).encode()) < 200  # and it can be printed


def test_a_user_who_is_not_here_has_no_home_folder(root, monkeypatch):
    with pytest.raises(MissingDataError, match=r"looked at ~nobody-here/x, "):
        data_path("site", "~nobody-here/x")
    monkeypatch.setenv("GRAPHCONTEXT_DATA", "~nobody-here/x")
    with pytest.raises(MissingDataError, match="no data: site"):
        data_path("site")
