"""Sinks: the places that one-time secrets go to, never by way of anything that shows them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from reconciler.diagnostics import Diagnostic
from reconciler.errors import LocalFileError
from reconciler.resources.ref import ResourceRef, fold
from reconciler.resources.secret import Secret


@dataclass(frozen=True, slots=True)
class Delivery:
    """A client secret to be delivered to a sink."""

    ref: ResourceRef
    client_id: str
    client_secret: Secret


@dataclass(frozen=True, slots=True)
class Kept:
    """A secret that a sink keeps for good.

    Attributes:
        at: Its place, in words for a person: the path of a file, or the name of a command.
        notes: Findings for a person, such as a file kept beside another of the same name.
    """

    at: str
    notes: tuple[Diagnostic, ...] = ()


class Application(NamedTuple):
    """An application as a sink knows it."""

    ref: ResourceRef
    client_id: str


class Move(NamedTuple):
    """A rename or a delete of an application, which its secret follows.

    Attributes:
        ref: The new one; None after a delete. The client id stays.
    """

    old: ResourceRef
    ref: ResourceRef | None
    client_id: str


Followed: TypeAlias = tuple[Diagnostic, ...] | LocalFileError
"""Findings on one secret that followed its application, or why it could not."""

Stops: TypeAlias = Callable[[], object]
"""Return a true value once nothing more may be started, because a signal asked for it."""


def never() -> bool:
    """Return that nothing asks to stop."""
    return False


class NotGivenError(LocalFileError):
    """A secret was not given to a sink, because the run was to stop before that."""


class SecretSink(Protocol):
    """A place that keeps secrets."""

    @property
    def follows(self) -> bool:
        """Return whether a secret that is kept here follows the renames of its application."""
        ...

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Prove that secrets can be delivered, before there is one.

        ``refs`` are the applications that are known to be about to get one.

        Raises:
            LocalFileError: it cannot.
        """
        ...

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Deliver secrets; return what became of each, in their order.

        A ``Kept`` secret is kept for good. An error in its place means that it is not known to
        be in the sink: it is still owed, and may be delivered again.
        """
        ...

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return for each application whether its secret is here; None where that is not known."""
        ...

    def follow(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Rename or remove secrets with their applications; return what became of each.

        A secret that is not here gives no finding. One that cannot follow stays under its old
        name.
        """
        ...


def plain_name(names: Sequence[str]) -> str:
    """Return names as a file name: readable where they allow it, and always of their own.

    Names that differ in case alone are the same name.
    """
    names = [fold(name) for name in names]
    if all(_PLAIN.fullmatch(name) for name in names):
        return ".".join(names)
    slug = _ODD.sub("-", "-".join(names))[:80].strip("-_")
    digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
    return f"{slug}-{digest}" if slug else digest


_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)
_ODD = re.compile(r"[^a-z0-9_-]+", re.ASCII)


def content_of(delivery: Delivery) -> bytes:
    """Return what a file says of one secret: ref, client id and client secret, and no more."""
    import orjson  # json creates reference cycles where it indents, which keep a secret in memory

    content = {
        "ref": delivery.ref._asdict(),
        "client_id": delivery.client_id,
        "client_secret": delivery.client_secret.reveal(),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
