"""Small multi-hop data sets in their original formats, and readers of them with the arguments of the YAMLs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from dumps import CONF
from own_data import write_jsonl

from graphcontext.data.hotpotqa import HotpotQA
from graphcontext.data.iirc import IIRC
from graphcontext.data.musique import MuSiQue


def hotpot_item(n: int, **more: object) -> dict[str, Any]:
    """Question n over "River n" and "Town n", whose second and first sentences support it in this order."""
    context = [
        [f"Town {n}", [f"Town {n} lies on River {n}.", f" It has {n}000 people."]],
        [f"River {n}", [f"River {n} is long.", f" It flows into Sea {n}.", " Ships use it."]],
    ]
    values = {"_id": f"q{n}", "question": f"Into what sea does the river of Town {n} flow?", "answer": f"Sea {n}"}
    values |= {"supporting_facts": [[f"Town {n}", 0], [f"River {n}", 1]], "context": context, "type": "bridge"}
    return values | {"level": "easy"} | more


def musique_item(n: int, **more: object) -> dict[str, Any]:
    """Question n, whose first hop is supported by paragraph 2 and whose second by paragraph 0."""
    texts = [f"River {n} flows into Sea {n}.", f"Hill {n} is high.", f"Town {n} lies on River {n}."]
    titles = [f"River {n}", f"Town {n}", f"Town {n}"]
    paragraphs = [
        {"idx": i, "title": title, "paragraph_text": text, "is_supporting": i != 1}
        for i, (title, text) in enumerate(zip(titles, texts))
    ]
    hops = [
        {"id": 1, "question": f"Town {n} >> river", "answer": f"River {n}", "paragraph_support_idx": 2},
        {"id": 2, "question": "#1 >> mouth", "answer": f"Sea {n}", "paragraph_support_idx": 0},
    ]
    values = {"id": f"2hop__{n}_{n}", "question": f"Into what sea does the river of Town {n} flow?"}
    values |= {"answer": f"Sea {n}", "answer_aliases": [f"the Sea {n}"], "answerable": True}
    return values | {"paragraphs": paragraphs, "question_decomposition": hops} | more


def iirc_passage(n: int, **more: object) -> dict[str, Any]:
    """A passage with two questions: of a span in an article, and of a value in the passage."""
    text = f"Town {n} is old. It lies on River {n}. It has {n}000 people."
    context = [
        {"passage": "main", "text": f"lies on River {n}", "indices": [20, 34]},
        {"passage": f"river {n}", "text": f"flows into Sea {n}", "indices": [0, 0]},
    ]
    spans = [{"text": f"Sea {n}", "passage": f"river {n}", "start": 0, "end": 5}]
    questions = [
        {
            "qid": f"q_{n}",
            "question": f"Into what sea does the river of Town {n} flow?",
            "answer": {"type": "span", "answer_spans": spans},
            "question_links": [f"River {n}"],
            "context": context,
        },
        {
            "qid": f"q_{n}v",
            "question": f"How many people live in Town {n}?",
            "answer": {"type": "value", "answer_value": f"{n}000", "answer_unit": "people"},
            "question_links": [],
            "context": [{"passage": "main", "text": f"It has {n}000 people.", "indices": [36, 54]}],
        },
    ]
    links = [{"target": f"River {n}", "indices": [28, 35]}, {"target": "Nowhere", "indices": [0, 4]}]
    return {"pid": f"p_{n}", "title": f"Town {n}", "text": text, "links": links, "questions": questions} | more


def iirc_article(n: int) -> str:
    return f'River {n} is long &amp; wide.\nIt flows into <a href="Sea%20{n}">Sea {n}</a>. Ships use it.'


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_hotpot(folder: Path, test: int = 4, train: int = 0, start: int = 0) -> Path:
    """Write questions start + 1 … start + test, and where there are any, train questions 101 …"""
    folder.mkdir(exist_ok=True)
    write_json(folder / "hotpot_dev_distractor_v1.json", [hotpot_item(start + n) for n in range(1, test + 1)])
    if train:
        write_json(folder / "hotpot_train_v1.1.json", [hotpot_item(100 + n) for n in range(1, train + 1)])
    return folder


def write_musique(folder: Path, n: int = 4) -> Path:
    write_jsonl(folder / "musique_ans_v1.0_dev.jsonl", [musique_item(k) for k in range(1, n + 1)])
    return folder


def write_iirc(folder: Path, n: int = 3) -> Path:
    write_json(folder / "dev.json", [iirc_passage(k) for k in range(1, n + 1)])
    write_json(folder / "context_articles.json", {f"river {k}": iirc_article(k) for k in range(1, n + 1)})
    return folder


def _built(cls: type, name: str, path: Path | None, overrides: dict[str, object]) -> Any:
    values = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    values.pop("_target_")
    values |= {"limit": None, "side": "test", "path": None if path is None else str(path), "n_passages": None}
    return cls(**values | overrides)


def hotpotqa(path: Path | None, **overrides: object) -> HotpotQA:
    return _built(HotpotQA, "hotpotqa", path, {"passage_unit": "sentence"} | overrides)


def twowiki(path: Path | None, **overrides: object) -> HotpotQA:
    return _built(HotpotQA, "2wikimultihopqa", path, {"passage_unit": "sentence"} | overrides)


def musique(path: Path | None, **overrides: object) -> MuSiQue:
    return _built(MuSiQue, "musique", path, overrides)


def iirc(path: Path | None, **overrides: object) -> IIRC:
    return _built(IIRC, "iirc", path, {"passage_unit": "sentence"} | overrides)
