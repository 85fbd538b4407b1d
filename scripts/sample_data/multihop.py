"""Write the data set multihop_sample from the documents and questions in multihop/*.yaml.

    python scripts/sample_data/multihop.py [FOLDER]     # default: where the package ships it

A document has a ``title``, ``sentences``, and where needed ``aliases`` (other names it goes by) and an ``id`` (if
another document has its title). A question has ``file`` (dev or train), ``type``, ``level``, ``question``, ``answer``
and ``supports``: pairs of id or title, and number of a sentence, in order of reasoning.

Each context holds the gold documents and others that share rare words with the question, in an order drawn by SEED and
the question. Equal input gives equal bytes. What is wrong in the input is told in one line.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
import sys
from collections import Counter
from pathlib import Path

import yaml

SOURCE = Path(__file__).parent / "multihop"
TARGET = Path(__file__).parents[2] / "src/graphcontext/data/sample/multihop_sample"
FILES = {"dev": "hotpot_dev_distractor_sample.json", "train": "hotpot_train_sample.json"}
LEVELS = ("easy", "medium", "hard")
SEED = 13
N_DOCUMENTS = 10  # of a context
N_SENTENCES = (3, 6)  # of a document
N_WORDS = (10, 32)  # of a sentence
STOP = frozenset(
    re.findall(
        r"\w+",
        """a about after all also an and any are as at be became been before both but by can did do does during each
        first for from had has have he her him his how if in into is it its itself last many more most much name
        named no not of on one or other out over since she so some than that the their them then there these they
        this to under until up was were what when where which while who whom whose with would yes""",
    )
)


def content_words(text: str) -> set[str]:
    """Return the words that are neither stop words nor single letters, in lower case.

    >>> sorted(content_words("Who built the Weir of Edrin's mill?"))
    ['built', 'edrin', 'mill', 'weir']
    """
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 1 and word not in STOP}


def fail(where: str, what: str) -> None:
    raise SystemExit(f"multihop: {where}: {what}")


def read(source: Path, kind: str) -> list[dict]:
    """Return the entries of the files ``kind``_1.yaml, ``kind``_2.yaml …, in that order."""
    paths = sorted(source.glob(f"{kind}_*.yaml"), key=lambda path: int(path.stem.rpartition("_")[2]))
    if not paths:
        fail(str(source.name), f"there is no {kind}_1.yaml")
    return [entry for path in paths for entry in yaml.safe_load(path.read_text("utf-8"))]


def check_documents(entries: list[dict]) -> dict[str, dict]:
    """Return the documents by id."""
    documents: dict[str, dict] = {}
    for entry in entries:
        name = entry.get("id", entry["title"])
        if name in documents:
            fail(name, "two documents have this title; give one of them an id")
        documents[name] = entry
        sentences = entry["sentences"]
        least, most = N_SENTENCES
        if not least <= len(sentences) <= most:
            fail(name, f"has {len(sentences)} sentences; allowed: {least} to {most}")
        least, most = N_WORDS
        for n, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                fail(name, f"sentence {n} is no text: put it into quotes")
            if not least <= len(sentence.split()) <= most:
                fail(name, f"sentence {n} has {len(sentence.split())} words; allowed: {least} to {most}")
    return documents


def names(document: dict) -> list[str]:
    return [document["title"], *document.get("aliases", ())]


def contains(text: str, part: str) -> bool:
    """Say whether the text has the part, not as a piece of a longer word or number."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def check_question(entry: dict, documents: dict[str, dict]) -> None:
    text, answer, supports = entry["question"], entry["answer"], entry["supports"]
    if not isinstance(answer, str):
        fail(text, f"the answer {answer} is no text: put it into quotes")
    for key, allowed in (("file", FILES), ("type", ("bridge", "comparison")), ("level", LEVELS)):
        if entry[key] not in allowed:
            fail(text, f"{key} is {entry[key]}; allowed: {', '.join(allowed)}")
    for name, n in supports:
        if name not in documents:
            fail(text, f"no document is called {name}")
        if not 0 <= n < len(documents[name]["sentences"]):
            fail(text, f"{name} has no sentence {n}")
    if len({name for name, _ in supports}) < 2:
        fail(text, "the supports are of one document")
    if not 1 <= len(answer.split()) <= 5:
        fail(text, f"the answer {answer} has {len(answer.split())} words; allowed: 1 to 5")
    if entry["type"] == "comparison":
        titles = [documents[name]["title"] for name, _ in supports]
        if answer not in (*titles, "yes", "no"):
            fail(text, f"the answer {answer} is none of {', '.join(titles)}, yes, no")
        return
    chain = [documents[name]["sentences"][n] for name, n in supports]
    if not contains(chain[-1], answer):
        fail(text, f"the last support does not have the answer {answer}")
    if contains(text, answer):
        fail(text, f"the question has the answer {answer}")
    for n, (name, _) in enumerate(supports[1:], 1):
        called = names(documents[name])
        if name in [earlier for earlier, _ in supports[:n]]:
            continue
        if not any(contains(sentence, word) for sentence in chain[:n] for word in called):
            fail(text, f"no support before {name} names it")
        if any(contains(text, word) for word in called):
            fail(text, f"names {name}, which only a support before it may name")


def check_questions(entries: list[dict], documents: dict[str, dict]) -> None:
    texts: set[str] = set()
    pairs: dict[str, set[tuple[str, str]]] = {side: set() for side in FILES}
    used: set[str] = set()
    for entry in entries:
        check_question(entry, documents)
        text = " ".join(sorted(content_words(entry["question"])))
        if text in texts:
            fail(entry["question"], "another question has the same words")
        texts.add(text)
        gold = sorted({name for name, _ in entry["supports"]})
        used.update(gold)
        pairs[entry["file"]].update(itertools.combinations(gold, 2))
        shared = pairs["dev"] & pairs["train"]
        if shared:
            fail(entry["question"], f"dev and train both join {' and '.join(min(shared))}")
    unused = [name for name in documents if name not in used]
    if unused:
        fail(unused[0], "no question has it as gold")


def context(entry: dict, documents: dict[str, dict], words: dict[str, set[str]], df: Counter) -> list:
    """Return titles and sentences of the gold documents and of others that look like the question."""
    drawn = random.Random(f"{SEED} {entry['question']}")
    asked = content_words(entry["question"])
    gold = list(dict.fromkeys(name for name, _ in entry["supports"]))
    likeness = {}
    for name in documents:
        shared = sum(math.log(len(documents) / df[word]) for word in sorted(asked & words[name]))
        likeness[name] = (shared + 0.5) * drawn.uniform(0.5, 1)
    others = sorted((name for name in documents if name not in gold), key=lambda name: -likeness[name])
    chosen = [*gold, *others[: N_DOCUMENTS - len(gold)]]
    order = {name: drawn.random() for name in chosen}
    chosen.sort(key=lambda name: order[name])
    # of two documents with one title a supporting fact means the first
    for name in gold:
        twins = [n for n, other in enumerate(chosen) if documents[other]["title"] == documents[name]["title"]]
        here = chosen.index(name)
        chosen[twins[0]], chosen[here] = chosen[here], chosen[twins[0]]
    return [[documents[name]["title"], documents[name]["sentences"]] for name in chosen]


def write(source: Path = SOURCE) -> dict[str, str]:
    """Return the text of each file.

    Raises:
        SystemExit: with one line on what is wrong in the input.
    """
    documents = check_documents(read(source, "documents"))
    questions = read(source, "questions")
    check_questions(questions, documents)
    words = {name: content_words(" ".join([d["title"], *d["sentences"]])) for name, d in documents.items()}
    df = Counter(word for found in words.values() for word in found)
    items: dict[str, list] = {side: [] for side in FILES}
    for entry in questions:
        items[entry["file"]].append(
            {
                "_id": hashlib.sha256(entry["question"].encode()).hexdigest()[:24],
                "question": entry["question"],
                "answer": entry["answer"],
                "type": entry["type"],
                "level": entry["level"],
                "supporting_facts": [[documents[name]["title"], n] for name, n in entry["supports"]],
                "context": context(entry, documents, words, df),
            }
        )
    return {FILES[side]: json.dumps(items[side], indent=1, ensure_ascii=False) + "\n" for side in FILES}


def main(target: Path) -> None:
    files = write()
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (target / name).write_text(text, "utf-8", newline="\n")
        print(f"{name}: {len(json.loads(text))} questions")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
