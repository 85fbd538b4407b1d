"""The help of each verb: its usage, what it does, its options, the keys that are typed most, and an example."""

from __future__ import annotations

from dataclasses import dataclass, field

Lines = dict[str, str]  # what is typed → what it is

CONFIG_DIR = {"--config-dir DIR": "a conf tree of your own; DIR/.. is importable"}
RUNS = {**CONFIG_DIR, "--quiet": "no progress bars"}
SCALE = {"scale=sample|small|paper": "sizes of data and models; sample, the default, needs no network"}
DATA = {
    "dataset=NAME": "which data: graphcontext list dataset",
    "dataset.path=PATH": "a file or folder of your own, with dataset=folder, jsonl, stackexchange …",
}
LIMIT = {"dataset.limit=N": "most questions that are scored; null: all"}
MODEL = {"llm=NAME": "the language model: graphcontext list llm", "llm.adapter=PATH": "an adapter, or its training"}
STAGES = {
    "experiment=PAPER/NAME": "the choices of one row: graphcontext list experiment",
    "retriever=NAME": "how passages are found; retriever.top_k=N: how many",
    **MODEL,
    "generator.max_new_tokens=N": "most tokens of an answer",
}
TRAINING = {
    "experiment=PAPER/NAME": "what is trained, on what: gcg/sft (the default), kgp/train_dpr …",
    **SCALE,
    **DATA,
    "adapter=lora|qlora|full": "how a model is tuned; adapter.rank=N",
    "trainer=cpu|gpu|ddp|fsdp": "on what; trainer.devices=N, trainer.micro_batch_size=N",
    "trainer.epochs=N": "passes over the pairs; trainer.pairs=N: most of them",
    "debug=tiny": "4 steps; one_batch, overfit, profile",
}


@dataclass(frozen=True)
class Help:
    """What ``graphcontext VERB --help`` prints.

    Args:
        words: what follows the verb.
        does: one or two lines.
        example: without ``graphcontext``.
        options: flags of the verb.
        keys: overrides that are typed most.
    """

    words: str
    does: str
    example: str
    options: Lines = field(default_factory=dict)
    keys: Lines = field(default_factory=dict)


HELP = {
    "run": Help(
        "[-m] [GROUP=OPTION …] [KEY=VALUE …]",
        "Does one run: data, graph, ranking, context, answers, scores; what is done already is not computed again.\n"
        "Prints the metrics and the folder below runs/ that holds everything.",
        "run experiment=gcg/text_gen retriever=bm25 retriever.top_k=3",
        {"-m, --multirun": "every combination of comma-separated values", **RUNS},
        {**STAGES, **SCALE, **DATA, **LIMIT, "metric=[NAME,…]": "what is scored: graphcontext list metric"},
    ),
    "table": Help(
        "PAPER/ID [GROUP=OPTION …] [KEY=VALUE …]",
        "Does the runs and trainings that a table lacks, then writes it below results/ and prints it.\n"
        "Its names: graphcontext list table.",
        "table gcg/t3 scale=sample table.rows=untrained",
        RUNS,
        {
            "table.rows=ROW,…": "these rows, or all of a kind: untrained, supervised",
            "table.baseline=ROW": "the row that others are compared with",
            **SCALE,
            **DATA,
            **LIMIT,
            "budget.hours=H": "rows of a language model beyond it run on fewer questions",
        },
    ),
    "train": Help(
        "[GROUP=OPTION …] [KEY=VALUE …]",
        "Tunes a model and prints its folder; the same command goes on where it was stopped.\n"
        "A run takes the result: llm.adapter=gcg/sft (an encoder: encoder.weights=kgp/train_dpr). Also: train merge.",
        "train experiment=gcg/sft scale=sample",
        RUNS,
        TRAINING,
    ),
    "train merge": Help(
        "ADAPTER [PATH] [KEY=VALUE …]",
        "Writes a model folder that holds the base with the adapter in its weights, for llm.model=PATH.\n"
        "ADAPTER is a folder or a training experiment; without PATH the model goes beside it in the store.",
        "train merge gcg/sft merged",
        CONFIG_DIR,
        {**SCALE, **DATA, "llm=NAME": "the base, as the run names it that would take the adapter"},
    ),
    "ask": Help(
        '"question" [GROUP=OPTION …] [KEY=VALUE …]',
        "Answers one question from a data set or your own files, and prints its sources and, of a traversal, its path.",
        'ask "What does Table 2 say of the north mill?" dataset=folder dataset.path=~/reports experiment=kgp/kgp_tfidf',
        {
            "--html FILE": "write a page too, with the path drawn",
            "--svg FILE": "draw the path; retriever=traversal and retriever=mdr have one",
            **RUNS,
        },
        {**DATA, **STAGES, **SCALE},
    ),
    "show": Help(
        "RUN [RUN …] [--item ID] [--html FILE] [--svg FILE]",
        "Shows what happened to each item of runs, or all about one: ranking, path, context, prompts, answer, scores.\n"
        "RUN is a folder below runs/, or the beginning of its name.",
        "show 1a2b3c --item 4d5e --html item.html",
        {
            "--item ID": "one item, by its id or the beginning of it",
            "--html FILE": "write a page instead of text",
            "--svg FILE": "draw the path of a traversal; needs one RUN and --item",
        },
    ),
    "compare": Help(
        "RUN RUN",
        "Says in which keys two runs differ, which is better, by how much (interval, p), and on which items.",
        "compare 1a2b3c 4d5e6f",
    ),
    "claims": Help(
        "[PAPER]",
        "Tests each ordering that a paper states on what is done, at every scale; nothing is run.\n"
        "Writes results/claims.md.",
        "claims gcg",
        CONFIG_DIR,
    ),
    "prepare": Help(
        "[PAPER/ID] [GROUP=OPTION …] [KEY=VALUE …]",
        "Fetches, verifies and converts what a table or run needs: models, data, indexes. The one verb that uses the\n"
        "network. Without words: the small models of scale=sample.",
        "prepare gcg/t3 scale=paper",
        CONFIG_DIR,
        {**SCALE, **DATA, "one_hop=index": "with one_hop.dump_path=FILE: an index of a Wikidata dump"},
    ),
    "plan": Help(
        "[PAPER/ID | experiment=TRAINING] [GROUP=OPTION …] [KEY=VALUE …]",
        "Prints what a table, a run or a training would take: runs, calls, tokens, VRAM, disk, hours. Nothing is run.",
        "plan gcg/t3 scale=paper",
        CONFIG_DIR,
        {**SCALE, **DATA, **LIMIT, **MODEL, "trainer.gpu=NAME": "of a training: the GPU it is planned for"},
    ),
    "doctor": Help(
        "[PAPER/ID] [GROUP=OPTION …] [KEY=VALUE …]",
        "Examines this machine and what a table, a run or a training needs: a line each, ✓ or ✗ with the mend.",
        "doctor gcg/t3 scale=paper",
        CONFIG_DIR,
        {**SCALE, **DATA, **MODEL},
    ),
    "validate": Help(
        "[--config-dir DIR]",
        "Composes and binds every config at every scale and prints all faults at once; some minutes.",
        "validate --config-dir mylab/conf",
        CONFIG_DIR,
    ),
    "ratings": Help(
        "export PAPER/ID | import PAPER/ID FILE … [KEY=VALUE …]",
        "export: does what the table lacks and writes its answers, blinded, for raters in Doccano.\n"
        "import: checks and keeps the labels that they gave; then graphcontext table PAPER/ID.",
        "ratings export gcg/fig3",
        RUNS,
        {
            "ratings.n=N": "export: items per data set; ratings.seed=N, ratings.gold=true",
            "ratings.partial=true": "import: raters may have left items out",
            "ratings.replace=true": "import: earlier imports are dropped",
            **SCALE,
        },
    ),
    "new": Help(
        "GROUP NAME [--config-dir DIR]",
        "Writes a class, a YAML and a test of your own to start from; they run as they are.",
        "new retriever longest",
        {"--config-dir DIR": "your conf tree, made if it is not there (default: mylab/conf)"},
    ),
    "list": Help(
        "[GROUP]",
        "Prints the config groups, or the options of one.",
        "list retriever",
        CONFIG_DIR,
    ),
}


def text(verb: str) -> str:
    """Return the help of a verb.

    >>> print(text("compare").splitlines()[0])
    usage: graphcontext compare RUN RUN
    """
    one = HELP[verb]
    parts = [f"usage: graphcontext {verb} {one.words}", "", one.does]
    for heading, lines in (("options", one.options), ("keys", one.keys)):
        width = max(map(len, lines), default=0)
        parts += ["", f"{heading}:", *(f"  {what:{width}}  {said}" for what, said in lines.items())] if lines else []
    return "\n".join([*parts, "", "example:", f"  graphcontext {one.example}", "", "all verbs: graphcontext --help"])
