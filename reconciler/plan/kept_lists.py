"""Lists that a ZITADEL does not empty: from 4.0 on, an update that leaves one out keeps it.

Before 4.0 it is emptied. No call tells the difference but by the generation of the server, so
that is asked for only where a plan empties a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.diagnostics import Diagnostic, warning
from reconciler.plan.model import Adopt, Change, Create, Update, makes_secret
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.state import ObservedObject, Resource, is_in_step

KEPT_FROM = 4
"""The first generation that keeps them."""

LISTS: Mapping[Kind, tuple[str, ...]] = {
    Kind.OIDC_APPLICATION: ("redirectUris", "postLogoutRedirectUris", "additionalOrigins")
}
"""The lists that may be empty, of each kind that has any."""

REMEDY = (
    "ZITADEL from 4.0 on keeps a list that an update leaves empty. Write at least one entry in "
    "the manifest (a new entry replaces the held ones), or remove the application and create it "
    "again, which gives it a new client id and secret."
)


def empties_a_list(changes: Sequence[Change]) -> bool:
    """Return whether any change empties a list that a ZITADEL might keep."""
    return any(
        emptied(change.resource, change.held)
        for change in changes
        if isinstance(change, Update | Adopt)
    )


def emptied(resource: Resource, held: ObservedObject) -> frozenset[str]:
    """Return the lists that hold something and are declared empty."""
    lists = LISTS.get(resource.ref.kind, ())
    return frozenset(name for name in lists if held.spec.get(name) and not resource.spec.get(name))


def kept_lists(resource: Resource, held: ObservedObject, generation: int | None) -> frozenset[str]:
    """Return the lists that are declared empty, and that a server will not empty.

    ``generation`` is 0 or None where it is not known or the service is no ZITADEL: then none is.
    """
    return emptied(resource, held) if (generation or 0) >= KEPT_FROM else frozenset()


def is_not_sent(change: Change) -> bool:
    """Return whether everything that a change would do is to empty lists that are kept."""
    if not isinstance(change, Update | Adopt) or not change.kept:
        return False
    if change.new_owner or makes_secret(change):
        return False
    return is_in_step(replace(change.resource, spec=spec_after(change)), change.held)


def spec_after(change: Create | Update | Adopt) -> Spec:
    """Return the fields that an object has after a change: those declared, and kept lists."""
    spec = change.resource.spec
    if isinstance(change, Create) or not change.kept:
        return spec
    return {**spec, **{name: change.held.spec[name] for name in change.kept}}


def kept_notes(changes: Sequence[Change], code: str) -> Iterator[Diagnostic]:
    """Yield a warning with this code for each change with lists that the server keeps."""
    for change in changes:
        if isinstance(change, Update | Adopt) and change.kept:
            names = ", ".join(sorted(change.kept))
            sends = "; nothing else differs, so nothing is sent" if is_not_sent(change) else ""
            yield warning(
                code,
                f"this server will not empty {names}{sends}",
                f"{change.resource.ref}: {REMEDY}",
                change.resource.source.place("spec", min(change.kept)),
                change.resource.ref,
            )
