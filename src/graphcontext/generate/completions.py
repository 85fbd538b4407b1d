"""Ask an OpenAI-compatible server until it answers or is given up: one place for requests, faults and waiting."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from graphcontext.errors import InputError, RunError
from graphcontext.generate.chat import ChatResponse
from graphcontext.generate.rate_limit import RateLimit, retry_after

CONNECT = 4.0  # seconds to connect in, at most
LONGEST_WAIT = 600.0  # seconds; a server that asks for more gets no further try for this item
LONGEST_REPLY = 5  # times the timeout: a reply that still drips then is given up
LARGEST_REPLY = 16 * 2**20  # bytes; no answer is that long
MOST_RETRIES, DAY = 1000, 86400.0
REFUSED = {401: "refuses the key", 403: "forbids the request", 404: "does not know the address or model"}
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
CUT = frozenset({"length", "model_length", "max_tokens"})  # what servers call an answer that the token limit cut
BROKEN = frozenset({"error", "abort"})
SECRET_LENGTH = 12  # a shorter "key" (none, EMPTY) is a word that an answer may hold
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Endpoint:
    """A server and how patiently it is asked.

    Args:
        base_url: up to and with ``/v1``.
        model: as the server names it.
        key: returns the key, or None; asked at each request, so that it is stored nowhere.
        key_name: what the key is called in messages.
        max_retries: further tries after a fault that may pass.
        timeout: seconds without a byte; five times that for a whole reply.
        workers: requests at once.
    """

    base_url: str
    model: str
    key: Callable[[], str | None]
    key_name: str | None
    max_retries: int
    timeout: float
    workers: int


@dataclass(frozen=True)
class _Fault:
    """Why there was no answer; ``pause`` is how long the server asks to wait, None where no further try helps."""

    reason: str
    pause: float | None = 0.0


class CompletionClient:
    """Sends requests to one server; safe from several threads.

    429 and 503 wait as long as Retry-After says, all workers with it; 5xx, cut or odd JSON, a reset and silence are
    tried again; a refused key, an unknown model, a redirect, or a server that was never there, ends the run at once.

    Args:
        endpoint: the server.
        limit: shared by all that ask it.
        examine: called after a connection broke; raises where the server is known to be gone.
    """

    def __init__(self, endpoint: Endpoint, limit: RateLimit, examine: Callable[[], None] = lambda: None) -> None:
        self.endpoint, self.limit, self.examine = endpoint, limit, examine
        self._client: Any = None
        self._starting = threading.Lock()
        self._reached = False

    def ask(self, item: str, path: str, body: dict[str, Any], tokens: int) -> ChatResponse:
        """Post ``body`` to ``path``; a fault that stays is the item's failure.

        Args:
            item: whom the answer is for.
            path: below the base URL: ``chat/completions`` or ``completions``.
            body: of the request.
            tokens: of prompt and answer, for the rate limit.

        Raises:
            RunError: no request to this server can succeed.
            Stopped: it was to be tried (again), and nothing is to be sent any more.
        """
        start = time.perf_counter()
        found = _Fault("")
        for attempt in range(self.endpoint.max_retries + 1):
            self.limit.wait(tokens)
            answered = self._post(item, path, body)
            if isinstance(answered, ChatResponse):
                return answered
            found = answered
            if found.pause is None:
                break
            if attempt < self.endpoint.max_retries:
                self.limit.pause(found.pause if found.pause > 0 else min(30.0, 0.5 * 2**attempt))
        seconds = time.perf_counter() - start
        return ChatResponse(item, "", seconds=seconds, status="failed", reason=found.reason)

    def _post(self, item: str, path: str, body: dict[str, Any]) -> ChatResponse | _Fault:
        import httpx

        start = time.perf_counter()
        try:
            status, headers, content = self._exchange(path, body)
        except httpx.HTTPError as error:
            self.examine()
            reason = type(error).__name__
            if not isinstance(error, httpx.LocalProtocolError):  # that one quotes our own headers
                reason = self.clean(f"{reason}: {error}")
            self._reached |= not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if not self._reached:  # nobody was ever there: a further try would only hide it
                unanswered = f"no answer from {self.endpoint.base_url}: {reason}"
                raise RunError(f"{unanswered}; is the server up?") from error
            return _Fault(reason)
        self._reached = True
        if content is None:
            return _Fault(f"the reply is longer than {LARGEST_REPLY // 2**20} MiB", None)
        if status != 200:
            return self._refused(status, headers, content.decode(errors="replace"))
        try:
            return self._read(item, json.loads(content), time.perf_counter() - start)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            return _Fault(f"no completion in the reply ({type(error).__name__})")

    def _exchange(self, path: str, body: dict[str, Any]) -> tuple[int, Any, bytes | None]:
        """Return status, headers and body of the reply; None as the body of one that is far too long."""
        import httpx

        key = self.endpoint.key()
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = f"{self.endpoint.base_url}/{path}"
        deadline = time.perf_counter() + LONGEST_REPLY * self.endpoint.timeout
        with self._http().stream("POST", url, json=body, headers=headers) as reply:
            content = bytearray()
            for part in reply.iter_bytes():
                content += part
                if len(content) > LARGEST_REPLY:
                    return reply.status_code, reply.headers, None
                if time.perf_counter() > deadline:
                    seconds = LONGEST_REPLY * self.endpoint.timeout
                    raise httpx.ReadTimeout(f"the reply was not whole after {seconds:g} s", request=reply.request)
            return reply.status_code, reply.headers, bytes(content)

    def _refused(self, status: int, headers: Any, text: str) -> _Fault:
        """Return what a status other than 200 means for the item; a RunError where it means the same for all."""
        url, named = self.endpoint.base_url, f"HTTP {status}"
        if status in REFUSED:
            key = f" (key from {self.endpoint.key_name})" if self.endpoint.key_name else ""
            raise RunError(f"{url} {REFUSED[status]}: {named}, model {self.endpoint.model}{key}")
        if 300 <= status < 400:  # not followed: the key would go where the reply says
            to = self.clean(headers.get("location", "nowhere"))
            raise RunError(f"{url} redirects to {to}: {named}; set llm.base_url to where the server is")
        if status == 429 and "insufficient_quota" in text:
            raise RunError(f"{url}: the quota of the key in {self.endpoint.key_name} is used up")
        if status not in RETRIED:
            return _Fault(self.clean(f"{named}: {text}"), None)
        pause = retry_after(headers.get("retry-after"))
        if pause > LONGEST_WAIT:
            return _Fault(f"{named}, the server asks to wait {pause:.0f} s", None)
        return _Fault(named, pause)

    def _read(self, item: str, reply: dict[str, Any], seconds: float) -> ChatResponse | _Fault:
        """Read a chat completion or a plain one."""
        choice = reply["choices"][0]
        text = whole_characters((choice["message"]["content"] if "message" in choice else choice["text"]) or "")
        finish = choice.get("finish_reason")
        if finish == "content_filter":
            return _Fault("the server's content filter held the answer back", None)
        if finish in BROKEN:
            return _Fault(f"the server broke the answer off ({finish})")
        key = self.endpoint.key()
        if key and len(key) >= SECRET_LENGTH:
            text = text.replace(key, "***")
        return ChatResponse(
            item=item,
            text=text.strip(),
            finish="length" if finish in CUT else "stop" if finish == "stop" else None,
            n_prompt_tokens=_count(reply, "prompt_tokens"),
            n_tokens=_count(reply, "completion_tokens"),
            seconds=seconds,
        )

    def _http(self) -> Any:
        with self._starting:
            if self._client is None:
                import httpx

                logging.getLogger("httpcore").setLevel(logging.INFO)  # its debug lines hold headers
                timeout = httpx.Timeout(self.endpoint.timeout, connect=min(self.endpoint.timeout, CONNECT))
                limits = httpx.Limits(max_connections=self.endpoint.workers)
                proxied = not is_loopback(self.endpoint.base_url)
                self._client = httpx.Client(timeout=timeout, limits=limits, trust_env=proxied)
            return self._client

    def clean(self, text: str) -> str:
        """Return one short line without the key."""
        key = self.endpoint.key()
        line = " ".join(text.split())
        return (line.replace(key, "***") if key else line)[:300]


def read_key(variable: str) -> str | None:
    """Return the key in an environment variable; None where it is not set or blank.

    Raises:
        InputError: it is no key; what it is instead is not shown.
    """
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch("[!-~]*", key):
        wrong = "holds a blank, a line break or another sign that no key has (several keys?), not shown here"
        raise InputError(f"the environment variable {variable} {wrong}; export one key")
    return key or None


def whole_characters(text: str) -> str:
    r"""Return a text of a reply with U+FFFD for half a surrogate pair (an emoji cut in two), which no file can hold.

    >>> whole_characters("iptables \ud83d") == "iptables \ufffd"
    True
    """
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def check_address(key: str, url: str, allowed: str) -> None:
    """Raise an InputError unless ``url`` is http(s) and names a host, and a port that there is.

    Args:
        key: what the message calls it.
        url: without user, query or fragment: the message shows it.
        allowed: what the message says is.
    """
    import httpx

    try:
        parts = httpx.URL(url)
        parts.raw_host.decode().encode("idna")  # as a name is looked up
        whole = bool(parts.host) and (parts.port is None or 0 < parts.port < 2**16)
    except (httpx.InvalidURL, UnicodeError):
        whole = False
    if not whole or not url.startswith(("http://", "https://")):
        raise InputError(f"{key}={url}; allowed: {allowed}")


def check_patience(group: str, max_retries: int, timeout: float, **rates: float | None) -> None:
    """Raise an InputError unless 0 ≤ max_retries ≤ 1000, 0 < timeout ≤ a day, and each rate a minute is 1 or more.

    Args:
        group: what the message puts before a name.
        max_retries: further tries.
        timeout: seconds.
        rates: None is no limit.
    """
    if not 0 <= max_retries <= MOST_RETRIES:
        raise InputError(f"{group}.max_retries={max_retries}; allowed: 0 to {MOST_RETRIES}")
    if not 0 < timeout <= DAY:
        raise InputError(f"{group}.timeout={timeout}; allowed: above 0, up to {DAY:.0f} seconds")
    for name, rate in rates.items():
        if rate is not None and not 1 <= rate < float("inf"):
            raise InputError(f"{group}.{name}={rate}; allowed: 1 and more, or null for no limit")


def _count(reply: dict[str, Any], name: str) -> int:
    """Return a number of the reply's ``usage``; 0 where the server says none: an answer is not lost over it."""
    usage = reply.get("usage")
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if isinstance(found, int) else 0


def is_loopback(url: str) -> bool:
    """Tell whether ``url`` is on this machine: no proxy lies between."""
    return (urlsplit(url).hostname or "") in LOOPBACK
