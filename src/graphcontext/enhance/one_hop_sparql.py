"""One-hop triples from a SPARQL endpoint, asked once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.enhance.one_hop import EMPTY, Neighbours, Statement, id_number, meant, neighbours_of
from graphcontext.enhance.surface_form import normalise
from graphcontext.errors import InputError, RunError
from graphcontext.files import append_lines, digest, read_lines
from graphcontext.generate.completions import (
    CONNECT,
    LONGEST_WAIT,
    RETRIED,
    check_address,
    check_patience,
    whole_characters,
)
from graphcontext.generate.rate_limit import retry_after, shared_limit

QUERY = """\
SELECT DISTINCT ?name ?item ?rank ?property ?relation ?tail ?label WHERE {
  VALUES ?name { %(names)s }
  { ?item rdfs:label ?name . BIND(0 AS ?rank) } UNION { ?item skos:altLabel ?name . BIND(1 AS ?rank) }
  MINUS { ?item wdt:P31 ?page . VALUES ?page { wd:Q4167410 wd:Q4167836 wd:Q11266439 } }
  ?item ?direct ?tail .
  ?property wikibase:directClaim ?direct ; rdfs:label ?relation . FILTER(LANG(?relation) = "%(language)s")
  ?tail wikibase:sitelinks [] ; rdfs:label ?label . FILTER(LANG(?label) = "%(language)s")
}"""
COLUMNS = ("name", "item", "rank", "property", "relation", "tail", "label")


class OneHopSparql:
    """Asks a SPARQL endpoint for one-hop triples, and keeps its answers: GraphContextGen §4.3.

    A name is asked for as written, in lower case, with a capital and in capitals, as a label or an alias; which entity
    it means is decided as in :class:`graphcontext.enhance.one_hop_index.OneHopIndex`. An endpoint tells upper from
    lower case, and no rule makes "OpenSSH" of "openssh": two spellings of one name may have two answers, each of them
    the same whatever else is asked. Answers lie in ``store/one_hop/KEY.jsonl``, named by endpoint, language and query:
    a spelling is asked for once per store, and a run that is repeated asks nothing. An endpoint changes from day to
    day: the store is what can be repeated.

    429 waits as long as Retry-After says; 5xx, silence and cut answers are tried again; what stays without an answer
    is ``failed`` and asked for by the next run. Another 4xx, or an endpoint that was never there, ends the run at once.

    Args:
        name: the source of each sentence in a context.
        endpoint: of SPARQL 1.1 with Wikidata's prefixes, without user, query or fragment.
        language: of labels and aliases.
        user_agent: who asks, with a contact, as Wikimedia demands (execution).
        names_per_query: names in one request (execution).
        requests_per_minute: by all runs of this process together, 1 and more; null is no limit (execution).
        max_retries: further tries after a fault that may pass, up to 1000 (execution).
        timeout: seconds without a byte, up to a day (execution).

    Raises:
        InputError: a value that is not allowed.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset(
        {"user_agent", "names_per_query", "requests_per_minute", "max_retries", "timeout"}
    )

    def __init__(
        self,
        name: str,
        endpoint: str,
        language: str,
        user_agent: str,
        names_per_query: int = 16,
        requests_per_minute: float | None = 30.0,
        max_retries: int = 4,
        timeout: float = 70.0,
    ) -> None:
        if any(mark in endpoint for mark in "@?#"):
            raise InputError(
                "one_hop.endpoint has a user, query or fragment, which may be a key; allowed: https://HOST/…"
            )
        check_address("one_hop.endpoint", endpoint, "https://HOST/…")
        if not language.replace("-", "").isalnum() or not user_agent.isprintable() or not user_agent.strip():
            got = f"language={language!r}, user_agent={user_agent!r}"
            raise InputError(f"one_hop: {got}; allowed: a code such as en, and a name with a contact")
        check_patience("one_hop", max_retries, timeout, requests_per_minute=requests_per_minute)
        if names_per_query < 1:
            raise InputError(f"one_hop.names_per_query={names_per_query}; allowed: 1 and more")
        self.name, self.endpoint, self.language, self.user_agent = name, endpoint, language, user_agent
        self.names_per_query, self.max_retries, self.timeout = names_per_query, max_retries, timeout
        self.limit = shared_limit(endpoint, None, requests_per_minute, None)
        self._known: dict[str, list[list[str]]] | None = None
        self._file: Path | None = None
        self._client: Any = None
        self._reached = False

    def bind(self, workspace: Any) -> None:
        """Keep answers in the workspace's store from now on."""
        key = digest([self.version, self.endpoint, self.language, QUERY])
        self._file, self._known = workspace.store.root / "one_hop" / f"{key[:16]}.jsonl", None

    def neighbours(self, names: Sequence[str]) -> dict[str, Neighbours]:
        """Return each name → the triples of the entity that it means; a blank one means none.

        Raises:
            RunError: the endpoint refuses the query, or was never there.
        """
        if self._known is None:
            rows = [] if self._file is None else read_lines(self._file)
            self._known = {row["name"]: row["rows"] for row in rows if {"name", "rows"} <= set(row)}
        missing = sorted({name for name in names if normalise(name)} - set(self._known))
        failures: dict[str, str] = {}
        for start in range(0, len(missing), self.names_per_query):
            batch = missing[start : start + self.names_per_query]
            answer, reason = self._ask(batch)
            if answer is None:
                failures |= dict.fromkeys(batch, reason)
                continue
            found = by_name(answer, batch)
            self._known |= found
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                append_lines(self._file, [{"name": name, "rows": rows} for name, rows in found.items()])
        return {
            name: Neighbours(status="failed", reason=failures[name])
            if name in failures
            else read_rows(self._known.get(name, ()), self.endpoint)
            for name in names
        }

    def _ask(self, names: Sequence[str]) -> tuple[list[dict[str, str]] | None, str]:
        """Return the rows about some names, or None and the reason."""
        spellings = dict.fromkeys(s for name in names for s in variants(name))
        literals = " ".join(f"{literal(s)}@{self.language}" for s in spellings)
        query = QUERY % {"names": literals, "language": self.language}
        reason = ""
        for attempt in range(self.max_retries + 1):
            self.limit.wait(0)
            rows, reason, pause = self._post(query)
            if rows is not None or pause is None:
                return rows, reason
            if attempt < self.max_retries:
                self.limit.pause(pause if pause > 0 else min(60.0, 2.0**attempt))
        return None, reason

    def _post(self, query: str) -> tuple[list[dict[str, str]] | None, str, float | None]:
        """Send one query → its rows, or a reason and seconds to wait (0: our choice, None: no more tries)."""
        import httpx

        where = f"{self.name} ({self.endpoint})"
        if self._client is None:
            timeout = httpx.Timeout(self.timeout, connect=min(self.timeout, CONNECT))
            agent = {"User-Agent": self.user_agent, "Accept": "application/sparql-results+json"}
            self._client = httpx.Client(timeout=timeout, headers=agent)
        try:
            reply = self._client.post(self.endpoint, data={"query": query})
        except httpx.HTTPError as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            self._reached |= not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if not self._reached:  # nobody was ever there: a further try would only hide it
                offline = "one_hop=file and one_hop=index need no network"
                raise RunError(f"no answer from {where}: {reason}; {offline}") from error
            return None, reason, 0.0
        self._reached = True
        named = f"HTTP {reply.status_code}"
        if reply.status_code in RETRIED:
            pause = retry_after(reply.headers.get("retry-after"))
            too_long = pause > LONGEST_WAIT
            return None, f"{named}, it asks to wait {pause:.0f} s" if too_long else named, None if too_long else pause
        if reply.status_code != 200:
            said = " ".join(reply.text.split())[:200]
            raise RunError(f"{where} refuses the query: {named}: {said}")
        try:
            bindings = reply.json()["results"]["bindings"]
            return [{key: whole_characters(row[key]["value"]) for key in COLUMNS} for row in bindings], "", None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return None, f"no SPARQL result in the reply ({type(error).__name__})", 0.0


def variants(name: str) -> list[str]:
    """Return the spellings under which a name is asked for; labels are case-sensitive there.

    >>> variants("Kernel module")
    ['Kernel module', 'kernel module', 'Kernel Module', 'KERNEL MODULE']
    """
    plain = " ".join(name.split())
    lower = plain.lower()
    return list(dict.fromkeys([plain, lower, lower[:1].upper() + lower[1:], lower.title(), plain.upper()]))


def literal(text: str) -> str:
    r"""Return a SPARQL string literal; quotes, backslashes and control characters cannot end it.

    >>> print(literal('say "hi"'))
    "say \"hi\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'


def by_name(answer: Iterable[dict[str, str]], names: Sequence[str]) -> dict[str, list[list[str]]]:
    """Return name → its rows, sorted; each name has an entry, so that it is not asked for again."""
    found: dict[str, list[list[str]]] = {name: [] for name in names}
    rows = sorted([row[key] for key in COLUMNS] for row in answer)
    for name in names:
        spellings = set(variants(name))
        found[name] = [row for row in rows if row[0] in spellings]
    return found


def read_rows(rows: Iterable[Sequence[str]], where: str) -> Neighbours:
    """Return the triples of the entity that is meant; ids are the last parts of IRIs."""
    candidates: set[tuple[int, int, str]] = set()
    statements: dict[int, list[Statement]] = {}
    for written, item, rank, relation_id, relation, tail, label in rows:
        head, number, end = (id_number(iri.rpartition("/")[2], where) for iri in (item, relation_id, tail))
        candidates.add((int(rank), head, written))
        statements.setdefault(head, []).append(Statement(head, number, relation, end, label))
    found = meant(c for c in candidates if normalise(c[2]))
    return EMPTY if found is None else neighbours_of(found[1], statements[found[0]])
