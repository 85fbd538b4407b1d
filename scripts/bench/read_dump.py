"""Time and memory of reading a Stack Exchange dump, ours beside ``ElementTree.iterparse`` (the papers' way).

    python scripts/bench/read_dump.py --megabytes 500

Prints a markdown table: MB per CPU second (median of three), peak resident memory above the imports, and the
ratio. Every way runs in its own process on one generated ``Posts.xml``; three of four threads have no accepted
answer, so that the memory of kept records can be told from the reader's own. ``iterparse`` takes the rows and
makes nothing of them; ``iterparse, to records`` makes the records that ``read_dump`` makes. ``load`` also turns
HTML into text, filters, splits and guards.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

WAYS = ("plain read", "iterparse", "iterparse, siblings cleared", "iterparse, to records", "rows", "read_dump", "load")
TIMES = 3


def generate(path: Path, megabytes: float, accepted_every: int = 4) -> None:
    """Write a ``Posts.xml`` of about this size: one question, two answers, again and again."""
    words = [f"w{n * 7919 % 4001}" for n in range(4001)]
    size = int(megabytes * 1e6)
    with path.open("w", encoding="utf-8") as stream:
        stream.write('<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
        number = 1
        while stream.tell() < size:
            stream.write("".join(_thread(number + 3 * step, words, accepted_every) for step in range(200)))
            number += 600
        stream.write("</posts>\n")


def _thread(number: int, words: list[str], accepted_every: int) -> str:
    date = f"{2019 + number // 3 % 5}-0{1 + number // 3 % 9}-11T10:00:00.000"
    accepted = f'AcceptedAnswerId="{number + 1}" ' if number // 3 % accepted_every == 0 else ""
    body, answer = (quoteattr(_html(number + at, words)).replace("\n", "&#xA;") for at in (0, 1))
    common = f'Score="3" OwnerUserId="{number % 999}" LastActivityDate="{date}" ContentLicense="CC BY-SA 4.0"'
    title = f"{_words(number, 9, words)} case {number}"
    rows = [
        f'  <row Id="{number}" PostTypeId="1" {accepted}CreationDate="{date}" ViewCount="9" Body={body} '
        f'{common} Title="{title}" Tags="|linux|bash|" AnswerCount="2" CommentCount="0" />\n'
    ]
    rows += [
        f'  <row Id="{number + at}" PostTypeId="2" ParentId="{number}" CreationDate="{date}" Body={answer} '
        f'{common} CommentCount="0" />\n'
        for at in (1, 2)
    ]
    return "".join(rows)


def _html(number: int, words: list[str]) -> str:
    code = "<pre><code>ls -l | sort &gt; x\n</code></pre>"
    return f"<p>{_words(number, 90, words)}</p>\n{code}\n<p>{_words(number * 3, 60, words)}</p>\n"


def _words(start: int, n: int, words: list[str]) -> str:
    return " ".join(words[(start * 31 + at * at) % len(words)] for at in range(n))


def measure(way: str, path: Path) -> dict[str, float]:
    """Run one way in this process and return its CPU seconds, peak memory and kept characters in MB."""
    import xml.etree.ElementTree as ElementTree

    import lxml.etree  # noqa: F401  imported before the memory is read, like the others
    import yaml

    from graphcontext.data import dump, xml_rows
    from graphcontext.data.archive import DumpFiles
    from graphcontext.data.stackexchange import StackExchange

    before, start, kept = _memory("VmRSS"), time.process_time(), 0
    if way == "plain read":
        with path.open("rb") as stream:
            while stream.read(xml_rows.CHUNK):
                pass
    elif way in ("iterparse", "iterparse, siblings cleared"):
        events = ElementTree.iterparse(path, events=("start", "end"))
        root = next(events)[1]
        for event, element in events:
            if event == "end" and element.tag == "row":
                element.attrib.get("Body")
                element.clear()
                if "cleared" in way:
                    root.clear()
    elif way == "iterparse, to records":
        dump.rows = element_rows
        kept = characters(dump.read_dump(DumpFiles(path)))
    elif way == "rows":
        for row in xml_rows.rows(path, "posts"):
            row.get("Body")
    elif way == "read_dump":
        kept = characters(dump.read_dump(DumpFiles(path)))
    else:
        config = yaml.safe_load((Path(__file__).parents[2] / "conf/dataset/stackexchange.yaml").read_text())
        config.pop("_target_")
        loaded = StackExchange(**{**config, "path": str(path), "limit": None, "side": "test"}).load()
        for corpus in loaded.corpora.values():
            for passage in corpus.passages:
                kept += len(passage.match_text) + len(passage.context_text)
                kept += sum(len(answer.text) for answer in passage.answers)
        kept += sum(len(question.text) + len(question.references[0]) for question in loaded.questions)
    peak = _memory("VmHWM")
    return {"seconds": time.process_time() - start, "peak_mb": peak - before, "kept_mb": kept / 1e6}


def element_rows(path: Path, root: str) -> Iterator[dict[str, str]]:
    """The rows of a file by ``ElementTree.iterparse``."""
    import xml.etree.ElementTree as ElementTree

    events = ElementTree.iterparse(path, events=("start", "end"))
    top = next(events)[1]
    for event, element in events:
        if event == "end" and element.tag == "row":
            yield element.attrib
            top.clear()


def characters(read: Any) -> int:
    """How much text the threads hold."""
    return sum(len(t.title) + len(t.html) + sum(len(a.html) for a in t.answers) for t in read.threads.values())


def _memory(field: str) -> float:
    """Return ``VmRSS`` (now) or ``VmHWM`` (peak) of this process in MB; Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of reading a Stack Exchange dump.")
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--way", choices=WAYS, help="measure one way on --file, print JSON")
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(measure(arguments.way, arguments.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Posts.xml"
        generate(path, arguments.megabytes)
        size = path.stat().st_size / 1e6
        results = {}
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--file", str(path)]
            runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(TIMES)]
            results[way] = sorted((json.loads(run.stdout) for run in runs), key=lambda r: r["seconds"])[TIMES // 2]
    base = results["iterparse"]["seconds"]
    print(f"Reading a Posts.xml of {size:.0f} MB\n")
    print("| way | MB per CPU second | peak MB | kept text MB | against iterparse |")
    print("|---|---|---|---|---|")
    for way, r in results.items():
        rate, ratio = size / r["seconds"], base / r["seconds"]
        print(f"| {way} | {rate:.0f} | {r['peak_mb']:.0f} | {r['kept_mb']:.0f} | {ratio:.2f}× |")


if __name__ == "__main__":
    main()
