"""Token buckets on a clock of our own, and Retry-After."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.generate.rate_limit import RateLimit, retry_after


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limit(clock, requests=None, tokens=None) -> RateLimit:
    return RateLimit(requests, tokens, clock=lambda: clock.now, sleep=clock.sleep)


def test_without_limits_nobody_waits(clock):
    for _ in range(1000):
        limit(clock).wait(10**6)
    assert clock.now == 0


def test_a_full_bucket_of_requests_then_one_each_second(clock):
    bucket = limit(clock, requests=60)
    for _ in range(60):
        bucket.wait(1)
    assert clock.now == 0
    for _ in range(5):
        bucket.wait(1)
    assert clock.now == pytest.approx(5)


def test_tokens_refill_by_the_minute(clock):
    bucket = limit(clock, tokens=600)  # 10 a second
    bucket.wait(600)
    bucket.wait(100)
    assert clock.now == pytest.approx(10)


def test_a_request_larger_than_the_bucket_waits_until_it_is_full(clock):
    bucket = limit(clock, tokens=600)
    bucket.wait(300)
    bucket.wait(5000)  # 300 are missing
    assert clock.now == pytest.approx(30)


def test_a_pause_holds_everybody(clock):
    bucket = limit(clock)
    bucket.pause(2)
    bucket.pause(1)  # the longer one counts
    bucket.wait(1)
    assert clock.now == pytest.approx(2)


def test_retry_after_as_seconds_or_date():
    assert retry_after("2") == 2
    assert retry_after("-5") == 0
    assert retry_after(None) == 0
    assert retry_after("soon") == 0
    assert retry_after("Mon, 01 Jan 99999999999999999999 00:00:00 GMT") == 0  # no date that a calendar holds
    assert 8 < retry_after(email.utils.formatdate(time.time() + 10, usegmt=True)) <= 10


ZONES = st.sampled_from(["GMT", "+9999", "-0000", "-2359", "x", ""])


@settings(deadline=None)
@given(st.text() | st.builds("Mon, {} Jan {} {}:{}:00 {}".format, *[st.integers()] * 4, ZONES))
def test_any_retry_after_is_seconds(header):
    assert retry_after(header) >= 0
