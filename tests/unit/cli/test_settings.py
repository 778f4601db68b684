"""Settings: what addresses name, and variables that are read, empty or misspelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.settings import (
    DEFAULT_SERVICE,
    INTERNAL,
    KNOWN,
    TOKEN,
    Connection,
    is_ci,
    is_database,
    is_embedded,
    is_file,
    is_remote,
    misspelt,
    no_store,
    require_seal_key,
    store_path,
    variable,
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


@pytest.mark.parametrize("service", ["sqlite:", "sqlite://host/a", "identity.db", "ftp://u:p@host"])
def test_another_address_names_no_file_and_shows_no_password(service: str) -> None:
    with pytest.raises(UsageError) as refused:
        store_path(service)

    assert "u:p@" not in refused.value.problem
    assert "--service sqlite:PATH" in refused.value.remedy


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


@pytest.mark.parametrize(("environ", "value"), [({}, ""), ({TOKEN: "x"}, "x"), ({TOKEN: " "}, " ")])
def test_a_variable_is_its_value(environ: dict[str, str], value: str) -> None:
    assert variable(TOKEN, environ) == value


def test_a_variable_that_is_set_and_empty_is_an_error() -> None:
    """A secret of CI that was never set looks like this."""
    with pytest.raises(UsageError, match=f"{TOKEN} is set and empty"):
        variable(TOKEN, {TOKEN: ""})


@each_row(
    ("ci", "expected"),
    [("true", True), ("1", True), ("yes", True), ("", False), ("0", False), (" False ", False)],
)
def test_a_job_of_ci_says_so(ci: str, *, expected: bool) -> None:
    assert is_ci({"CI": ci}) is expected
    assert not is_ci({})


@each_row(
    ("name", "meant"),
    [
        ("RECONCILER_SERVCE", ["RECONCILER_SERVICE"]),
        ("RECONCILER_TOKNE", ["RECONCILER_TOKEN"]),
        ("RECONCILER_SERVICE", []),
        ("RECONCILER_NOTHING_LIKE_IT", []),
        ("RECONCILE_TOKEN", []),
        *((f"{prefix}", []) for prefix in INTERNAL),
    ],
)
def test_a_misspelt_variable_is_within_two_letters_of_a_known_one(
    name: str, meant: list[str]
) -> None:
    assert [known for _, known in misspelt({name: "x"})] == meant


def test_every_known_variable_has_the_prefix() -> None:
    assert all(name.startswith("RECONCILER_") and name.isupper() for name in KNOWN)
