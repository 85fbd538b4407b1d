"""A small table: two data columns fell together, one row was not run, one differs from the baseline."""

from graphcontext.table.cells import Cell, Column, Measure, Row, TableResult

ROWS = (
    Row("answerbot", "AnswerBot", "Pre-LLM era"),
    Row("text_gen", "[w/o INST] TextGen", "LLM era"),
    Row("graph_gen", "[w/o INST] GraphGen", "LLM era"),
    Row("sft", "GraphGen*", "LLM era"),
)
COLUMN = Column("cqa_sample", "CQA sample", ("AskUbuntu", "Unix"))
TEST = {"baseline": "text_gen", "family": "cqa_sample/rouge1 against text_gen (2)"}
MEASURED = {"column": "cqa_sample", "metric": "rouge1", "status": "stand-in", "seeds": 1, "n": 24}


def demo_table(**changes) -> TableResult:
    cells = (
        Cell(
            "answerbot",
            value=0.2361,
            ci95=(0.2, 0.27),
            reported={"AskUbuntu": 0.236, "Unix": 0.191},
            run="runs/a",
            diff=0.0361,
            diff_ci95=(-0.01, 0.08),
            p=0.125,
            p_holm=0.125,
            **TEST,
            **MEASURED,
        ),
        Cell(
            "text_gen",
            value=0.2,
            ci95=(0.17, 0.23),
            reported={"AskUbuntu": 0.217, "Unix": None},
            run="runs/b",
            **MEASURED,
        ),
        Cell(
            "graph_gen",
            value=0.31,
            ci95=(0.28, 0.34),
            reported={"AskUbuntu": 0.204, "Unix": 0.181},
            run="runs/c",
            diff=0.11,
            diff_ci95=(0.08, 0.14),
            p=0.0001,
            p_holm=0.0002,
            **TEST,
            **MEASURED,
        ),
        Cell(
            "sft",
            "cqa_sample",
            "rouge1",
            reported={"AskUbuntu": 0.182, "Unix": 0.183},
            status="not run (no adapter: gcg/sft; train it with graphcontext train)",
        ),
    )
    values = {
        "table": "gcg/t3",
        "title": "GraphContextGen T3",
        "scale": "sample",
        "command": "graphcontext table gcg/t3",
        "rows": ROWS,
        "columns": (COLUMN,),
        "metrics": (Measure("rouge1", "ROUGE-1"), Measure("factsumm", "FactSumm")),
        "cells": cells,
        "footnotes": ("cqa_sample stands in for AskUbuntu and Unix",),
        "baseline": "text_gen",
    }
    return TableResult(**values | changes)
