"""Who may reach what: every operation, every state of a credential, every transport.

What belongs to another organization looks exactly like what does not exist, to the letter; and
whoever is refused has written nothing.
"""

from __future__ import annotations

import itertools
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.operations.callers import make_token
from reconciler.service.operations.table import operations
from tests.contract.right_requests import NOTHING, Tenant, right_requests, tenant_of
from tests.running import Server, running_server
from tests.wires import WIRES, Answered, Headers, Outcome, Refused, Wire

OK, INVALID, MISSING, FORBIDDEN, MOVED, ABORTED, NOBODY = 0, 3, 5, 7, 9, 10, 16
NEEDS_NO_TOKEN = {"Healthz"}
SERVICE_ITSELF = {"GetIAM", "GetServiceInfo"}
ADMINS_ONLY = {"AddOrg", "ListTokens"}
NAMES = (f"tenant-{number}" for number in itertools.count())
T = TypeVar("T")


def fields_of(operation: str, tenant: Tenant) -> dict[str, Any]:
    """Return a right request, about what a tenant holds."""
    return dict(right_requests(tenant, next(NAMES)).get(operation, {}))


def names_an_object(operation: str) -> bool:
    """Say whether a request says by id what it is about."""
    return fields_of(operation, NOTHING) != {} and "404" in fields_of(operation, NOTHING).values()


class Matrix:
    """A server with two tenants, and every kind of token."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._log = sqlite3.connect(server.store)
        self.wires: dict[str, Wire] = {name: make(server) for name, make in WIRES.items()}
        self.tokens = {**server.known.tokens, **self._odd_tokens()}
        self.acme = self._tenant(server.known.organization, "editor")
        self.other = self._tenant(server.known.other_organization, "stranger")

    def _odd_tokens(self) -> dict[str, str]:
        good = self.server.token("editor")
        found = {
            "garbage": "rct_" + "x" * 51,
            "truncated": good[:-1],
            "longer": good + "0",
            "changed": good[:20] + ("A" if good[20] != "A" else "B") + good[21:],
            "upper case": good.upper(),
            "empty": "",
        }
        with closing(open_sqlite(self.server.store)) as service:
            now = service.now()
            for name, expires, revoked in (("expired", now - 1, 0), ("revoked", 0, now)):
                row = TokenRow(name, "admin", "", b"", now - 2, expires, revoked)
                token = make_token(service.store, row, secrets.token_bytes)
                assert token is not None
                found[name] = token.reveal()
        return found

    def _tenant(self, organization: str, by: str) -> Tenant:
        def make(operation: str, fields: dict[str, Any]) -> Mapping[str, Any]:
            outcome = self.wires["json"].call(operation, fields, self.headers(by))
            assert isinstance(outcome, Answered)
            return outcome.fields

        return tenant_of(organization, make)

    def headers(self, token: str | None, *more: tuple[str, str]) -> Headers:
        if token is None:
            return list(more)
        return [("authorization", f"Bearer {self.tokens[token]}"), *more]

    def call(
        self, transport: str, operation: str, tenant: Tenant, headers: Headers
    ) -> tuple[Outcome, int]:
        """Return the outcome of a call, and how many events it wrote."""
        before = self._event_count()
        outcome = self.wires[transport].call(operation, fields_of(operation, tenant), headers)
        return outcome, self._event_count() - before

    def _event_count(self) -> int:
        (count,) = self._log.execute("SELECT count(*) FROM events").fetchone()
        return int(count)

    def close(self) -> None:
        self._log.close()
        for wire in self.wires.values():
            wire.close()


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """Serve two tenants."""
    with running_server(tmp_path_factory.mktemp("tenancy")) as server:
        matrix = Matrix(server)
        yield matrix
        matrix.close()


def rows(*, needs_token: bool = True) -> Sequence[Any]:
    """Return every operation over every transport that has it."""
    return [
        pytest.param(transport, row.name, id=f"{row.name} over {transport}")
        for row in operations().values()
        for transport in WIRES
        if (row.grpc or transport == "json")
        and not row.name.endswith(("Lease", "Trust"))
        and not (needs_token and row.name in NEEDS_NO_TOKEN)
    ]


EVERYWHERE = pytest.mark.parametrize(("transport", "operation"), rows())
ODD_TOKENS = ("garbage", "truncated", "longer", "changed", "upper case", "expired", "revoked")


def share(transport: str, operation: str, odd: Sequence[T]) -> Sequence[T]:
    """Return those of a list that a row tries: its transports share it out for each operation.

    Every one meets every operation, and every transport; which transport has which of them differs
    from operation to operation.
    """
    ways = list(WIRES) if operations()[operation].grpc else ["json"]
    first = ways.index(transport) + list(operations()).index(operation)
    return odd[first % len(ways) :: len(ways)]


@EVERYWHERE
def test_who_is_not_known_learns_nothing(matrix: Matrix, transport: str, operation: str) -> None:
    """No token, or one that is wrong in any way, is 16 before anything else is looked at."""
    # The holder of a token that was valid once is told so, and nothing else.
    told = {"expired": "the token has expired", "revoked": "the token was revoked"}
    never_valid = set()
    for token in [None, "garbage", *share(transport, operation, ODD_TOKENS)]:
        outcome, events = matrix.call(transport, operation, matrix.acme, matrix.headers(token))
        assert isinstance(outcome, Refused)
        assert (outcome.code, events) == (NOBODY, 0)
        if token in told:
            assert told[token] in str(outcome)
        elif token is not None:
            never_valid.add(str(outcome))
    assert len(never_valid) == 1


@EVERYWHERE
def test_a_viewer_reads_and_does_not_write(matrix: Matrix, transport: str, operation: str) -> None:
    """A plan in CI holds a token that cannot change a thing."""
    outcome, events = matrix.call(transport, operation, matrix.acme, matrix.headers("viewer"))

    assert events == 0
    if operations()[operation].writes or operation in ADMINS_ONLY:
        assert isinstance(outcome, Refused)
        assert outcome.code == FORBIDDEN
    else:
        assert isinstance(outcome, Answered), outcome


@EVERYWHERE
@pytest.mark.parametrize("named", [False, True], ids=["no header", "its own in the header"])
def test_what_others_hold_looks_like_what_does_not_exist(
    matrix: Matrix, transport: str, operation: str, *, named: bool
) -> None:
    """Not even the wording tells whether an id is somebody else's; and the owner decides alone."""
    own = [("x-service-orgid", matrix.other.organization)] if named else []
    stranger = matrix.headers("stranger", *own)
    foreign, events = matrix.call(transport, operation, matrix.acme, stranger)
    missing, _ = matrix.call(transport, operation, NOTHING, stranger)

    if names_an_object(operation):
        assert isinstance(foreign, Refused)
        assert (foreign.code, events) == (MISSING, 0)
        assert foreign == missing
    else:
        assert not _mentions(foreign, matrix.acme)


@EVERYWHERE
@pytest.mark.parametrize("header", ["x-service-orgid", "x-zitadel-orgid"])
def test_the_header_opens_no_door(
    matrix: Matrix, transport: str, operation: str, header: str
) -> None:
    """Selecting an organization that is not the token's is selecting one that does not exist."""
    if operation in SERVICE_ITSELF | ADMINS_ONLY:
        return
    acme, nobody = matrix.acme.organization, "404"

    foreign, events = matrix.call(
        transport, operation, matrix.acme, matrix.headers("stranger", (header, acme))
    )
    missing, _ = matrix.call(
        transport, operation, matrix.acme, matrix.headers("stranger", (header, nobody))
    )

    assert events == 0
    assert foreign == missing
    assert not _mentions(foreign, matrix.acme)


@EVERYWHERE
def test_a_header_that_is_not_one_organization_is_refused(
    matrix: Matrix, transport: str, operation: str
) -> None:
    """Twice, a list, or nonsense: nobody guesses which one was meant."""
    acme, other = matrix.acme.organization, matrix.other.organization
    odd: Sequence[Sequence[tuple[str, str]]] = [
        [("x-service-orgid", acme), ("x-service-orgid", other)],
        [("x-service-orgid", acme), ("x-service-orgid", acme)],
        [("x-service-orgid", f"{acme},{other}")],
        [("x-service-orgid", f"{acme}, {other}")],
        [("x-service-orgid", acme), ("x-zitadel-orgid", other)],
        [("x-service-orgid", "../" + acme)],
        [("x-service-orgid", "1" * 201)],
        [("x-service-orgid", "a b")],
    ]
    for headers in share(transport, operation, odd):
        outcome, events = matrix.call(
            transport, operation, matrix.acme, matrix.headers("editor", *headers)
        )
        if operation in ADMINS_ONLY:
            assert isinstance(outcome, Refused)
            continue
        assert isinstance(outcome, Refused), headers
        assert (outcome.code, events) == (INVALID, 0), headers


@EVERYWHERE
def test_an_empty_header_means_the_tokens_own_organization(
    matrix: Matrix, transport: str, operation: str
) -> None:
    """Public clients send an empty header where none is set."""
    headers = matrix.headers("editor", ("x-service-orgid", ""), ("if-match", '"1"'))
    outcome, _ = matrix.call(transport, operation, matrix.acme, headers)

    if operation in ADMINS_ONLY:
        assert isinstance(outcome, Refused)
        assert outcome.code == FORBIDDEN
    elif isinstance(outcome, Refused):
        # If-match keeps every write from landing, and a claim is made under a lease.
        wanted = {ABORTED} if operation == "ClaimSecrets" else {MOVED, INVALID}
        assert outcome.code in wanted, outcome
    else:
        assert not operations()[operation].writes


def test_a_token_counts_or_ends_at_once(matrix: Matrix) -> None:
    """The server looks every call up; it remembers nobody."""
    with closing(open_sqlite(matrix.server.store)) as service:
        row = TokenRow("brief", "viewer", "", b"", service.now(), 0, 0)
        token = make_token(service.store, row, secrets.token_bytes)
        assert token is not None
        matrix.tokens["brief"] = token.reveal()
        call = ("json", "GetProjectByID", matrix.acme, matrix.headers("brief"))
        assert isinstance(matrix.call(*call)[0], Answered)

        with service.store.transaction() as tx:
            (known,) = [row for row in tx.tokens() if row.name == "brief"]
            tx.put(known._replace(revoked_at=service.now()))

        assert isinstance(matrix.call(*call)[0], Refused)


def test_every_edit_of_a_token_is_nobody(matrix: Matrix) -> None:
    """A token cut short or changed in one character is no token."""
    good = matrix.server.token("admin")
    edits = {good[:length] for length in range(1, len(good), 3)}
    edits |= {
        good[:at] + ("a" if good[at] != "a" else "b") + good[at + 1 :] for at in range(len(good))
    }
    edits |= {good.swapcase(), good + "a", "x" + good, good[1:], good * 2}
    for edit in sorted(edits - {good}):
        headers = [("authorization", f"Bearer {edit}")]
        outcome = matrix.wires["json"].call("GetServiceInfo", {}, headers)
        assert isinstance(outcome, Refused), edit
        assert outcome.code == NOBODY


def _mentions(outcome: Outcome, tenant: Tenant) -> bool:
    text = str(outcome)
    return any(
        one in text for one in (tenant.project, tenant.application, tenant.provider, tenant.action)
    )
