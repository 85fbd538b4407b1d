"""The command line: ``graphcontext VERB [--flags] [Hydra overrides]``.

Results on stdout, progress and logs on stderr. Exit code 0 done, 1 the work failed, 2 the input is wrong:
one line, no traceback unless ``debug=true``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn

from graphcontext import verbs
from graphcontext.errors import GraphContextError, InputError, did_you_mean

VERBS = {
    "run": "one run; its metrics with n, failed, empty and interval (-m sweeps commas)",
    "table": "PAPER/ID: the runs that a table lacks, then the table",
    "train": "an adapter for llm.adapter=, going on where it was stopped; train merge ADAPTER [PATH]: a model folder",
    "ask": '"question": one answer, with its sources, their scores or the path to them',
    "show": "RUN [RUN …] [--item ID] [--html FILE] [--svg FILE]: what happened to each item",
    "compare": "RUN RUN: config diff, paired differences with interval and p, items won and lost",
    "claims": "[PAPER]: each ordering that a paper states, tested on what is done; nothing is run",
    "prepare": "[PAPER/ID]: fetch, verify and convert data and models",
    "plan": "[PAPER/ID | experiment=TRAINING]: runs, calls, tokens, VRAM, disk and hours, before spending any",
    "doctor": "[PAPER/ID]: what a run needs, each ✓ or ✗ with the mend",
    "validate": "compose and bind every config; all faults at once",
    "ratings": "export PAPER/ID | import PAPER/ID FILE …: answers for human raters (Doccano), and their labels back",
    "new": "GROUP NAME [--config-dir DIR]: a class, YAML and test of your own to start from",
    "list": "[GROUP]: the options of a config group",
}

EPILOG = """examples:
  graphcontext table gcg/t3 scale=sample table.rows=untrained
  graphcontext ask "How do I find which process holds a port?"
  graphcontext run experiment=gcg/text_gen retriever=bm25 retriever.top_k=3
  graphcontext compare 1a2b3c 4d5e6f
  graphcontext train experiment=gcg/sft scale=sample
  graphcontext run experiment=gcg/zero_shot llm.adapter=gcg/sft

files: ./store (artefacts), ./runs, ./results; GRAPHCONTEXT_HOME (models), GRAPHCONTEXT_DATA (real data)
one verb: graphcontext VERB --help
exit codes: 0 done, 1 a run failed, 2 your input is wrong; a training told to stop: 128 + the signal"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(message.replace("unrecognized arguments", "no such flag") + " (graphcontext --help)")


def parser() -> argparse.ArgumentParser:
    """Return the parser; overrides are left as words."""
    listed = "\n".join(f"  {name:9} {what}" for name, what in VERBS.items())
    parsed = _Parser(
        prog="graphcontext",
        usage="graphcontext VERB [--flags] [GROUP=OPTION …] [KEY=VALUE …]",
        description=f"Graph-structured context for LLM question answering.\n\nverbs:\n{listed}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parsed.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parsed.add_argument("-h", "--help", action="store_true", help="this; VERB --help: of one verb")
    parsed.add_argument("--config-dir", metavar="DIR", help="a conf tree of your own; DIR/.. is importable")
    parsed.add_argument("--item", metavar="ID", help="show: one item, by its id or the beginning of it")
    parsed.add_argument("--html", metavar="FILE", help="show: write a page instead of text; ask: write one too")
    parsed.add_argument("--svg", metavar="FILE", help="show, ask: draw the path of a traversal")
    parsed.add_argument(
        "-m", "--multirun", action="store_true", help="run: every combination of comma-separated values"
    )
    parsed.add_argument("--quiet", action="store_true", help="no progress bars")
    parsed.add_argument("--version", action="store_true", help="print the version")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "debug=true" in given
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: on shared cores spinning threads cost most
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 loses no result

    def act() -> int:
        _check_encoding(given)
        code = _dispatch([a for a in given if a not in ("debug=true", "debug=false")])
        if sys.stdout is not None:
            sys.stdout.flush()  # a reader that went away, or a full disk, is met here and not at exit
        return code

    return guarded(act, debug)


def guarded(act: Callable[[], int], debug: bool = False) -> int:
    """Do something; what ends it is said in one line, and is its exit code."""
    try:
        return act()
    except GraphContextError as error:
        if debug:
            raise
        print(f"error: {_one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except OSError as error:
        if debug:
            raise
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        if not error.filename:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _check_encoding(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{argument!a}: this argument is not valid UTF-8") from error


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text.strip())


def _dispatch(arguments: list[str]) -> int:
    import graphcontext

    parsed = parser().parse_intermixed_args(arguments)
    if parsed.version:
        print(graphcontext.__version__)
        return 0
    if not parsed.words:
        parser().print_help()
        return 0
    verb, *words = parsed.words
    if verb not in VERBS:
        raise InputError(f"{verb!r}: no such verb{did_you_mean(verb, VERBS, most=20)}")
    if parsed.help:
        both = " ".join(parsed.words[:2])  # train merge
        print(verbs.text(both if both in verbs.HELP else verb))
        return 0
    if parsed.multirun and verb != "run":
        raise InputError(f"{verb} takes no -m, only run does: give one command for each value")
    if verb != "ask":
        names, overrides = [w for w in words if "=" not in w], [w for w in words if "=" in w]
    else:
        names = [w for w in words if not re.match(r"^([\w@./]+=\S*|[\w.]*path=.*)$", w)]
        overrides = [w for w in words if w not in names]
    from graphcontext import commands

    return getattr(commands, verb)(names, overrides, parsed)


if __name__ == "__main__":
    sys.exit(main())
