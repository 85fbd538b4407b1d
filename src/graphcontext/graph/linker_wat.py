"""Entities by WAT, the entity linker of d4science that KGP's code asks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Corpus, Passage
from graphcontext.enhance.surface_form import normalise
from graphcontext.errors import InputError, RunError
from graphcontext.generate.completions import (
    CONNECT,
    LONGEST_WAIT,
    RETRIED,
    check_address,
    check_patience,
    read_key,
    whole_characters,
)
from graphcontext.generate.rate_limit import retry_after, shared_limit
from graphcontext.graph.by_text import ByText
from graphcontext.graph.entity_links import texts_of
from graphcontext.overrides import check_secrets

OFFLINE = "linker=titles and linker=spacy_ner need no network"
EXPLAINED = 9  # the level of ``debug`` at which an answer holds priors


class WATLinker:
    """Asks WAT for the Wikipedia entities of each passage, and keeps its answers (KGP §2.2, TAGME there).

    The prior of an entity is WAT's mention → entity probability, the largest where a passage mentions it twice; WAT's
    confidence ρ is not looked at, as in the code. Answers lie in ``store/linker_wat/KEY.jsonl``, named by endpoint,
    language and method: a text is asked for once per store, and a run that is repeated asks nothing. WAT changes as
    Wikipedia does: the store is what can be repeated.

    429 waits as long as Retry-After says; 5xx, silence and cut answers are tried again. Texts that stay without an
    answer end the run once all others have theirs; the next run asks for them alone. Another 4xx, or a service that
    was never there, ends it at once. The token is read from the environment when a request is sent and goes to the
    service as it documents it, in the address: it is never stored, logged or put into an error.

    Args:
        endpoint: of WAT's annotation, without user, query or fragment.
        token_env: name of the environment variable with the token; not in a result's key (execution).
        language: of the texts.
        tokenizer: WAT's.
        method: WAT's pipeline of spotting, disambiguation and pruning; null is its default.
        requests_per_minute: by all runs of this process together, 1 and more; null is no limit (execution).
        max_retries: further tries after a fault that may pass, up to 1000 (execution).
        timeout: seconds without a byte, up to a day (execution).

    Raises:
        InputError: a value that is not allowed; at the first request, a token that is not set.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"token_env", "requests_per_minute", "max_retries", "timeout"})
    name: ClassVar[str] = "wat"

    def __init__(
        self,
        endpoint: str,
        token_env: str,
        language: str = "en",
        tokenizer: str = "nlp4j",
        method: str | None = None,
        requests_per_minute: float | None = 60.0,
        max_retries: int = 4,
        timeout: float = 60.0,
    ) -> None:
        check_secrets({"linker": {"endpoint": endpoint, "token_env": token_env}})  # both are written to files
        check_address("linker.endpoint", endpoint, "https://HOST/…")
        check_patience("linker", max_retries, timeout, requests_per_minute=requests_per_minute)
        for key, value in (("language", language), ("tokenizer", tokenizer)):
            if not value.isalnum():
                raise InputError(f"linker.{key}={value}; allowed: a word such as en or nlp4j")
        self.endpoint, self.token_env = endpoint, token_env
        self.language, self.tokenizer, self.method = language, tokenizer, method
        self.max_retries, self.timeout = max_retries, timeout
        self.limit = shared_limit(endpoint, token_env, requests_per_minute, None)
        self._by_text = ByText("linker_wat", self._facts, self._ask_all, batch=16)
        self._reasons: dict[str, str] = {}
        self._client: Any = None
        self._reached = False

    def bind(self, workspace: Any) -> None:
        """Keep answers in the workspace's store from now on."""
        self._by_text.bind(workspace)

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Ask for the passages of all corpora, each text once."""
        self._links(texts_of(corpora))

    def link(self, passages: Sequence[Passage]) -> list[list[tuple[str, float]]]:
        """Return the Wikipedia titles, normalised, that each passage mentions, with their priors.

        Raises:
            RunError: the service refuses, was never there, or gave no answer to some texts.
        """
        found = self._links([p.match_text for p in passages])
        return [[(entity, float(prior)) for entity, prior in links] for links in found]

    def _links(self, texts: Sequence[str]) -> list[list[list[Any]]]:
        found = self._by_text.of(texts)
        lost = sorted({text for text, links in zip(texts, found, strict=True) if links is None})
        if lost:
            kept = "the other answers are kept; run again to ask for these alone"
            raise RunError(f"no answer from {self.endpoint} for {len(lost)} texts ({self._reasons[lost[0]]}); {kept}")
        return found

    def _facts(self) -> list[Any]:
        return [self.version, self.endpoint, self.language, self.tokenizer, self.method]

    def _ask_all(self, texts: list[str]) -> list[list[list[Any]] | None]:
        return [self._ask(text) for text in texts]

    def _ask(self, text: str) -> list[list[Any]] | None:
        """Return the links of a text, None where there is no answer."""
        for attempt in range(self.max_retries + 1):
            self.limit.wait(0)
            links, reason, pause = self._get(text)
            if links is not None:
                return links
            self._reasons[text] = reason
            if pause is None:
                break
            if attempt < self.max_retries:
                self.limit.pause(pause if pause > 0 else min(60.0, 2.0**attempt))
        return None

    def _get(self, text: str) -> tuple[list[list[Any]] | None, str, float | None]:
        """Send one text → its links, or a reason and seconds to wait (0: our choice, None: no more tries)."""
        import httpx

        if self._client is None:
            logging.getLogger("httpx").setLevel(logging.WARNING)  # below it, addresses are logged: this one has a token
            self._client = httpx.Client(timeout=httpx.Timeout(self.timeout, connect=min(self.timeout, CONNECT)))
        token = self._token()
        asked = {"lang": self.language, "tokenizer": self.tokenizer, "debug": EXPLAINED, "text": text}
        if self.method is not None:
            asked["method"] = self.method
        try:
            reply = self._client.get(self.endpoint, params={"gcube-token": token, **asked})
        except httpx.HTTPError as error:
            reason = " ".join(f"{type(error).__name__}: {error}".replace(token, "***").split())[:200]
            self._reached |= not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if not self._reached:  # nobody was ever there: a further try would only hide it
                raise RunError(f"no answer from {self.endpoint}: {reason}; {OFFLINE}") from None
            return None, reason, 0.0
        self._reached = True
        named = f"HTTP {reply.status_code}"
        if reply.status_code in RETRIED:
            pause = retry_after(reply.headers.get("retry-after"))
            return None, named, None if pause > LONGEST_WAIT else pause
        if reply.status_code != 200:
            said = " ".join(reply.text.replace(token, "***").split())[:200]
            raise RunError(f"{self.endpoint} refuses the request: {named}: {said} (token from {self.token_env})")
        try:
            return links_of(reply.json()), "", None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return None, f"no annotations in the reply ({type(error).__name__})", 0.0

    def _token(self) -> str:
        token = read_key(self.token_env)
        if token is None:
            where = "https://sobigdata.d4science.org/web/tagme gives one"
            raise InputError(f"linker=wat needs a token: export {self.token_env} ({where}); {OFFLINE}")
        return token


def links_of(answer: dict[str, Any]) -> list[list[Any]]:
    """Return [normalised title, largest prior] of each entity in an answer of WAT, in order of appearance."""
    priors: dict[str, float] = {}
    for annotation in answer["annotations"]:
        title = normalise(whole_characters(annotation["title"]).replace("_", " "))
        prior = float(annotation["explanation"]["prior_explanation"]["entity_mention_probability"])
        if title:
            priors[title] = max(prior, priors.get(title, 0.0))
    return [[title, prior] for title, prior in priors.items()]
