"""What happened to each item, of one run or several side by side, in the terminal and as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from graphcontext import api, show
from graphcontext.errors import InputError
from graphcontext.run_folder import Run, write_folder

CONF = str(Path(__file__).parent / "table" / "conf")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Four questions by TF-IDF and a model; two of them by BM25."""
    root = tmp_path_factory.mktemp("show")
    first = api.run("experiment=tests/base", "dataset.limit=4", config_dir=CONF, root=root)
    second = api.run("experiment=tests/other", "dataset.limit=2", config_dir=CONF, root=root)
    return [first, second]


def items(runs: list[Run]) -> tuple[str, str]:
    """An item of both runs, and one that only the first has."""
    first, second = ([q.id for q in run.questions()] for run in runs)
    return second[0], next(i for i in first if i not in second)


def test_a_run_is_a_line_per_item(runs: list[Run]) -> None:
    text = show.text(runs)
    assert text.count("== ") == 2 and "TFIDF + NoEnhancement + LLMGenerator" in text and "BM25" in text
    for run in runs:
        for question in run.questions():
            score = run.scores()[question.id]["rouge1"]
            assert re.search(rf"^{question.id} +ok +{score:.3f} .*{re.escape(question.title[:20])}", text, re.MULTILINE)


def test_an_item_side_by_side(runs: list[Run]) -> None:
    both, _ = items(runs)
    text = show.text(runs, both)
    for heading in ("question", "ranking", "context (", "prompt (answer)", "answer (ok, 60 tokens, stop)", "gold"):
        assert text.count(f"\n-- {heading}") == 2
    question = next(q for q in runs[0].questions() if q.id == both)
    assert question.references[0].splitlines()[0] in text and question.source.link in text
    hit = runs[1].rankings()
    assert all(p.id in text for ranking in hit if ranking.id == both for p in ranking.passages)


def test_an_item_that_one_run_lacks(runs: list[Run]) -> None:
    _, one = items(runs)
    assert show.text(runs, one).count(f"{one} is not in this run") == 1
    assert show.text(runs[::-1], one).count("-- gold") == 1


def test_an_item_by_the_beginning_of_its_id(runs: list[Run]) -> None:
    ids = [q.id for q in runs[0].questions()]
    for item in ids:
        unique = next(item[:n] for n in range(1, 9) if sum(i.startswith(item[:n]) for i in ids) == 1)
        assert show.find_item(runs, unique) == show.find_item(runs, item) == item
    with pytest.raises(InputError, match=r"--item x9: 0 items begin so in .*\(e\.g\. "):
        show.find_item(runs, "x9")
    with pytest.raises(InputError, match="4 items begin so"):
        show.find_item(runs, "")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.links += [str(value) for key, value in attrs if key == "href"]


def test_the_page_holds_every_item_and_escapes_all_text(runs: list[Run], tmp_path: Path) -> None:
    both, one = items(runs)
    attack = "<script>alert(1)</script>"
    hurt = Run(tmp_path / "runs" / runs[0].path.name)
    files = {name: runs[0].read(name).decode() for name in runs[0].manifest["files"]}
    for name, key in (
        ("questions", "text"),
        ("questions", "title"),
        ("predictions", "prediction"),
        ("contexts", "text"),
    ):
        file = f"{name}.jsonl"
        files[file] = re.sub(rf'"{key}": "', f'"{key}": "{attack} & ', files[file])
    files["questions.jsonl"] = re.sub(r'"link": "https', '"link": "javascript', files["questions.jsonl"], count=1)
    write_folder(hurt.path, files, runs[0].metrics, runs[0].manifest)

    for given, item in (([hurt, runs[1]], None), ([hurt], both), ([runs[1], hurt], one)):
        page = show.write_html(given, item, str(tmp_path / "page.html")).read_text()
        assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; " in page
        tags = Tags()
        tags.feed(page)
        assert "script" not in tags.found and all(link.startswith("https://") for link in tags.links)
        assert tags.found.count("h1") == 1
        assert len(re.findall("<details class=item", page)) == (1 if item else 4)
        assert page.count("not in this run") == (len(given) - 1) * (1 if item else 2)


def test_a_page_for_runs_of_which_the_second_has_more(runs: list[Run]) -> None:
    page = show.write_html(runs[::-1], None, "page.html").read_text()
    assert len(re.findall("<details class=item", page)) == 4 and "retriever._target_" in page


def test_a_run_without_a_metric(tmp_path: Path) -> None:
    words = ("experiment=tests/base", "generator=none", "metric=[]", "dataset.limit=2")
    run = api.run(*words, config_dir=CONF, root=tmp_path)
    (item, *_) = [q.id for q in run.questions()]
    assert "-- answer (empty: generator=none)\n   (none)" in show.text([run], item)
    assert "2 items" in show.write_html([run], None, "page.html").read_text() and item in show.text([run])
