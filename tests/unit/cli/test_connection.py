"""A connection: what addresses name."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.connection import (
    DEFAULT_SERVICE,
    Connection,
    is_database,
    is_embedded,
    is_file,
    is_remote,
    no_store,
    require_seal_key,
    store_path,
)
from reconciler.errors import UsageError
from tests.rows import each_row


@each_row(
    ("service", "file", "database", "remote"),
    [
        (DEFAULT_SERVICE, True, False, False),
        ("postgresql://host/x", False, True, False),
        ("postgres://host/x", False, True, False),
        ("https://host", False, False, True),
        ("http://127.0.0.1:9", False, False, True),
        ("ftp://host", False, False, False),
        ("SQLITE:x", False, False, False),
    ],
)
def test_the_scheme_says_what_an_address_names(
    service: str, *, file: bool, database: bool, remote: bool
) -> None:
    assert (is_file(service), is_database(service), is_remote(service)) == (file, database, remote)
    assert is_embedded(service) is (file or database)


def test_the_file_of_a_store_stands_after_the_scheme() -> None:
    assert store_path("sqlite:a:b.db") == Path("a:b.db")
    assert store_path("sqlite:/a/b.db") == Path("/a/b.db")


@pytest.mark.parametrize(
    "service",
    [
        "sqlite:",
        "sqlite:.",
        "sqlite:/",
        "sqlite://host/a",
        "sqlite:a\0b.db",
        "identity.db",
        "ftp://u:p@host",
    ],
)
def test_another_address_names_no_file_and_shows_no_password(service: str) -> None:
    with pytest.raises(UsageError) as refused:
        store_path(service)

    assert "u:p@" not in refused.value.problem
    assert "--service sqlite:PATH" in refused.value.remedy


def test_a_service_over_a_network_is_no_store() -> None:
    with pytest.raises(UsageError, match="https://host is not the address of a store") as refused:
        store_path("https://host")

    assert refused.value.remedy.startswith("Run the command where the store is")


@pytest.mark.parametrize(
    ("service", "place"), [("sqlite:a.db", "a.db"), ("postgresql://u:p@h/x", "h/x")]
)
def test_a_missing_store_is_named_without_a_password(service: str, place: str) -> None:
    problem = no_store(service).problem

    assert problem.endswith(place)
    assert ":p@" not in problem


def test_only_a_database_needs_the_shared_key(tmp_path: Path) -> None:
    require_seal_key(Connection(DEFAULT_SERVICE))
    require_seal_key(Connection("postgresql://h/x", seal_key_file=tmp_path / "key"))

    with pytest.raises(UsageError, match="needs the key"):
        require_seal_key(Connection("postgresql://h/x"))
