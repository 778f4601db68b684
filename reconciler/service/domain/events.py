"""Events: everything that is ever written about an object, and its states between them.

Every kind has the events below; what only one kind has is in its room. An event is stored as its
type and its fields. A type begins with the last word of its kind: ``provider.renamed``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind


@dataclass(frozen=True, slots=True)
class Event:
    """A change of an object.

    Attributes:
        VERB: The rest of its type.
        GIVES_OWNER: Whether it makes the tree of its context the owner of the object.
        kind: Of the object. Its type has it, so that it is no stored field.
    """

    VERB: ClassVar[str]
    GIVES_OWNER: ClassVar[bool] = True
    kind: Kind

    @property
    def type(self) -> str:
        """Return the type under which it is stored."""
        return type_of(self.kind, self.VERB)


@dataclass(frozen=True, slots=True)
class Added(Event):
    """An object came into being.

    Attributes:
        project: Id of the project that owns it; empty if an organization does.
        client_id: Of an application.
        secret_hash: Of its client secret only the hash is kept.
    """

    VERB = "added"
    name: str
    project: str = ""
    client_id: str = ""
    secret_hash: str = ""
    spec: Spec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renamed(Event):
    """An object was given another name."""

    VERB = "renamed"
    name: str


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """The fields of an object were updated as a whole."""

    VERB = "changed"
    spec: Spec


@dataclass(frozen=True, slots=True)
class Deactivated(Event):
    """An object was switched off."""

    VERB = "deactivated"


@dataclass(frozen=True, slots=True)
class Reactivated(Event):
    """An object was switched on again."""

    VERB = "reactivated"


@dataclass(frozen=True, slots=True)
class ContextRecorded(Event):
    """Nothing about the object changed, but why it is as it is: a tree took it over."""

    VERB = "context.recorded"


@dataclass(frozen=True, slots=True)
class Removed(Event):
    """An object is no more. Only one whose id comes from its name, such as a flow, has it again."""

    VERB = "removed"


@dataclass(frozen=True, slots=True)
class Unborn:
    """An id that no event was written under yet, and the organization it is meant for."""

    id: str
    organization: str


@dataclass(frozen=True, slots=True)
class Held:
    """The state of an object after its events so far.

    Attributes:
        parent: Project or organization that owns it; an organization has none.
        spec: The fields in normal form.
        secret_hash: SHA-256 of the client secret, in hexadecimal; empty where there is none.
        active: Whether it is switched on. Every object is at first.
    """

    kind: Kind
    id: str
    organization: str
    parent: str
    name: str
    spec: Spec
    client_id: str = ""
    secret_hash: str = ""
    active: bool = True


State: TypeAlias = Unborn | Held | None
"""The state of an object; None once it is removed."""


class ImpossibleHistoryError(ValueError):
    """An event that cannot follow what was before it: the log is not one this program wrote."""

    def __init__(self, event: Event, state: State) -> None:
        super().__init__(f"{event.type} cannot follow {type(state).__name__}")


@dataclass(frozen=True, slots=True)
class OwnEvent(Event):
    """A change that only objects of one kind can have."""

    def after(self, state: Unborn | Held) -> Held:
        """Return an object as it is after the event.

        Raises:
            ImpossibleHistoryError: the event cannot follow what was before.
        """
        raise ImpossibleHistoryError(self, state)


@dataclass(frozen=True, slots=True)
class MarkEvent(Event):
    """An event of one kind that leaves a mark on an object, and the object as it is.

    Its sequence, its last writer and their context stay as well: it was not written to.
    """

    GIVES_OWNER = False

    def marked(self, marks: dict[str, Any], at: int, writer: str) -> None:
        """Change the marks of the object's row.

        ``at`` is the sequence of the event, which is its time; ``writer`` is who caused it.
        """
        raise AssertionError("each of these events leaves a mark of its own")


@dataclass(frozen=True, slots=True)
class KindEvents:
    """Events of a kind beyond those of every kind.

    Attributes:
        own: Events that only this kind has.
        side: Events that are about an object and change neither it nor its sequence.
        ends_secret: Whether an update ends the client secret, by the fields before and after.
    """

    own: tuple[type[OwnEvent | MarkEvent], ...] = ()
    side: tuple[type[Event], ...] = ()
    ends_secret: Callable[[Spec, Spec], bool] = lambda *_: False


def type_of(kind: Kind, verb: str) -> str:
    """Return the type of an event of a kind."""
    return f"{_WORDS[kind]}.{verb}"


_WORDS = {kind: row.noun.rpartition(" ")[2] for kind, row in KINDS.items()}


_BESIDE = ".beside"


def side_stream(object_id: str) -> str:
    """Return the stream of the side events of an object."""
    return f"{object_id}{_BESIDE}"


def main_stream(stream: str) -> str:
    """Return the stream of an object, which its id names, from that or the one beside it."""
    return stream.removesuffix(_BESIDE)
