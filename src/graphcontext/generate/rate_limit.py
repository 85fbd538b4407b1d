"""Token buckets for requests and tokens per minute, shared by the workers of one server."""

from __future__ import annotations

import email.utils
import functools
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

# set for each worker by who gave it work: once it is set, nothing more is sent, and nobody waits
STOPPING: ContextVar[threading.Event] = ContextVar("STOPPING")
_NEVER = threading.Event()


class Stopped(Exception):
    """No further request is to be sent: another one ended the run, or Ctrl-C did."""


def _sleep(seconds: float) -> None:
    STOPPING.get(_NEVER).wait(seconds)


class RateLimit:
    """Two token buckets and a common pause: :meth:`wait` returns when the next request may be sent.

    A bucket of rate r per minute holds r and refills at r / 60 a second. A request larger than the bucket
    waits until it is full.

    Args:
        requests_per_minute: None is no limit.
        tokens_per_minute: None is no limit.
        clock: seconds, monotonic.
        sleep: waits so many seconds, or until it is to stop.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = _sleep,
    ) -> None:
        self.rates = (requests_per_minute, tokens_per_minute)
        self.clock, self.sleep = clock, sleep
        self._lock = threading.Lock()
        self._levels = [rate or 0.0 for rate in self.rates]
        self._filled = clock()
        self._paused_until = float("-inf")

    def wait(self, tokens: int) -> None:
        """Take one request and ``tokens`` tokens, waiting as long as needed.

        Raises:
            Stopped: nothing is to be sent any more (:data:`STOPPING`).
        """
        while True:
            if STOPPING.get(_NEVER).is_set():
                raise Stopped
            with self._lock:
                seconds = self._missing((1, tokens))
                if seconds <= 0:
                    return
            self.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Let nobody send for so many seconds: the server asked for it."""
        with self._lock:
            self._paused_until = max(self._paused_until, self.clock() + seconds)

    def _missing(self, amounts: tuple[int, int]) -> float:
        """Take the amounts and return 0, or take nothing and return the seconds until they are there."""
        now = self.clock()
        if now < self._paused_until:
            return self._paused_until - now
        elapsed, self._filled = now - self._filled, now
        waits = [0.0]
        for i, (rate, amount) in enumerate(zip(self.rates, amounts, strict=True)):
            if rate is None:
                continue
            self._levels[i] = min(rate, self._levels[i] + rate / 60 * elapsed)
            waits.append((min(amount, rate) - self._levels[i]) * 60 / rate)
        if max(waits) > 1e-9:
            return max(waits)
        for i, (rate, amount) in enumerate(zip(self.rates, amounts, strict=True)):
            if rate is not None:
                self._levels[i] -= min(amount, rate)
        return 0.0


@functools.cache
def shared_limit(
    base_url: str, api_key_env: str | None, requests_per_minute: float | None, tokens_per_minute: float | None
) -> RateLimit:
    """Return the one limit of a server, key and rates in this process: a table's rows do not each begin anew."""
    return RateLimit(requests_per_minute, tokens_per_minute)


def retry_after(header: str | None) -> float:
    """Return the seconds that a Retry-After header asks for: a number or an HTTP date; 0 without one.

    >>> retry_after("2"), retry_after(None), retry_after("soon")
    (2.0, 0.0, 0.0)
    """
    if header is None:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # the year may have any number of digits
        return 0.0
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
