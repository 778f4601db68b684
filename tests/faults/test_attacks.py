"""Each attack of the table once, as weak as it comes and without TLS, beside honest callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.test_serve import make_certificate
from tests.faults.attack_run import LONG, QUICK, Field, a_field
from tests.faults.attacks import ATTACKS, combinations
from tests.faults.rows.attacks import NAMES
from tests.running import Server, running_server


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    """Start the processes of attackers and of honest callers."""
    with a_field() as field:
        yield field


class Servers:
    """A server for attack after attack, and another one once an attack has harmed it."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._running = ExitStack()
        self._server: Server | None = None

    def sound(self) -> Server:
        """Return a server that no attack has harmed."""
        if self._server is None:
            folder = self._folders.mktemp("attacked")
            self._server = self._running.enter_context(running_server(folder))
        return self._server

    def end(self) -> None:
        """End the server; it must stop when told to, and not have stumbled."""
        self._server = None
        self._running.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Run servers, one at a time."""
    servers = Servers(tmp_path_factory)
    yield servers
    servers.end()


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_costs_honest_callers_little(servers: Servers, field: Field, attack: str) -> None:
    """The server keeps to the memory that it promises, gives it back, and refuses no call."""
    outcome = field.run(servers.sound(), combinations(ATTACKS[attack])[0], QUICK)
    found = list(outcome.findings())
    if found:
        servers.end()

    assert not found, outcome
    assert outcome.done.opened > 0
    assert outcome.done.sent > 0 or attack in {"empty", "gone at once"}


@pytest.mark.slow
def test_memory_of_connections_with_tls_is_given_back(field: Field, tmp_path: Path) -> None:
    """What OpenSSL frees stays with the process, unless it is given back."""
    certificate, key = make_certificate(tmp_path)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with running_server(tmp_path, *tls) as server:
        outcome = field.run(server, combinations(ATTACKS["idle"])[-1], LONG)

    assert not list(outcome.findings()), outcome


def test_every_attack_is_a_row_of_the_soak() -> None:
    """There it is tried in every combination."""
    assert list(NAMES.values()) == list(ATTACKS)
