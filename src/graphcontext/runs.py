"""Run configs: compute the stages that the store lacks, and write each run's folder from what it holds in memory."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcontext import test_use
from graphcontext.component import has_answers
from graphcontext.errors import GraphContextError, RunError, fault
from graphcontext.evaluate.statistics import SEED
from graphcontext.evaluate.summary import summarise
from graphcontext.evaluate.trec import qrels_file, run_file
from graphcontext.files import jsonl, read_lines
from graphcontext.manifest import manifest
from graphcontext.pipeline import Pipeline
from graphcontext.run_facts import facts, lost
from graphcontext.run_folder import Run, run_path, write_folder
from graphcontext.store import Store, Workspace


def execute(config: dict[str, Any], root: Path | str = ".", quiet: bool = False) -> Run:
    """Run one config: compute the stages that the store lacks and write the run folder.

    Args:
        config: resolved (:func:`graphcontext.config.compose`).
        root: the working folder, which holds ``store/`` and ``runs/``.
        quiet: no progress bars.

    Raises:
        InputError: wrong input, found before the work starts where it can be.
        RunError: every item failed, or the disk is full.
    """
    done = execute_all([("run", config)], root, quiet)[0]
    if isinstance(done, GraphContextError):
        raise done
    return done


def execute_all(
    configs: list[tuple[str, dict[str, Any]]], root: Path | str = ".", quiet: bool = False
) -> list[Run | GraphContextError]:
    """Run several configs stage by stage, so that a model they share is loaded once and freed after its stage.

    A run that fails does not stop the others: its error stands in its place.

    Args:
        configs: (label, resolved config).
        root: the working folder.
        quiet: no progress.
    """
    store = Store(Path(root) / "store")
    jobs = [_Job(label, Pipeline(config, Workspace(store, quiet=quiet)), root) for label, config in configs]
    metrics = [metric for job in jobs for metric in job.pipeline.parts["metric"].values()]
    grades = any(getattr(metric, "asks", False) for metric in metrics)
    asking = [_Job.retrieve, _Job.enhance, *([_Job.generate] if grades else [])]  # stages that a later one asks after
    try:
        for stage in (_Job.retrieve, _Job.enhance, _Job.generate, _Job.score):
            for job in jobs:
                job.attempt(stage)
            free_models(keep_servers=stage in asking)  # all roles share them until the last one has answered
    finally:
        free_models()
    for job in jobs:
        job.attempt(_Job.finish)
    return [job.error or job.run for job in jobs]


class _Job:
    """One run on its way through the stages."""

    def __init__(self, label: str, pipeline: Pipeline, root: Path | str):
        self.label, self.pipeline, self.root = label, pipeline, root
        self.error: GraphContextError | None = None
        self.run = Run(run_path(root, pipeline.keys))

    def attempt(self, stage: Any) -> None:
        if self.error is None:
            self.pipeline.workspace.label = self.label
            try:
                stage(self)
            except GraphContextError as error:
                self.error = error
            except SystemExit as error:
                self.error = RunError(f"{stage.__name__}: a component called sys.exit({error.code})")
            except Exception as error:  # noqa: BLE001 - a component's fault stops its own run, not the others
                self.error = RunError(f"{stage.__name__}: {fault(error)}")
                self.error.__cause__ = error

    def retrieve(self) -> None:
        self.data = self.pipeline.data()
        self.rankings = self.pipeline.rankings(self.data, self.pipeline.graphs(self.data))

    def enhance(self) -> None:
        self.contexts = self.pipeline.contexts(self.data, self.rankings)

    def generate(self) -> None:
        self.predictions = self.pipeline.predictions(self.data, self.contexts)

    def score(self) -> None:
        self.scores = self.pipeline.scores(self.data, self.predictions, self.rankings, self.contexts)

    def records(self) -> dict[str, Sequence[Any]]:
        """Return what was made of each item, by stage."""
        made = {"questions": self.data.questions, "rankings": self.rankings}
        return made | {"contexts": self.contexts, "predictions": self.predictions}

    def finish(self) -> None:
        test_use.record(self.root, self.pipeline.config, self.pipeline.keys)
        metrics = _write(self.run, self)
        n = metrics["n"]
        if n and metrics["n_failed"] == n:
            reasons = [p.reason for p in self.predictions if p.status == "failed"]
            reasons += [row["reason"] for row in self.run.lines("scores.jsonl") if row.get("reason")]
            raise RunError(f"all {n} items failed, the first because: {reasons[0]} ({self.run.path})")


def free_models(keep_servers: bool = False) -> None:
    """Free the models in memory and stop the servers of models; modules that were never imported hold none."""
    for module, function in (
        *([] if keep_servers else [("graphcontext.generate.server", "stop_all")]),
        ("graphcontext.retrieve.encoder_model", "free"),
        ("graphcontext.generate.causal_model", "free"),
        ("graphcontext.generate.seq2seq_model", "free"),
        ("graphcontext.evaluate.bertscore", "release"),
        ("graphcontext.evaluate.spacy_facts", "release"),
        ("graphcontext.evaluate.luke_tacred", "release"),
    ):
        if module in sys.modules:
            getattr(sys.modules[module], function)()


def _write(run: Run, job: _Job) -> dict[str, Any]:
    """Write the run folder from what the run holds in memory: the very records its scores were made from."""
    import yaml

    pipeline, data, predictions, scores = job.pipeline, job.data, job.predictions, job.scores
    parts = {name: pipeline.parts["metric"][name] for name in scores}
    signatures = {name: part.signature for name, part in parts.items()}
    further = {name: getattr(part, "columns", {}) for name, part in parts.items()}
    columns = {column: name for name, given in further.items() for column in given}
    signatures |= {c: f"{c}|{said}|{signatures[n]}" for n, given in further.items() for c, said in given.items()}
    asks = has_answers(pipeline.config)
    rows = []
    for index, prediction in enumerate(predictions):
        status = "ok" if prediction.status == "empty" and not asks else prediction.status
        row: dict[str, Any] = {"id": prediction.id, "status": status}
        if prediction.reason:
            row["reason"] = prediction.reason
        for name, per_item in scores.items():
            given = per_item[index]
            if given[name] is None or math.isnan(given[name]):  # as in summarise: it scores 0 and stays in the mean
                row |= {"status": "failed", "reason": f"metric {name}: {given.get('reason', 'gave no score')}"}
            values = {k: v for k, v in given.items() if k != "reason" and not (v is None and k in columns)}
            row |= {k: 0.0 if v is None or math.isnan(v) else v for k, v in values.items()}
        rows.append(row)
    flat = {name: [s[name] for s in per_item] for name, per_item in scores.items()}
    beside = {column: [s.get(column) for s in scores[name]] for column, name in columns.items()}
    metrics = summarise(flat, predictions, signatures, SEED, beside)
    if not asks:
        metrics["n_empty"] = 0
    metrics["facts"] = facts(job) | lost(rows)
    files = {f"{name}.jsonl": jsonl(records) for name, records in job.records().items()}
    files |= {"rankings.trec": run_file(job.rankings), "scores.jsonl": jsonl(rows)}
    if qrels := qrels_file(data.questions):
        files["qrels.trec"] = qrels
    seen = pipeline.stages.seen
    asked = [made.artefact.path / "calls.jsonl" for name, made in seen.items() if not name.startswith("adapter:")]
    files["calls.jsonl"] = jsonl([row for path in asked for row in read_lines(path)])
    files["card.json"] = json.dumps(data.card, indent=1, ensure_ascii=False)
    files["config.yaml"] = yaml.safe_dump(pipeline.config, sort_keys=False, allow_unicode=True)
    stages = {name: {"key": s.artefact.key, **s.facts} for name, s in seen.items()}
    for name in stages:
        if name.startswith("adapter:"):  # trained by another command: a run is of these bytes
            stages[name]["content"] = seen[name].content
    about = manifest(pipeline.config, stages, sorted(data.corpora))
    write_folder(run.path, files, metrics, about)
    return metrics
