"""Addresses of PostgreSQL databases: what they may say, and how they are told to people."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from reconciler.service.eventstore.errors import StoreUnusableError

SCHEMES = ("postgresql", "postgres")
SECRETS = frozenset({"password", "sslpassword"})


def check(address: str) -> None:
    """Accept an address without a secret in it.

    Raises:
        StoreUnusableError: it holds a password, or is no address of a database.
    """
    try:
        parts = urlsplit(address)
        said = {name.casefold() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        has_password = parts.password is not None
    except ValueError:
        raise StoreUnusableError(
            "this is not the address of a PostgreSQL database",
            "Write postgresql://USER@HOST:PORT/DATABASE.",
        ) from None
    if has_password or said & SECRETS:
        raise StoreUnusableError(
            "the address of the database holds a password",
            "Leave it out, and put it into a password file (PGPASSFILE) or into PGPASSWORD:"
            " every user of the machine can see addresses, and they are logged.",
        )
    if parts.scheme not in SCHEMES or "\0" in address:
        raise StoreUnusableError(
            "this is not the address of a PostgreSQL database",
            "Write postgresql://USER@HOST:PORT/DATABASE.",
        )


def place_of(address: str) -> str:
    """Return an address as people are told it: without its parameters."""
    return address.partition("?")[0].partition("#")[0]
