"""The connection to a service: its address, and what the address names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reconciler.diagnostics import name_as_text
from reconciler.errors import ServiceError, UsageError
from reconciler.report.visible import without_credentials
from reconciler.resources.installation import STATE_FOLDER, how_to_install, missing_modules
from reconciler.resources.secret import MAX_KEEP_OWED_SECONDS

DEFAULT_SERVICE = "sqlite:.reconciler/identity.db"


@dataclass(frozen=True, slots=True)
class Connection:
    """A service and how it is reached; the table of settings says what most of it means.

    Attributes:
        environment: Name of the environment of ``reconciler.yaml``; empty for none.
        state: Folder of journals, and of secrets that go nowhere else.
        is_named_outside: Whether the address was given by a person or a job, or is the default. A
            file of the repository never directs a credential.
    """

    service: str
    service_kind: str = "auto"
    token_file: Path | None = None
    key_file: Path | None = None
    keyless: bool = False
    id_token_file: Path | None = None
    max_rps: float = 0.0
    use_proxy: bool = False
    seal_key_file: Path | None = None
    settle: float = 60.0  # seconds
    keep_owed: int = MAX_KEEP_OWED_SECONDS
    environment: str = ""
    state: Path = Path(STATE_FOLDER)
    is_named_outside: bool = True


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
    if is_remote(service):
        raise UsageError(
            f"{without_credentials(service)} is not the address of a store",
            remedy="Run the command where the store is, with --service sqlite:PATH or "
            "postgresql://USER@HOST:PORT/DATABASE.",
        )
    scheme, _, text = service.partition(":")
    path = Path(text)
    if scheme != "sqlite" or not path.name or text.startswith("//") or "\0" in text:
        raise UsageError(
            f"{without_credentials(service)} is not the address of a service",
            remedy="Write --service sqlite:PATH, such as sqlite:.reconciler/identity.db, "
            "postgresql://USER@HOST:PORT/DATABASE, or https://HOST.",
        )
    return path


def place_of_store(service: str) -> str:
    """Return the address of an embedded store in a normal form.

    A path from the current folder stays one: a plan that was made in one checkout is applied in
    another.
    """
    return name_as_text(
        f"sqlite:{os.path.normpath(store_path(service))}" if is_file(service) else service
    )


def with_absolute_path(service: str) -> str:
    """Return an address that means the same in any folder."""
    return f"sqlite:{store_path(service).absolute()}" if is_file(service) else service


def in_one_form(service: str) -> str:
    """Return an address in the form in which those of one service are equal, seen from here."""
    if is_file(service):
        return os.path.realpath(store_path(service))
    if is_remote(service):
        from reconciler.service_client.endpoint import parse_endpoint

        endpoint = parse_endpoint(service)
        return endpoint.same_origin + endpoint.prefix
    return service


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the failure of a store into an error of the reconciler."""
    from reconciler.service.eventstore.errors import StoreError

    try:
        yield
    except StoreError as failure:
        raise ServiceError(failure.problem, remedy=failure.remedy) from failure


def no_store(service: str) -> ServiceError:
    """Return the error that nothing is at the address of an embedded store."""
    place = str(store_path(service)) if is_file(service) else without_credentials(service)
    return ServiceError(
        f"there is no store at {place}",
        remedy="Name the one you mean: --service sqlite:PATH (or RECONCILER_SERVICE). "
        "Only apply, serve and token create make a new store.",
    )


def require_extra(what: str, extra: str) -> None:
    """Check an extra before anything is made: some of its libraries are imported late."""
    if missing := missing_modules(extra):
        raise UsageError(
            f"{what} needs the extra {extra}, which is not installed "
            f"(missing: {', '.join(missing)})",
            remedy=how_to_install(extra),
        )


def require_seal_key(connection: Connection) -> None:
    """Refuse to write to a database without the key that all its servers share."""
    if is_database(connection.service) and connection.seal_key_file is None:
        raise UsageError(
            "a store in PostgreSQL needs the key that all its servers share",
            remedy="Give --seal-key-file FILE; the first to use a database makes the file.",
        )
