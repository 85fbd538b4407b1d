"""A user's own data and retriever, outside the clone: run, tabulated, compared, claimed; the clone stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPICS = ("ports", "disks", "kernels", "logs", "users", "timers", "mails", "fonts", "shares", "keys")

RETRIEVER = '''
from graphcontext.data.records import Ranking, Scored


class ByTitle:
    """Ranks the passages whose title the question names first."""

    def __init__(self, top_k: int = 2):
        self.top_k = top_k

    def retrieve(self, questions, corpora, graphs):
        rankings = []
        for question in questions:
            passages = corpora[question.corpus_id].passages
            scored = [Scored(p.id, float(p.title in question.text.split())) for p in passages]
            rankings.append(Ranking(question.id, tuple(sorted(scored, key=lambda s: (-s.score, s.id))[: self.top_k])))
        return rankings
'''

DATASET = """# graphcontext table mylab/notes --config-dir lab/conf
defaults:
  - jsonl
  - _self_
name: notes
path: {path}
license: mine
"""

TABLE = """# graphcontext table mylab/notes --config-dir lab/conf
title: "Retrievers on my notes"
paper: "none"
datasets: {notes: "My notes"}
metrics: {rouge1: ROUGE-1}
baseline: bm25
rows:
  - {name: bm25, label: "BM25", experiment: mylab/notes, overrides: [retriever=bm25, retriever.top_k=1]}
  - {name: by_title, label: "By title", experiment: mylab/notes, overrides: [retriever=by_title, retriever.top_k=1]}
"""

EXPERIMENT = """# @package _global_
# graphcontext run --config-dir lab/conf experiment=mylab/notes
defaults:
  - override /retriever: by_title
  - override /enhancer: none
  - override /tokenizer: words
  - override /generator: answerbot
  - override /metric: [rouge1]
"""

CLAIMS = """# graphcontext claims mylab --config-dir lab/conf
paper: "my notes"
claims:
  - id: titles
    text: "Titles find the note better than its words do."
    place: "my hypothesis"
    left: {table: mylab/notes, row: by_title}
    relation: greater
    right: {row: bm25}
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a clone holds: no other process changes it while the user works."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("src", "conf"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def state(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def write_data(folder: Path) -> None:
    """Per topic a note that answers, titled by it, and one that only has the question's words."""
    corpus, questions = [], []
    for topic in TOPICS:
        answer = f"Run show-{topic} with --newest and read its third column."
        asked = f"How do I see all {topic} of a machine ?"
        corpus.append({"id": f"good-{topic}", "title": topic, "text": answer})
        corpus.append({"id": f"decoy-{topic}", "title": "Note", "text": f"You may see all {topic} how a machine do"})
        questions.append({"id": topic, "question": asked, "answers": [answer], "supports": [f"good-{topic}"]})
    questions = [question | {"split": "test"} for question in questions]
    folder.mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.end_to_end
def test_own_data_and_an_own_retriever_need_no_change_in_the_clone(clone: Path, tmp_path: Path) -> None:
    before = state(clone)
    work, data = tmp_path / "work", tmp_path / "my data" / "notes"
    work.mkdir()
    write_data(data)
    environment = {**os.environ, "PYTHONPATH": str(clone / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"GRAPHCONTEXT_HOME": str(tmp_path / "no models")}

    def graphcontext(*words: str) -> list[str]:
        command = [sys.executable, "-m", "graphcontext.cli", *words, "--config-dir", "lab/conf"]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    # her retriever, from the files that new writes
    assert graphcontext("new", "retriever", "by_title")[-1] == "new: lab/by_title.py"
    (work / "lab/by_title.py").write_text(RETRIEVER)
    conf = work / "lab" / "conf"
    for name, text in (
        ("experiment/mylab/notes", EXPERIMENT),
        ("table/mylab/notes", TABLE),
        ("dataset/notes", DATASET.format(path=json.dumps(str(data)))),
        ("claims/mylab", CLAIMS),
    ):
        (conf / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (conf / f"{name}.yaml").write_text(text)

    # two runs on her files, named on the command line, and their comparison
    words = ("run", "experiment=mylab/notes", "dataset=jsonl", f"dataset.path={data}", "retriever.top_k=1", "--quiet")
    runs = []
    for more in ("retriever=bm25", "retriever=by_title"):
        out = graphcontext(*words, more)
        assert out[0].startswith("n=10  failed=0  empty=0")
        runs.append(out[-1].removeprefix("run: "))
    compared = "\n".join(graphcontext("compare", *runs))
    assert "retriever._target_: graphcontext.retrieve.bm25.BM25 → by_title.ByTitle" in compared
    assert re.search(r"^10 shared items$", compared, re.MULTILINE)
    shown = "\n".join(graphcontext("show", runs[1], "--item", "ports"))
    assert "Run show-ports with --newest" in shown

    # her table and her claim
    assert graphcontext("table", "mylab/notes", "--quiet")[-1] == "table: results/sample/mylab/notes.md"
    table = json.loads((work / "results/sample/mylab/notes.json").read_text())
    cells = {cell["row"]: cell for cell in table["cells"]}
    assert {cell["n"] for cell in cells.values()} == {10} and {c["column"] for c in cells.values()} == {"notes"}
    assert cells["by_title"]["value"] > cells["bm25"]["value"] and cells["by_title"]["p_holm"] == 2 / 2**10
    assert {p.suffix for p in (work / "results/sample/mylab").glob("notes.*")} == {
        *(".md", ".csv", ".tex", ".json", ".png")
    }
    claimed = graphcontext("claims", "mylab")
    assert any("titles" in line and "1 supported" in line for line in claimed)
    assert claimed[-1] == "claims: results/claims.md"

    # she edits her class: its results are made anew, the others stay
    (work / "lab/by_title.py").write_text(RETRIEVER.replace("p.title in", "p.title not in"))
    graphcontext("table", "mylab/notes", "--quiet")
    again = {c["row"]: c for c in json.loads((work / "results/sample/mylab/notes.json").read_text())["cells"]}
    assert again["by_title"]["run"] != cells["by_title"]["run"] and again["bm25"] == cells["bm25"]

    assert state(clone) == before
    assert {p.name for p in work.iterdir()} == {"lab", "store", "runs", "results"}
    assert {p.name for p in data.iterdir()} == {"corpus.jsonl", "questions.jsonl"}
