"""Settings from outside the repository: the connection to a service, and environment variables.

A variable that is misspelt, or empty because a secret of CI was never set, would leave a default
in force without a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.diagnostics import name_as_text
from reconciler.errors import ServiceError, UsageError
from reconciler.report.visible import without_credentials
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.secret import MAX_KEEP_OWED_SECONDS

DEFAULT_SERVICE = "sqlite:.reconciler/identity.db"
SETTLE_SECONDS = 60.0
MIN_KEEP_OWED = 60 * 60  # seconds


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a service, and settings that say nothing of what is done there.

    Attributes:
        service: The address.
        service_kind: ``reconciler``, ``zitadel``, or ``auto``: then an http service is asked.
        token_file: File with the token; otherwise it is in the environment.
        key_file: Key file of a service user of ZITADEL.
        max_rps: Requests a second, or 0 for no limit.
        use_proxy: Whether to go through the proxy that the environment names.
        seal_key_file: The key that all servers of a database share.
        settle: How long to wait until lists of a ZITADEL show what was written, in seconds.
        keep_owed: How long a store keeps a client secret for its delivery, in seconds.
        environment: Name of the environment of ``reconciler.yaml``; empty for none.
        state: Folder of journals, and of secrets that go nowhere else.
        is_named_outside: Whether the address was given by a person or a job, or is the default. A
            file of the repository never directs a credential.
    """

    service: str
    service_kind: str = "auto"
    token_file: Path | None = None
    key_file: Path | None = None
    max_rps: float = 0.0
    use_proxy: bool = False
    seal_key_file: Path | None = None
    settle: float = SETTLE_SECONDS
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
    scheme, _, path = service.partition(":")
    if scheme != "sqlite" or not path or path.startswith("//"):
        raise UsageError(
            f"{without_credentials(service)} is not the address of a service",
            remedy="Write --service sqlite:PATH, such as sqlite:.reconciler/identity.db, "
            "postgresql://USER@HOST:PORT/DATABASE, or https://HOST.",
        )
    return Path(path)


def place_of_store(service: str) -> str:
    """Return the address of an embedded store in a normal form.

    A path from the current folder stays one: a plan that was made in one checkout is applied in
    another.
    """
    return name_as_text(
        f"sqlite:{os.path.normpath(store_path(service))}" if is_file(service) else service
    )


def is_same_store(one: str, other: str) -> bool:
    """Return whether two addresses of embedded stores, seen from here, are of the same one."""
    if one == other or not (is_file(one) and is_file(other)):
        return one == other
    return os.path.realpath(store_path(one)) == os.path.realpath(store_path(other))


def store_is_there(service: str) -> bool:
    """Return whether an embedded store has its file.

    Raises:
        ServiceError: it is in a folder that this user may not enter.
        UsageError: the address names no such file.
    """
    from reconciler.service.eventstore.errors import StoreError
    from reconciler.service.eventstore.sqlite_files import is_there

    try:
        return is_there(store_path(service))
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


def require_seal_key(connection: Connection) -> None:
    """Refuse to write to a database without the key that all its servers share.

    Raises:
        UsageError: no key was named.
    """
    if is_database(connection.service) and connection.seal_key_file is None:
        raise UsageError(
            "a store in PostgreSQL needs the key that all its servers share",
            remedy="Give --seal-key-file FILE; the first to use a database makes the file.",
        )


PREFIX = "RECONCILER_"
TOKEN = PREFIX + "TOKEN"
VARIABLE_PREFIX = PREFIX + "VAR_"
"""Begins the name of an environment variable that holds the value of a variable of manifests."""

INTERNAL = ("RECONCILER_CRASHPOINT", "RECONCILER_SECRET_", VARIABLE_PREFIX)
"""Prefixes of names that are no options: those of tests, of exec sinks, of values of variables."""

LETTERS = 2
_NOT_CI = frozenset({"", "0", "false"})

# Every option of every command. A list, because importing all commands takes as long as a plan;
# a test compares it with the options there are.
KNOWN = frozenset(
    PREFIX + name
    for name in (
        "against allow_deletes allow_updates auto_approve behind_proxy break_glass capabilities "
        "color config damaged "
        "detailed_exitcode digest docs env environments expires format full git_hooks "
        "github gitlab keep_owed key_file listen lock_timeout log_format max_chars max_rps "
        "metrics_listen name no_adopt on_merge on_unreviewed organization other_tree out overwrite "
        "prune prune_unmanaged quiet require_secrets revision role rotate_missing seal_key_file "
        "secrets_to service service_kind settle shard snapshot strict take_over tls_cert tls_key "
        "token token_file tree trusted_config use_proxy verbose with_console"
    )
    .upper()
    .split()
)


def variable(name: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable; empty if it is not set.

    Raises:
        UsageError: it is set and empty.
    """
    value = environ.get(name)
    if value == "":
        raise UsageError(
            f"{name} is set and empty",
            remedy="Give it a value, or unset it. In CI: check that the secret or variable it is "
            "taken from exists and may be read by this job.",
        )
    return value or ""


def is_ci(environ: Mapping[str, str]) -> bool:
    """Return whether this is a CI job: ``CI`` is set, and not to 0 or false."""
    return environ.get("CI", "").strip().lower() not in _NOT_CI


def warn_of_misspelt(environ: Mapping[str, str]) -> None:
    """Warn on stderr about variables that no option reads and that look like a known one."""
    for written, meant in misspelt(environ):
        from reconciler.cli.output import show_warnings
        from reconciler.diagnostics import warning

        show_warnings([warning("ENV-UNKNOWN", f"no option reads {written}", hint_at(meant))])


def hint_at(meant: str) -> str:
    """Return what to write; a variable that deletes, approves or overrides is not suggested."""
    from reconciler.cli.suggestions import HARMFUL

    if meant.removeprefix(PREFIX).lower().replace("_", "-") in HARMFUL:
        return "It is ignored. A variable is RECONCILER_ and the name of an option in --help."
    return f"Did you mean {meant}?"


def misspelt(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that no option reads, with the known one it is within two letters of."""
    unknown = [name for name in environ if name.startswith(PREFIX) and name not in KNOWN]
    for name in unknown:
        if name.startswith(INTERNAL):
            continue
        from reconciler.resources.nearest import within

        meant = within(name, KNOWN, LETTERS)
        if meant is not None:
            yield name, meant
