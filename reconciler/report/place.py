"""The service and the tree of a run: the first line of every plan, question and report.

A run that was pointed at the wrong service shows it there.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from reconciler.diagnostics import name_as_text
from reconciler.plan.model import Scope
from reconciler.report.visible import longest_ticks, visible, without_credentials
from reconciler.resources.call import JsonObject

LONGEST = 400
"""Characters of the line in Markdown, whose head has a limit."""

NEW = "new: there is no store yet"
NOT_ASKED = "not asked"


class Place(NamedTuple):
    """The service and the tree of a run.

    Attributes:
        service: The address as it was given.
        instance: Id of the service; empty where there is none yet.
        tree: Name of the body of manifests.
        environment: Name of the environment of ``reconciler.yaml``; empty for none.
        is_asked: Whether the service was asked; a refused plan is made without.
        compared_with: Of a comparison, the environment it is compared with; empty otherwise. No
            service is asked then.
        is_of_moments: Whether two moments of the service are compared: ``compared_with`` is the
            first, and the environment the second; empty for now.
        undo: Id of the run that is undone; empty for none.
    """

    service: str
    instance: str
    tree: str
    environment: str = ""
    is_asked: bool = True
    compared_with: str = ""
    is_of_moments: bool = False
    undo: str = ""

    @property
    def until(self) -> str:
        """Return the second of two moments, in words."""
        return self.environment or "now"

    @property
    def instance_in_words(self) -> str:
        """Return the id of the service, or why it is not known."""
        return self.instance or (NEW if self.is_asked else NOT_ASKED)

    @property
    def address(self) -> str:
        """Return the address without credentials."""
        return name_as_text(without_credentials(self.service))


def place_as_text(place: Place) -> str:
    """Return the line for a terminal."""
    if place.is_of_moments:
        asked = f"Service {place.address} (instance {place.instance})"
        return visible(f"{asked}, from {place.compared_with} to {place.until}")
    if place.compared_with:
        return visible(f"Environment {place.environment} compared with {place.compared_with}")
    instance = f"instance {place.instance}" if place.instance else place.instance_in_words
    head = f"Environment {place.environment}: service" if place.environment else "Service"
    undo = f", undo of run {place.undo}" if place.undo else ""
    return visible(f"{head} {place.address} ({instance}), tree {place.tree}{undo}")


def as_code(text: str, longest: int = LONGEST) -> str:
    """Return a text for Markdown, as code that it cannot leave; a long one is cut."""
    code = _as_code(text)
    # Its back-ticks come three times at most.
    return code if len(code) <= longest else _as_code(f"{text[: longest // 3]} [cut]")


def _as_code(text: str) -> str:
    ticks = "`" * (1 + longest_ticks(text))
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def place_as_marker(place: Place, scope: Scope) -> str:
    """Return the line by which the comment of a plan is found again.

    Each environment, service and tree has a comment of its own, and each shard and each part of a
    tree: none of these takes the place of the comment of the whole.
    """
    names = [f"environment={_encoded(place.environment)}"] if place.environment else []
    if place.is_of_moments:
        return f"<!-- reconciler-moments service={_encoded(place.address)} -->"
    if place.compared_with:
        names.append(f"compared-with={_encoded(place.compared_with)}")
        return f"<!-- reconciler-comparison {' '.join(names)} -->"
    names += [f"service={_encoded(place.address)}", f"tree={_encoded(place.tree)}"]
    names += [f"undo={_encoded(scope.undo)}"] if scope.undo else []
    names += [f"shard={scope.shard}"] if scope.shard is not None else []
    for flag, addresses in (("target", scope.target), ("exclude", scope.exclude)):
        names += [f"{flag}={_encoded(chr(10).join(addresses))}"] if addresses else []
    return f"<!-- reconciler-plan {' '.join(names)} -->"


def _encoded(name: str) -> str:
    """Return a name that cannot end an HTML comment; of a long one, the start and a hash."""
    encoded = quote(name, safe=":/@", errors="surrogatepass").replace("--", "-%2D")
    if len(encoded) <= LONGEST // 2:
        return encoded
    import hashlib

    return f"{encoded[: LONGEST // 4]}~{hashlib.sha256(encoded.encode()).hexdigest()[:16]}"


def place_as_json(place: Place) -> JsonObject:
    """Return the place in stable keys.

    ``instance`` is null where there is no store yet, and ``tree`` in a comparison.
    ``environment`` is there only if one was chosen, ``compared_with`` only in a comparison of
    environments, ``from`` and ``to`` only in one of moments, ``undo`` only of an undo.
    """
    names = {"environment": place.environment, "compared_with": place.compared_with}
    if place.is_of_moments:
        names = {"from": place.compared_with, "to": place.until}
    return {
        **{key: name for key, name in names.items() if name},
        "service": place.address or None,
        "instance": place.instance or None,
        "tree": place.tree or None,
        **({"undo": place.undo} if place.undo else {}),
    }
