"""The form of a kind's row, and the metadata that several kinds have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.resources.fields import Field, Form, Spec, flag, text

VERSIONS = "reconciler/v"
"""Start of the ``apiVersion`` of every manifest, of whatever version."""

API_VERSION = f"{VERSIONS}1"
MAX_NAME = 200

_NAME = text("name", "Name in the service, unique ignoring case.", shortest=1, longest=MAX_NAME)


class ClientSecrets(NamedTuple):
    """The objects of a kind that sign in with a client secret.

    Attributes:
        has: Returns whether one of these fields does.
        field: The field that decides it.
        said_by: What a manifest says of them, in words.
    """

    has: Callable[[Spec], bool]
    field: str
    said_by: str


@dataclass(frozen=True, slots=True)
class KindRow:
    """Facts about a kind that every part of the program needs.

    Attributes:
        about: Meaning of the kind.
        rank: Changes of a lower rank are applied first; owners come before what they own.
        schema: The name of its JSON Schema, without ``.schema.json``.
        noun: A resource of the kind, in sentences.
        plural: For sentences and folders.
        renamable: Whether ``metadata.id`` can rename an object of this kind.
        has_id: Whether ``metadata.id`` can pin it: a wire gives some no id.
        name: The name itself.
        name_field: The field of calls that has the name.
        owner: The metadata that names its owner, besides the name itself.
        has_state: Whether an object of this kind can be inactive.
        gone_when_empty: Whether the service holds no object whose fields are all empty.
        verb: What it does with those that its fields refer to.
        secrets: Of a kind with client ids: which of them come with a client secret.
        reading: The flag of metadata that has variables replaced in the fields of ``instead``, too;
            reading takes it out.
        fields: The fields of its spec, in the order in which differences are shown.
        instead: A field that a manifest may write in place of one of the spec, by the name of that
            one. Reading replaces it, so that only manifests have it.
        addresses: Verb and path of each operation on objects of the kind, by its name. A path
            parameter has the JSON name of the field it sets. Clients use the first.
        rest: The parameters that stand last in an address and take all that is left of it.
    """

    about: str
    rank: int
    schema: str
    noun: str
    plural: str
    renamable: bool = True
    has_id: bool = True
    name: Field = _NAME
    name_field: str = "name"
    owner: tuple[Field, ...] = ()
    has_state: bool = False
    gone_when_empty: bool = False
    verb: str = ""
    secrets: ClientSecrets | None = None
    reading: tuple[Field, ...] = ()
    fields: tuple[Field, ...] = ()
    instead: Mapping[str, Field] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rest: frozenset[str] = frozenset()

    @property
    def one(self) -> str:
        """Return the noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    @property
    def metadata(self) -> tuple[Field, ...]:
        """Return the metadata after the fields that name its owner: the name, then the marks."""
        marks = MARKS if self.has_id else [each for each in MARKS if each.name != "id"]
        return (self.name, *marks, *self.ignore, *((ACTIVE,) if self.has_state else ()))

    @property
    def ignore(self) -> tuple[Field, ...]:
        """Return the mark that leaves fields to another writer; none for a kind without fields."""
        names = tuple(each.name for each in self.fields)
        return (IGNORE._replace(words=names),) if names else ()

    @property
    def alternatives(self) -> list[tuple[str, str]]:
        """Return the pairs of fields; a manifest has one of each pair."""
        return [(name, other.name) for name, other in self.instead.items()]


IN_ORGANIZATION = (
    text("organization", "Name of the organization that owns it.", shortest=1, longest=MAX_NAME),
)
IN_PROJECT = (
    *IN_ORGANIZATION,
    text("project", "Name of the project that owns it.", shortest=1, longest=MAX_NAME),
)

# Metadata of every kind, after its name.
MARKS = (
    Field(
        "id",
        Form.TEXT,
        "Id of the object in the service that this resource is. Pin it to rename the object "
        "instead of making a new one.",
        default="",  # not pinned; a manifest never writes it empty
        pattern=r"^[A-Za-z0-9_-]{1,200}$",
    ),
    flag("preventDelete", "Refuse every plan that would delete the object."),
    flag(
        "critical",
        "People are locked out when it breaks: refuse every plan that would remove or weaken the "
        "object, unless --break-glass names it.",
    ),
)

# Metadata of the kinds that have fields; its words are their names.
IGNORE = Field(
    "ignore",
    Form.TEXTS,
    "Names of fields that another writer keeps: a new object gets their declared values, and every "
    "update sends them back as the service holds them at that moment.",
    [],
)

# Metadata of the kinds whose objects can be inactive.
ACTIVE = Field(
    "active",
    Form.FLAG,
    "Whether the object is active: false deactivates it, true reactivates it. Without it the state "
    "stays as it is, so that what was switched off is not switched on by accident.",
    default="",  # not said; a manifest never writes it empty
)

# Metadata of a document in an overlay folder that changes one of the base.
OVERLAID = (
    flag("absent", "In an overlay: the environment does without this resource."),
    flag("patch", "In an overlay: the manifests must declare this resource."),
)
