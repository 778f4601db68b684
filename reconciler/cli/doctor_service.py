"""Checks of ``reconciler doctor`` that look at the service, and the ways to it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import click
from click.core import ParameterSource

from reconciler import __version__
from reconciler.cli.clients import STATE, holds_anything, http_wire, remote_service
from reconciler.cli.connection import Connection, is_embedded, is_file, is_remote, store_path
from reconciler.cli.doctor_line import Status, Told, not_checked
from reconciler.cli.options import CONFIGURING, wrong_options
from reconciler.cli.output import time_in_words
from reconciler.report.visible import shown_address
from reconciler.resources.call import Call
from reconciler.resources.ref import fold
from reconciler.service_client.locks import LocalLock, holder_in_words, this_process
from reconciler.service_client.read_only import OperationsReader, ReadOnlyWire
from reconciler.service_client.wire import Wire, WireRefusal, answers_of, service_error

if TYPE_CHECKING:
    from reconciler.service.build import IdentityService
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.http_wire import Reached

DAY = 24 * 60 * 60  # seconds
ENDS_SOON = 14 * DAY
CLOCKS_AGREE = 30  # seconds; a signed statement or an approval is not judged more exactly
UNKNOWN_SERVICE = "it is not known which service is meant"
NOT_TOLD = "not told by the service"


class Setup:
    """All that is examined, each part opened once and when it is first needed."""

    def __init__(
        self, context: click.Context, connection: Connection, tree: str, secrets_to: str | None
    ) -> None:
        self.context = context
        self.connection = connection
        self.tree = tree
        self.secrets_to = secrets_to
        self.wrong = wrong_options(context)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        self._opened.close()

    @property
    def knows_service(self) -> bool:
        """Return whether the address is the one that another command would use."""
        is_configured = not any(name in self.wrong for name in CONFIGURING)
        source = self.context.get_parameter_source("service")
        return "service" not in self.wrong and (
            is_configured or source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
        )

    @cached_property
    def reached(self) -> Reached:
        """Look at the service over HTTP, without a token."""
        from reconciler.service_client.credentials import NoToken

        with closing(http_wire(self.connection, NoToken())) as wire:
            return wire.reach()

    @cached_property
    def remote(self) -> RemoteService:
        """Open the service over HTTP."""
        return self._opened.enter_context(remote_service(self.connection))

    @cached_property
    def store(self) -> IdentityService:
        """Open the service of an embedded store."""
        from reconciler.cli.embedded import open_service

        return self._opened.enter_context(open_service(self.connection, read_only=True))

    @cached_property
    def wire(self) -> Wire:
        """Return the wire to the service, on which nothing is written."""
        if is_remote(self.connection.service):
            return ReadOnlyWire(self.remote.wire)
        from reconciler.cli.embedded import InProcessWire, local_caller

        return ReadOnlyWire(InProcessWire(self.store, local_caller()))

    @cached_property
    def is_ours(self) -> bool:
        """Return whether it is a service of ours."""
        if not is_remote(self.connection.service):
            return True
        from reconciler.service_client.client import is_ours

        return is_ours(self.remote)

    @cached_property
    def info(self) -> dict[str, Any]:
        """Return what a service of ours tells of itself and of its caller."""
        return dict(answers_of(self.wire, [Call("GetServiceInfo")])[0])


def look_at_address(setup: Setup) -> Told:
    """Check that something answers at the address, or that its store is there."""
    service = setup.connection.service
    if not setup.knows_service:
        return not_checked(UNKNOWN_SERVICE)
    shown = shown_address(service)
    facts = {"address": shown}
    if not is_remote(service):
        place = str(store_path(service)) if is_file(service) else shown
        if holds_anything(service):
            return Told(f"{place} holds a store", facts)
        return Told(f"{place} holds no store yet: apply makes it", facts)
    if setup.reached.failure and not setup.reached.is_untrusted:
        raise setup.reached.failure
    return Told(f"{shown} answers", facts)


def look_at_certificate(setup: Setup) -> Told:
    """Check the certificate of the service."""
    service = setup.connection.service
    if not service.startswith("https:"):
        where = (
            "http is for this machine alone" if is_remote(service) else "the store is opened here"
        )
        return Told(f"none is needed: {where}", {"ends": None})
    if setup.reached.failure:
        raise setup.reached.failure
    ends = ssl.cert_time_to_seconds(setup.reached.certificate_ends)
    left = int(ends - time.time())
    text, facts = f"valid until {time_in_words(ends)}, {_days(left)}", {"ends": time_in_words(ends)}
    if left < ENDS_SOON:
        return Told(text, facts, Status.WARNING, "Renew it on the server.")
    return Told(text, facts)


def _days(seconds: int) -> str:
    days = seconds // DAY
    return "less than a day from now" if days < 1 else f"{days} day{'s' * (days > 1)} from now"


def look_at_clock(setup: Setup) -> Told:
    """Compare this machine's clock with that of the service."""
    if not is_remote(setup.connection.service):
        return Told("none is compared: the store is opened here", {"ahead_seconds": None})
    try:
        theirs = parsedate_to_datetime(setup.reached.date)
    except (TypeError, ValueError):
        return not_checked(NOT_TOLD, ahead_seconds=None)
    # A date that names no zone is in UTC (RFC 9110).
    at = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    ahead = round((datetime.now(UTC) - at).total_seconds())
    facts = {"ahead_seconds": ahead}
    if abs(ahead) <= CLOCKS_AGREE:
        return Told("as the service's, to a few seconds", facts)
    how = f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} the service's"
    return Told(f"this machine's clock is {how}", facts, Status.FAILED, _SET_CLOCK)


_SET_CLOCK = (
    "Set the clock that is wrong: tokens, approvals and certificates are judged by the time."
)


def look_at_token(setup: Setup) -> Told:
    """Check that there is a token that may be sent to the service, and say where it is from."""
    connection = setup.connection
    for name in {"token_file", "key_file"} & setup.wrong.keys():
        raise setup.wrong[name]
    if not setup.knows_service:
        return not_checked(UNKNOWN_SERVICE)
    if is_embedded(connection.service):
        return Told("none is needed: who may write the store may do everything", {"from": None})
    from reconciler.cli.login import credentials_of, way_to_sign_in
    from reconciler.service_client.credentials import NoToken
    from reconciler.service_client.endpoint import parse_endpoint

    credentials = credentials_of(connection, parse_endpoint(connection.service))
    if isinstance(credentials, NoToken):
        raise credentials.refusal()
    way = way_to_sign_in(connection)
    return Told(f"from {way}", {"from": way})


def look_at_service(setup: Setup) -> Told:
    """Check what kind of service it is, and its version."""
    service = setup.connection.service
    if is_embedded(service) and not holds_anything(service):
        return not_checked("there is no store yet")
    if not setup.is_ours:
        return _zitadel(setup)
    version, instance = str(setup.info.get("version")), str(setup.info.get("instance"))
    facts = {"kind": "reconciler", "version": version, "instance": instance}
    other = "" if version == __version__ else f", this program {__version__}"
    return Told(f"reconciler {version}{other}; its id is {instance}", facts)


def _zitadel(setup: Setup) -> Told:
    from reconciler.service_client.zitadel.client import ask_generation

    client = _zitadel_client(setup)
    generation = ask_generation(setup.wire)
    if not generation:
        (reply,) = setup.wire.send([Call("GetIAM")])
        if isinstance(reply, WireRefusal):
            raise service_error(reply)
    words = {4: "from 4.0 on", 3: "before 4.0"}.get(generation, "of an unknown generation")
    instance = client.instance()
    facts = {"kind": "zitadel", "version": None, "generation": generation, "instance": instance}
    return Told(f"a ZITADEL {words}, its version is {NOT_TOLD}; its id is {instance}", facts)


def _zitadel_client(setup: Setup) -> Any:
    from reconciler.service_client.client import read_only_client

    return read_only_client(setup.remote)


def look_at_rights(setup: Setup) -> Told:
    """Find out the role of the token, the organizations that it sees, and its end."""
    if is_embedded(setup.connection.service):
        return Told(
            "every right, without an end", {"role": None, "organizations": None, "ends": None}
        )
    if not setup.is_ours:
        return _rights_at_zitadel(setup)
    role, expires = setup.info.get("role"), setup.info.get("expires")
    sees_all = setup.info.get("allOrganizations") is True
    names = None if sees_all else OperationsReader(setup.wire).organizations()
    ends = "never" if expires == "" else expires or NOT_TOLD
    facts = {"role": role, "organizations": names, "ends": expires or None}
    return Told(f"role {role or NOT_TOLD}, {_organizations(names)}, end {ends}", facts)


def _rights_at_zitadel(setup: Setup) -> Told:
    from reconciler.service_client.zitadel.roles import roles_of_user

    names = _zitadel_client(setup).organizations()
    roles = roles_of_user(setup.wire)
    shown = NOT_TOLD if roles is None else ", ".join(roles) or "none"
    facts = {"role": roles, "organizations": names, "ends": None}
    return Told(f"roles {shown}; {_organizations(names)}; end {NOT_TOLD}", facts)


_SHOWN = 10  # names


def _organizations(names: Sequence[str] | None) -> str:
    if names is None:
        return "all organizations"
    if not names:
        return "no organization"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"organization{'s' * (len(names) > 1)} {', '.join(names[:_SHOWN])}{more}"


def look_at_lock(setup: Setup) -> Told:
    """Find out who holds the lock, where that can be seen without taking it."""
    if is_embedded(setup.connection.service):
        held = _held_leases(setup)
    elif setup.is_ours:
        return not_checked(f"{NOT_TOLD}; apply says who holds it", held_by=None)
    else:
        locks = LocalLock(STATE, this_process())
        holder = locks.holder(_zitadel_client(setup).instance())
        held = [f"by {holder}"] if holder else []
    if not held:
        return Told("free", {"held_by": []})
    wait = "Wait until it is done, or give apply --lock-timeout."
    return Told(f"held {'; '.join(held)}", {"held_by": held}, Status.WARNING, wait)


def _held_leases(setup: Setup) -> Sequence[str]:
    """Return which organizations of a store are locked, and by whom."""
    names, now, here = (
        OperationsReader(setup.wire).organizations(),
        time.time_ns() // 1000,
        this_process(),
    )
    with setup.store.store.snapshot() as view:
        leases = [(name, view.lease(fold(name))) for name in names]
    return [
        f"for {name} by {holder_in_words(lease.holder)} since "
        f"{time_in_words(lease.acquired_at // 1_000_000)}"
        for name, lease in leases
        if lease and lease.token and lease.expires_at > now and not here.knows_dead(lease.holder)
    ]
