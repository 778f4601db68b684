"""Addresses of services: which kind of store or service each names, and what it needs."""

from __future__ import annotations

from pathlib import Path

from reconciler.errors import ServiceError, UsageError
from reconciler.report.place import without_credentials


def is_embedded(service: str) -> bool:
    """Return whether an address names a store that this process opens itself."""
    return is_file(service) or is_database(service)


def is_file(service: str) -> bool:
    """Return whether an address names a store in a file of this machine."""
    return service.startswith("sqlite:")


def is_database(service: str) -> bool:
    """Return whether an address names a store in a PostgreSQL database."""
    return service.startswith(("postgresql:", "postgres:"))


def is_remote(service: str) -> bool:
    """Return whether an address names a service that is reached over HTTP."""
    return service.startswith(("http://", "https://"))


def store_path(service: str) -> Path:
    """Return the file of an embedded store.

    Raises:
        UsageError: the address names no such file.
    """
    scheme, _, path = service.partition(":")
    if scheme != "sqlite" or not path or path.startswith("//"):
        raise UsageError(
            f"{without_credentials(service)} is not the address of a service",
            remedy="Write --service sqlite:PATH, such as sqlite:.reconciler/identity.db, "
            "postgresql://USER@HOST:PORT/DATABASE, or https://HOST.",
        )
    return Path(path)


def no_store(service: str) -> ServiceError:
    """Return the error that nothing is at the address of an embedded store."""
    place = str(store_path(service)) if is_file(service) else without_credentials(service)
    return ServiceError(
        f"there is no store at {place}",
        remedy="Name the one you mean: --service sqlite:PATH (or RECONCILER_SERVICE). "
        "Only apply, serve and token create make a new store.",
    )


def require_seal_key(service: str, seal_key_file: Path | None) -> None:
    """Refuse to write to a database without the key that all its servers share.

    Raises:
        UsageError: no key was named.
    """
    if is_database(service) and seal_key_file is None:
        raise UsageError(
            "a store in PostgreSQL needs the key that all its servers share",
            remedy="Give --seal-key-file FILE; the first to use a database makes the file.",
        )
