"""The client secrets of a service, for people and machines: who has one, never what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.plan.model import signs_in_with_secret
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.layout import Forms, in_json, in_lines
from reconciler.report.plan_json import ref_as_json
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject
from reconciler.state import ObservedObject, ObservedState, OwedSecret


class Listed(NamedTuple):
    """An application with a client secret.

    Attributes:
        owed: Its secret, where its delivery was not acknowledged.
        since: When the secret was made, RFC 3339; empty where the service does not report it.
    """

    held: ObservedObject
    owed: OwedSecret | None
    since: str = ""


def applications_with_secret(observed: ObservedState) -> Iterator[Listed]:
    """Yield the applications that have a client secret, by name, each with what is owed of it.

    Of a service that does not report it, they are those that sign in with one.
    """
    owed = {secret.id: secret for secret in observed.owed}
    for held in sorted(observed.everything, key=lambda each: (each.ref.key, each.id)):
        if KINDS[held.ref.kind].secrets is None:
            continue
        signs_in = signs_in_with_secret(held)
        if held.id in owed or (signs_in if held.has_secret is None else held.has_secret):
            yield Listed(held, owed.get(held.id))


class SecretsDocument(NamedTuple):
    """The applications that have a client secret, and the environment that was chosen."""

    listed: Sequence[Listed]
    environment: str


def secrets_as_text(document: SecretsDocument) -> Iterator[str]:
    """Yield a line for each application, then how many there are."""
    listed = document.listed
    width = max((len(visible(each.held.ref.path)) for each in listed), default=0)
    for each in listed:
        since = f"since {visible(each.since)}" if each.since else "since a time that is not known"
        state = visible(_state(each.owed))
        yield f"{visible(each.held.ref.path).ljust(width)}  {since}{state and f'  {state}'}"
    states = Counter("lost" if each.owed.lost else "owed" for each in listed if each.owed)
    counted = [f"{states[state]} {state}" for state in ("owed", "lost") if states[state]]
    noun = "application has" if len(listed) == 1 else "applications have"
    yield f"{len(listed)} {noun} a client secret; {', '.join(counted) or 'none is owed'}."


def _state(owed: OwedSecret | None) -> str:
    if owed is None:
        return ""
    if owed.lost:
        return "lost: never delivered, and no longer kept"
    return f"owed to tree {owed.tree}" if owed.tree else "owed to no tree"


def secrets_as_json(document: SecretsDocument) -> JsonObject:
    """Return the same as JSON-shaped fields."""
    environment = document.environment
    return {
        "format_version": FORMAT_VERSION,
        **({"environment": environment} if environment else {}),
        "applications": [
            {
                "ref": ref_as_json(each.held.ref),
                "id": each.held.id,
                "client_id": each.held.client_id,
                "since": each.since or None,
                "owed": each.owed is not None and not each.owed.lost,
                "lost": each.owed is not None and each.owed.lost,
                "tree": each.owed.tree if each.owed else None,
            }
            for each in document.listed
        ],
    }


SECRETS: Forms[SecretsDocument] = {
    "text": in_lines(secrets_as_text),
    "json": in_json(secrets_as_json),
}
