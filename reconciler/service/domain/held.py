"""One object as its events add up. Kinds differ in their events, not in what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.resources.ref import Kind


@dataclass(frozen=True, slots=True)
class Unborn:
    """An id that no event was written under yet, and the organization it is meant for."""

    id: str
    organization: str


@dataclass(frozen=True, slots=True)
class Held:
    """The state of an object after its events so far.

    Attributes:
        parent: Project of an application, organization of anything else; an organization has
            none.
        spec: The fields in normal form.
        secret_hash: SHA-256 of the client secret, in hexadecimal; empty where there is none.
    """

    kind: Kind
    id: str
    organization: str
    parent: str
    name: str
    spec: Mapping[str, Any]
    client_id: str = ""
    secret_hash: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """An object that is no more. Its id is never used again."""

    id: str
    organization: str


State: TypeAlias = Unborn | Held | Removed


class ImpossibleHistoryError(Exception):
    """An event that cannot follow what was before it: the log is not one this program wrote."""

    def __init__(self, event: object, state: State) -> None:
        super().__init__(f"{type(event).__name__} cannot follow {type(state).__name__}")
