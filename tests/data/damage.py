"""Random damage to the rows and bytes of small dumps, and what must stay true of what is read from them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

Row = dict[str, str]
BAD_IDS = ("", "abc", "1.5", "-3", "９", "1e3", "9" * 40, " 7", "1_0", "0x1f", "NaN", "None")
BAD_DATES = (
    "",
    "yesterday",
    "2019-13-45T00:00:00",
    "2019-02-30",
    "20190501",
    "2019-W18-3",
    "99999-01-01",
    "0000-01-01",
)
BODIES = (
    "",
    "<p>" + "word " * 300_000 + "</p>",
    "<div>" * 5_000 + "deep" + "</div>" * 5_000,
    "<p>unclosed <a href='x\">quote</a> &nosuch; &#0; &amp;amp; &lt;</p>" + "<" * 500,
    "<!-- never closed <p>gone</p>",
    '"quoted" \'twice\' <p title="a\'b">&quot;in "it"</p>',
    "<script>" + "x" * 100,
    "\u2028\u0085é\U0001f600 <pre>\n\n\n</pre>",
)


@dataclass
class Broken:
    """A dump to be damaged.

    Args:
        rows: attributes of each row of ``Posts.xml``.
        thread_of: the thread that each row belongs to.
        touched: ids of the threads that a damage may have altered; the others must stay as they were.
        mends: what is done to the bytes at last.
        names: of the damages, for messages.
        links: ``PostLinks.xml``.
        suffix: of ``Posts.xml``.
    """

    rows: list[Row]
    thread_of: list[str]
    touched: set[str] = field(default_factory=set)
    mends: list[Callable[[bytes], bytes]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    links: str | None = None
    suffix: str = ""

    def touch(self, n: int) -> Row:
        self.touched.add(self.thread_of[n])
        return self.rows[n]


def base(n: int, first_year: int = 2019) -> Broken:
    """``n`` threads of question and accepted answer, every other one with a second answer."""
    rows: list[Row] = []
    owners: list[str] = []
    for k in range(n):
        number = 10 * k + 1
        date = f"{first_year + 2 * (k >= n // 2)}-{1 + k % 12:02d}-{1 + k % 28:02d}T10:00:00.000"
        body = f"<p>How is it dône on server {number}? I tried all that I know about <b>topic {number}</b> here.</p>"
        asked = {"Id": str(number), "PostTypeId": "1", "AcceptedAnswerId": str(number + 1), "CreationDate": date}
        asked |= {"Score": "3", "Body": body, "OwnerUserId": "7", "Title": f"Topic {number}", "Tags": "|linux|"}
        rows.append(asked)
        for m in range(1, 2 + k % 2):
            said = f"<p>Answer {number + m}: edit the file, then reload the service and look at its log.</p>"
            rows.append({"Id": str(number + m), "PostTypeId": "2", "ParentId": str(number), "Score": "2", "Body": said})
        owners += [str(number)] * (2 + k % 2)
    return Broken(rows, owners)


# -- damages of rows -----------------------------------------------------------------------------


def drop_attribute(dump: Broken, rng: random.Random) -> None:
    row = dump.touch(rng.randrange(len(dump.rows)))
    if row:
        del row[rng.choice(sorted(row))]


def bad_value(dump: Broken, rng: random.Random) -> None:
    row = dump.touch(rng.randrange(len(dump.rows)))
    keys = [k for k in row if k.endswith("Id") or k == "Score"]
    if keys:
        row[rng.choice(keys)] = rng.choice(BAD_IDS)


def bad_date(dump: Broken, rng: random.Random) -> None:
    row = dump.touch(rng.randrange(len(dump.rows)))
    if "CreationDate" in row:
        row["CreationDate"] = rng.choice(BAD_DATES)


def strange_body(dump: Broken, rng: random.Random) -> None:
    row = dump.touch(rng.randrange(len(dump.rows)))
    row[rng.choice(("Body", "Title"))] = rng.choice(BODIES)


def doubled_row(dump: Broken, rng: random.Random) -> None:
    n = rng.randrange(len(dump.rows))
    at = rng.randrange(len(dump.rows) + 1)
    dump.rows.insert(at, dict(dump.touch(n)))
    dump.thread_of.insert(at, dump.thread_of[n])


def lost_row(dump: Broken, rng: random.Random) -> None:
    n = rng.randrange(len(dump.rows))
    dump.touch(n)
    del dump.rows[n], dump.thread_of[n]


def swapped_value(dump: Broken, rng: random.Random) -> None:
    """Give a row another row's value: ids that point elsewhere, kinds that are others."""
    a, b = rng.randrange(len(dump.rows)), rng.randrange(len(dump.rows))
    key = rng.choice(("Id", "ParentId", "AcceptedAnswerId", "PostTypeId", "Title"))
    if key in dump.rows[b]:
        dump.touch(b)
        dump.touch(a)[key] = dump.rows[b][key]


def shuffled_rows(dump: Broken, rng: random.Random) -> None:
    order = rng.sample(range(len(dump.rows)), len(dump.rows))
    dump.rows = [dump.rows[n] for n in order]
    dump.thread_of = [dump.thread_of[n] for n in order]


def bad_links(dump: Broken, rng: random.Random) -> None:
    ids = [row["Id"] for row in dump.rows if "Id" in row]
    a, b = (rng.choice([*ids, *BAD_IDS]) for _ in range(2))
    attributes = f'PostId={quoteattr(a)} RelatedPostId={quoteattr(b)} LinkTypeId="{rng.choice("13")}"'
    dump.links = f"<postlinks><row {attributes} />{rng.choice(('</postlinks>', '', '<x/>'))}"
    owner = {row.get("Id"): of for row, of in zip(dump.rows, dump.thread_of)}
    dump.touched |= {owner[i] for i in (a, b) if i in owner}


# -- damages of bytes ----------------------------------------------------------------------------


def _line(dump: Broken, rng: random.Random, change: Callable[[bytes], bytes]) -> None:
    """Change the line of a row, wherever other damages have moved it to; line n + 3 of the file holds row n."""
    row = dump.touch(rng.randrange(len(dump.rows)))

    def mend(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        at = next((n + 2 for n, other in enumerate(dump.rows) if other is row), len(lines))
        if at < len(lines):
            lines[at] = change(lines[at])
        return b"\n".join(lines)

    dump.mends.append(mend)


def cut(dump: Broken, rng: random.Random) -> None:
    share = rng.random()
    dump.mends.append(lambda raw: raw[: int(share * len(raw))])


def flipped_byte(dump: Broken, rng: random.Random) -> None:
    share, byte = rng.random(), rng.choice([0, 9, 34, 38, 39, 60, 62, 65, 128, 255])
    _line(dump, rng, lambda line: line[: int(share * len(line))] + bytes([byte]) + line[int(share * len(line)) + 1 :])


def lost_bytes(dump: Broken, rng: random.Random) -> None:
    start, length = rng.random(), rng.randrange(1, 60)
    _line(dump, rng, lambda line: line[: int(start * len(line))] + line[int(start * len(line)) + length :])


def garbage(dump: Broken, rng: random.Random) -> None:
    what = rng.choice(
        [b"\0", b"garbage", b"\xff\xfe", b"&nosuch;", b"<x>", b"</posts>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>"]
    )
    _line(dump, rng, lambda line: what + line)


def wrong_encoding(dump: Broken, rng: random.Random) -> None:
    codec = rng.choice(("latin-1", "utf-16", "utf-16-le", "cp037", "utf-8-sig", "cp1251"))
    dump.mends.append(lambda raw: raw.decode("utf-8", "replace").encode(codec, "xmlcharrefreplace"))


def crlf(dump: Broken, rng: random.Random) -> None:
    dump.mends.append(lambda raw: raw.replace(b"\n", b"\r\n"))


def zipped(dump: Broken, rng: random.Random) -> None:
    dump.suffix, share = ".gz", rng.choice((1.0, 1.0, rng.random()))
    dump.mends.append(lambda raw: (packed := gzip.compress(raw))[: int(share * len(packed))])


ROWS = (
    drop_attribute,
    bad_value,
    bad_date,
    strange_body,
    doubled_row,
    lost_row,
    swapped_value,
    shuffled_rows,
    bad_links,
)
BYTES = (cut, flipped_byte, lost_bytes, garbage, wrong_encoding, crlf, zipped)


def damaged(seed: int) -> Broken:
    """Return the dump of a seed, with one to three damages."""
    rng = random.Random(seed)
    dump = base(44 if rng.random() < 0.1 else rng.randrange(5, 12))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        damage = rng.choice(ROWS if rng.random() < 0.6 else BYTES)
        damage(dump, rng)
        dump.names.append(damage.__name__)
    return dump


def write(dump: Broken, folder: Path) -> bytes:
    """Write the dump's files and return the bytes of ``Posts.xml`` before it was packed."""
    lines = ["  <row " + " ".join(f"{k}={quoteattr(v)}" for k, v in row.items()) + " />" for row in dump.rows]
    raw = "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<posts>", *lines, "</posts>", ""]).encode()
    plain = raw
    for mend in dump.mends:
        raw = mend(raw)
        plain = raw if raw[:2] != b"\x1f\x8b" else plain
    folder.mkdir(parents=True)
    (folder / f"Posts.xml{dump.suffix}").write_bytes(raw)
    if dump.links is not None:
        (folder / "PostLinks.xml").write_text(dump.links, encoding="utf-8")
    return plain
