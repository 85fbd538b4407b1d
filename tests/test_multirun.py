"""``run -m``: every combination, in Hydra's order."""

from __future__ import annotations

import pytest

from graphcontext.config import compose
from graphcontext.errors import InputError
from graphcontext.multirun import expand


def test_the_last_key_runs_fastest() -> None:
    assert expand(["retriever=bm25,tfidf", "retriever.top_k=1,2", "seed=0"]) == [
        ["retriever=bm25", "retriever.top_k=1", "seed=0"],
        ["retriever=bm25", "retriever.top_k=2", "seed=0"],
        ["retriever=tfidf", "retriever.top_k=1", "seed=0"],
        ["retriever=tfidf", "retriever.top_k=2", "seed=0"],
    ]


def test_ranges_and_choices() -> None:
    assert expand(["seed=range(0,3)"]) == [["seed=0"], ["seed=1"], ["seed=2"]]
    assert expand(["seed=choice(4,7)"]) == [["seed=4"], ["seed=7"]]


def test_no_sweep_is_one_job_and_lists_are_values() -> None:
    assert expand([]) == [[]]
    (job,) = expand(["metric=[rouge1,rougeL]"])
    assert list(compose(job).config["metric"]) == ["rouge1", "rougeL"]


@pytest.mark.parametrize("path", ["/data/my dump", "/data/it's", "/data/a=b", "/data/a(1),b"])
def test_paths_need_no_quoting_here_either(path: str) -> None:
    jobs = expand([f"dataset.path={path}", "retriever=bm25,tfidf"])
    assert len(jobs) == 2
    assert [compose(job).config["dataset"]["path"] for job in jobs] == [path, path]


@pytest.mark.parametrize("text", ["seed=[1", "seed"])
def test_what_does_not_parse_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as raised:
        expand([text])
    assert "\n" not in str(raised.value)
