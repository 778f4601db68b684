"""Connections to a database that is known to be away, or was never asked."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore.errors import StoreUnreachableError, StoreUnusableError
from reconciler.service.eventstore.postgres import Connections
from reconciler.service.eventstore.postgres_statements import reading


def test_taking_an_address_connects_to_nothing() -> None:
    """The place is what messages show: the address without its parameters."""
    connections = Connections("postgresql://db.invalid/identity?connect_timeout=1")

    assert connections.place == "postgresql://db.invalid/identity"
    connections.close()


def test_what_is_no_address_is_refused_at_once() -> None:
    with pytest.raises(StoreUnusableError):
        Connections("mysql://db.invalid/identity")


def test_once_it_is_abandoned_nothing_waits_for_the_database() -> None:
    """A server that ends refuses what comes, without a look at the network."""
    connections = Connections("postgresql://db.invalid/identity")
    connections.abandon()

    with (
        pytest.raises(StoreUnreachableError, match="the server ends"),
        connections.begun(reading),
    ):
        pass
