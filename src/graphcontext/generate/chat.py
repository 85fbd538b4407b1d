"""Chat with a language model: requests, responses, and the loop that asks only what was not answered yet.

Every call, local or remote, is one line of ``calls.jsonl``: role, item, fingerprint, messages, response,
finish, tokens, seconds, status and, where it failed, reason. The line is the unit of resume.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from graphcontext.data.records import Status
from graphcontext.errors import InputError, RunError
from graphcontext.files import digest
from graphcontext.generate.rate_limit import STOPPING, Stopped

Message = dict[str, str]  # {"role": "system" | "user" | "assistant", "content": text}
Check = Callable[["ChatResponse"], "str | None"]


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model; ``item`` names what it is asked for (a question or passage id)."""

    item: str
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class ChatResponse:
    """A model's answer; ``finish`` is ``length`` where the token limit cut it.

    ``seconds`` is the request's share of its batch.
    """

    item: str
    text: str
    finish: Literal["stop", "length"] | None = None
    n_prompt_tokens: int = 0
    n_tokens: int = 0
    seconds: float = 0.0
    status: Status = "ok"
    reason: str | None = None


class Backend(Protocol):
    """What :func:`answer` needs of a language model.

    ``batch_size`` requests go to one :meth:`complete`, ``workers`` of which run at once. ``settings`` is
    everything that decides the text of an answer besides the messages: it enters each call's fingerprint. One that has
    ``start()`` is told before the first request of a :func:`answer` that asks anything.
    """

    batch_size: int
    workers: int
    workspace: Any

    def settings(self) -> dict[str, Any]: ...
    def draws_random(self) -> bool: ...
    def length(self, request: ChatRequest) -> int: ...
    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]: ...


def answer(
    llm: Backend,
    requests: Sequence[ChatRequest],
    role: str,
    max_new_tokens: int,
    check: Check | None = None,
) -> list[ChatResponse]:
    """Answer each request, by index; what ``workspace.calls`` holds as answered is not asked again.

    Batches are a fixed partition of all requests sorted by length, answered ones included: a batch that was
    cut is computed whole and only its missing lines are appended, so a resumed run has the bytes of an
    undisturbed one. Equal requests of one item are asked once.

    Args:
        llm: the backend.
        requests: what to ask.
        role: whom the model plays (``answer``, ``extractor`` …), for the log.
        max_new_tokens: most tokens of one answer.
        check: returns why an answer is unusable, or None; such a call is recorded as failed and retried by
            the next run.
    """
    base = llm.settings() | {"max_new_tokens": max_new_tokens}
    if llm.draws_random() and llm.workspace is not None:
        base |= {"seed": llm.workspace.seed, "sample_index": llm.workspace.sample_index}
    prints = [digest([base, list(r.messages)]) for r in requests]
    names = [(r.item, p) for r, p in zip(requests, prints, strict=True)]
    first = {name: i for i, name in reversed(list(enumerate(names)))}

    lengths = {i: llm.length(requests[i]) for i in first.values()}
    order = sorted(lengths, key=lambda i: (-lengths[i], names[i]))
    batches = [order[start : start + llm.batch_size] for start in range(0, len(order), llm.batch_size)]

    calls = llm.workspace.calls if llm.workspace is not None else None
    known: dict[int, ChatResponse] = {}
    if calls is not None:
        rows = {i: calls.get(role, requests[i].item, prints[i]) for i in order}
        known = {i: _from_row(row) for i, row in rows.items() if row is not None}

    def ask(batch: list[int]) -> None:
        chosen = [requests[i] for i in batch]
        seeds = [int(prints[i][:15], 16) for i in batch]
        responses = llm.complete(chosen, seeds, max_new_tokens)
        if len(responses) != len(batch):
            raise RunError(f"{type(llm).__name__} gave {len(responses)} answers to {len(batch)} requests")
        for i, response in zip(batch, responses, strict=True):
            if i in known:
                continue
            known[i] = _checked(response, check)
            if calls is not None:
                calls.append(_to_row(known[i], role, requests[i], prints[i]))

    open_ = [b for b in batches if any(i not in known for i in b)]
    if open_ and hasattr(llm, "start"):  # here and not among the workers, which Ctrl-C does not reach
        llm.start()
    _each(open_, ask, llm.workers)
    return [known[first[name]] for name in names]


def _each(batches: list[list[int]], ask: Callable[[list[int]], None], workers: int) -> None:
    """Call ``ask`` on each batch, ``workers`` at once.

    After the first error or Ctrl-C no batch begins, and no request is sent or waited for any more
    (:data:`graphcontext.generate.rate_limit.STOPPING`); those under way are heard to their end.
    """
    if workers <= 1:
        for batch in batches:
            ask(batch)
        return
    stopping = threading.Event()

    def begin(batch: list[int]) -> None:
        STOPPING.set(stopping)
        if stopping.is_set():
            return
        try:
            ask(batch)
        except Stopped:
            return
        except BaseException:
            stopping.set()  # before the pool hands out the next batch
            raise

    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for future in as_completed([pool.submit(begin, batch) for batch in batches]):
                future.result()
        except KeyboardInterrupt:
            print("interrupted: waiting for the answers that are under way, to keep them", file=sys.stderr)
            raise
        finally:
            stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _checked(response: ChatResponse, check: Check | None) -> ChatResponse:
    if response.status == "ok" and not response.text.strip():
        response = replace(response, status="empty")
    if response.status == "failed" or check is None:
        return response
    fault = check(response)
    return response if fault is None else replace(response, status="failed", reason=fault)


def _to_row(response: ChatResponse, role: str, request: ChatRequest, fingerprint: str) -> dict[str, Any]:
    row = {
        "role": role,
        "item": request.item,
        "fingerprint": fingerprint,
        "messages": list(request.messages),
        "response": response.text,
        "finish": response.finish,
        "tokens": {"prompt": response.n_prompt_tokens, "completion": response.n_tokens},
        "seconds": round(response.seconds, 3),
        "status": response.status,
    }
    return row if response.reason is None else row | {"reason": response.reason}


def _from_row(row: dict[str, Any]) -> ChatResponse:
    return ChatResponse(
        item=row["item"],
        text=row["response"],
        finish=row["finish"],
        n_prompt_tokens=row["tokens"]["prompt"],
        n_tokens=row["tokens"]["completion"],
        seconds=row["seconds"],
        status=row["status"],
        reason=row.get("reason"),
    )


def too_long(item: str, n: int, max_new_tokens: int, window: int) -> ChatResponse:
    """Return the failure of a prompt of ``n`` tokens that leaves no room for its answer."""
    reason = f"prompt has {n} tokens and the answer up to {max_new_tokens}, window {window}"
    return ChatResponse(item, "", None, n, status="failed", reason=reason)


def check_decoding(temperature: float, top_p: float) -> None:
    """Raise an InputError unless temperature ≥ 0 and 0 < top_p ≤ 1."""
    if not 0 <= temperature < float("inf"):
        raise InputError(f"llm.temperature={temperature}; allowed: 0 (greedy) and more")
    if not 0 < top_p <= 1:
        raise InputError(f"llm.top_p={top_p}; allowed: above 0, up to 1")
