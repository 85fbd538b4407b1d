"""Finding a dump's files: folders, single files, and archives that try to write elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import py7zr
import pytest
from dumps import thread, write

from graphcontext.data import archive as archives
from graphcontext.data.archive import check_member, check_sha1, discard, dump_files, source_files
from graphcontext.data.dump import read_dump
from graphcontext.errors import InputError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "home"))


def packed(path, **members):
    with py7zr.SevenZipFile(path, "w") as opened:
        for name, content in members.items():
            opened.writestr(content, name.replace("__", "/").replace("_xml", ".xml"))
    return path


def test_the_archive_of_archive_org_is_read_like_the_folder(tmp_path):
    folder = write(tmp_path / "folder", thread(1, "a", "2019-01-01"), links="", tags="")
    members = {name.name.replace(".xml", "_xml"): name.read_bytes() for name in folder.iterdir()}
    archive = packed(tmp_path / "some.site.7z", **members, Users_xml=b"<users/>")
    files = dump_files(archive)
    assert read_dump(files) == read_dump(dump_files(folder))
    assert files.posts.parent.parent == tmp_path / "home" / "downloads"
    assert not (files.posts.parent / "Users.xml").exists()  # only what is needed


def test_an_archive_is_extracted_once(tmp_path):
    posts = (write(tmp_path / "folder", thread(1, "a", "2019-01-01")) / "Posts.xml").read_bytes()
    archive = packed(tmp_path / "a.7z", dump__Posts_xml=posts)
    first = dump_files(archive).posts
    written = first.stat().st_mtime_ns
    assert dump_files(archive).posts == first
    assert first.stat().st_mtime_ns == written
    assert [entry.name for entry in first.parent.parent.iterdir()] == [first.parent.name]  # no scratch left


def test_a_folder_with_one_archive_is_that_archive(tmp_path):
    archive = packed(tmp_path / "askubuntu.com.7z", Posts_xml=b"<posts/>")
    assert source_files(tmp_path) == [archive]


def test_the_file_itself_may_be_named_and_its_neighbours_are_found(tmp_path):
    folder = write(tmp_path / "d", thread(1, "a", "2019-01-01"), links="")
    assert dump_files(folder / "Posts.xml") == dump_files(folder)
    plain = (folder / "Posts.xml").read_bytes()
    (folder / "Posts.xml").unlink()
    (folder / "Posts.xml.gz").write_bytes(gzip.compress(plain))
    assert dump_files(folder).posts.name == "Posts.xml.gz"


@pytest.mark.parametrize("name", ["../Posts.xml", "a/../../x", "/etc/passwd", "C:\\x", "..\\x", "\\\\host\\x"])
def test_a_member_that_points_outside_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="points outside; nothing was extracted"):
        check_member(tmp_path / "a.7z", name)


def test_a_member_with_dots_inside_its_name_is_fine(tmp_path):
    check_member(tmp_path / "a.7z", "dump..2023/Posts.xml")


def test_an_archive_with_dot_dot_writes_nothing(tmp_path, monkeypatch):
    # py7zr's writer refuses such names, so its check is put aside for the writing only
    with monkeypatch.context() as patch:
        patch.setattr(py7zr.py7zr, "check_archive_path", lambda name: True)
        patch.setattr(py7zr.SevenZipFile, "_sanitize_archive_arcname", lambda self, name: name)
        archive = tmp_path / "evil.7z"
        with py7zr.SevenZipFile(archive, "w") as opened:
            opened.writestr(b"<posts/>", "Posts.xml")
            opened.writestr(b"evil", "../evil.txt")
    with pytest.raises(InputError, match=r"evil.7z is unsafe: member '\.\./evil\.txt' points outside"):
        dump_files(archive)
    assert not list(tmp_path.rglob("evil.txt"))
    assert not list(tmp_path.rglob("Posts.xml"))


def test_a_link_in_an_archive_is_refused(tmp_path):
    os.symlink("/etc/hostname", tmp_path / "link")
    archive = tmp_path / "link.7z"
    with py7zr.SevenZipFile(archive, "w") as opened:
        opened.write(tmp_path / "link", "Posts.xml")
    with pytest.raises(InputError, match=r"member 'Posts.xml' is a link"):
        dump_files(archive)


@pytest.mark.parametrize("keep", [0, 20, 60])
def test_a_cut_archive_is_refused(tmp_path, keep):
    whole = packed(tmp_path / "a.7z", Posts_xml=b"<posts/>" * 50).read_bytes()
    cut = tmp_path / "cut.7z"
    cut.write_bytes(whole[:keep])
    with pytest.raises(InputError, match="damaged or no 7z file"):
        dump_files(cut)


def test_an_archive_with_flipped_bytes_is_refused(tmp_path):
    archive = packed(tmp_path / "a.7z", Posts_xml=os.urandom(4000))
    damaged = bytearray(archive.read_bytes())
    damaged[1000:1010] = b"\0" * 10
    archive.write_bytes(damaged)
    with pytest.raises(InputError, match="damaged or no 7z file"):
        dump_files(archive)
    assert not list((tmp_path / "home" / "downloads").iterdir())


def test_an_archive_of_two_sites_is_refused(tmp_path):
    path = tmp_path / "two.7z"
    with py7zr.SevenZipFile(path, "w") as archive:
        for site in "ab":
            archive.writestr("<posts/>", f"{site}/Posts.xml")
    with pytest.raises(InputError, match=r"two\.7z holds Posts\.xml twice: a/Posts\.xml and b/Posts\.xml"):
        dump_files(path)


def test_an_archive_without_posts_lists_what_it_holds(tmp_path):
    with pytest.raises(InputError, match=r"holds no Posts.xml: found Users.xml"):
        dump_files(packed(tmp_path / "a.7z", Users_xml=b"<users/>"))


def test_a_wrong_folder_lists_what_is_there_and_what_is_expected(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"found notes.txt; expected Posts.xml, Posts.xml.gz or one .7z"):
        source_files(tmp_path)
    write(tmp_path / "site.example", "")
    with pytest.raises(InputError, match=r"did you mean .*site\.example\?"):
        source_files(tmp_path)


def test_an_empty_folder_and_a_foreign_file_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="found nothing"):
        source_files(tmp_path / "empty")
    (tmp_path / "Users.xml").write_text("")
    with pytest.raises(InputError, match=r"got a file Users.xml, expected Posts.xml"):
        source_files(tmp_path / "Users.xml")


def test_the_sum_of_an_archive_is_compared(tmp_path):
    path = tmp_path / "a.7z"
    path.write_bytes(b"abc")
    check_sha1(path, hashlib.sha1(b"abc").hexdigest().upper())
    with pytest.raises(InputError, match=r"SHA-1 a9993e36.*expected 00; fetch it again"):
        check_sha1(path, "00")


def test_a_device_is_no_dump():
    with pytest.raises(InputError, match="/dev/null is no dump: it is neither a file nor a folder"):
        source_files(Path("/dev/null"))


def test_a_listed_name_that_is_no_text_can_be_printed(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("")
    with pytest.raises(InputError, match="found caf\N{REPLACEMENT CHARACTER}") as caught:
        source_files(tmp_path)
    assert str(caught.value).encode()


@pytest.mark.parametrize("names_too", [False, True])
def test_an_archive_with_a_password_is_refused(tmp_path, names_too):
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w", password="x", header_encryption=names_too) as opened:
        opened.writestr(b"<posts/>", "Posts.xml")
    with pytest.raises(InputError, match=r"a\.7z is locked with a password; unpack it yourself"):
        dump_files(tmp_path / "a.7z")
    assert not list((tmp_path / "home" / "downloads").iterdir())


def test_an_archive_that_would_unpack_to_far_more_than_a_dump_is_refused(tmp_path, monkeypatch):
    archive = packed(tmp_path / "bomb.7z", Posts_xml=b" " * 2_000_000)
    assert dump_files(archive).posts.stat().st_size == 2_000_000  # small: whatever its ratio, it does no harm
    monkeypatch.setattr(archives, "LEAST_REFUSED", 1_000_000)
    other = packed(tmp_path / "other.7z", Posts_xml=b"\n" * 2_000_000)
    with pytest.raises(InputError, match=r"other\.7z is unsafe: 0\.0 MB would unpack to 2 MB .*nothing was extracted"):
        dump_files(other)
    assert [entry.name[:4] for entry in (tmp_path / "home" / "downloads").iterdir()] == ["bomb"]


def test_what_was_extracted_is_discarded_and_a_folder_is_not(tmp_path):
    archive = packed(tmp_path / "a.7z", Posts_xml=b"<posts/>")
    files = dump_files(archive)
    discard(archive)
    assert not files.posts.exists()
    assert archive.exists()
    folder = write(tmp_path / "folder", "")
    discard(folder)
    assert (folder / "Posts.xml").exists()
