"""Operations that the kinds have in common: to add, read, update, switch and remove an object.

The room of a kind has a row for each; what is different there it writes by hand. Lists are in
``lists``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Field
from reconciler.resources.ref import IN_PROJECT, Kind
from reconciler.service.domain.events import Added, Removed
from reconciler.service.domain.refusal import not_found
from reconciler.service.domain.state import change, switch
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, details_at, details_read
from reconciler.service.operations.form import NAME, Asked, Form, FormField, name_field
from reconciler.service.operations.operation import Effect, Operation, operation
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.texts import View
from reconciler.service.projections.objects import state_of

PROJECT_ID = name_field("projectId")


@dataclass(frozen=True, slots=True)
class ById:
    """Fields by which a call names an object: its id, and its project if one owns it."""

    kind: Kind
    id: str = "id"

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields."""
        return (*_owner_fields(self.kind), name_field(self.id))

    @property
    def form(self) -> Form:
        """Return the form of a request that says no more."""
        return Form(None, self.fields)

    def object(self, call: Reading, asked: Asked) -> ObjectRow:
        """Return the object.

        Raises:
            Refusal: it is missing.
        """
        row = call.object(self.kind, asked[self.id])
        if self.kind in IN_PROJECT and row.parent != asked["projectId"]:
            raise not_found(KINDS[self.kind].noun)
        return row

    def target(self, call: Writing, asked: Asked) -> ObjectRow:
        """Return the object that is to be changed or removed.

        Raises:
            Refusal: it is missing, or at another sequence than the caller expects.
        """
        row = self.object(call, asked)
        call.expect(row.sequence)
        return row


def _owner_fields(kind: Kind) -> tuple[Field, ...]:
    return (PROJECT_ID,) if kind in IN_PROJECT else ()


def added(
    call: Writing, kind: Kind, asked: Asked, client_id: str = "", secret_hash: str = ""
) -> ObjectRow:
    """Make an object in the project that the call names, or in its organization."""
    if kind in IN_PROJECT:
        project = call.owner(Kind.PROJECT, asked["projectId"])
        organization, parent = project.organization, project.id
    else:
        organization, parent = call.organization().id, ""
    event = Added(kind, asked["name"], parent, client_id, secret_hash, asked.spec)
    return call.create(organization, event)


@dataclass(frozen=True, slots=True)
class Add:
    """Make an object of a kind.

    Attributes:
        answers: Members of the answer, in their order; one of them is ``details``.
    """

    kind: Kind
    answers: Sequence[str]

    def __call__(self, call: Writing, asked: Asked) -> Answer:
        """Return the id and the details of the new object."""
        row = added(call, self.kind, asked)
        return {name: details_read(row) if name == "details" else row.id for name in self.answers}


def add(
    name: str,
    permission: str,
    kind: Kind,
    *more: FormField,
    answers: Sequence[str] = ("details", "id"),
    but_for: str = "",
    about: str = "",
) -> Operation:
    """Return the operation that makes an object; its request has ``more`` after the name."""
    form = Form(kind, (*_owner_fields(kind), NAME, *more), but_for)
    return operation(
        name, permission, Effect.CREATES, Add(kind, answers), form,
        about=about or f"Make {KINDS[kind].one} in the organization of the call.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Get:
    """Answer one object.

    Attributes:
        member: The member of the answer that shows it.
        view: Must show nothing that changes without a new sequence; see ``Texts``.
    """

    named: ById
    member: str
    view: View

    def __call__(self, call: Reading, asked: Asked) -> Answer:
        """Return the object as the only member."""
        return call.shown_alone(self.member, self.view, self.named.object(call, asked))


def get(name: str, permission: str, named: ById, member: str, view: View) -> Operation:
    """Return the operation that answers one object."""
    return operation(
        name, permission, Effect.READS, Get(named, member, view),
        named.form,
        about=f"Answer one {KINDS[named.kind].noun}.",
    )  # fmt: skip


def _updating(named: ById) -> Callable[[Writing, Asked], Answer]:
    """Return what updates what a request says: the name, the whole spec, or both."""

    def work(call: Writing, asked: Asked) -> Answer:
        row = named.target(call, asked)
        events = change(state_of(row), name=asked.fields.get("name"), spec=asked.spec or None)
        return call.update(row, events)

    return work


def update(
    name: str, permission: str, named: ById, *others: FormField, about: str = ""
) -> Operation:
    """Return the operation that updates a whole object; ``others`` are all its further fields."""
    form = Form(named.kind, others or (NAME, *named.fields))
    return operation(
        name, permission, Effect.CHANGES, _updating(named), form,
        about=about
        or f"Update a whole {KINDS[named.kind].noun}; "
        "what is left out is at its default afterwards.",
    )  # fmt: skip


def rename(name: str, permission: str, named: ById, *more: FormField) -> Operation:
    """Return the operation that gives an object another name; its request has ``more`` after it."""
    form = Form(None, (*named.fields, NAME, *more))
    return operation(
        name, permission, Effect.CHANGES, _updating(named), form,
        about=f"Give {KINDS[named.kind].one} another name.",
    )  # fmt: skip


def _switching(named: ById, *, active: bool) -> Callable[[Writing, Asked], Answer]:
    """Return what switches an object on or off; one that is so already is refused."""

    def work(call: Writing, asked: Asked) -> Answer:
        row = named.target(call, asked)
        return call.update(row, switch(state_of(row), active=active))

    return work


def switches(noun: str, permission: str, named: ById) -> tuple[Operation, Operation]:
    """Return the operations that switch an object off and on; ``noun`` ends their names."""
    form = named.form
    off, on = _switching(named, active=False), _switching(named, active=True)
    one = KINDS[named.kind].one
    return (
        operation(
            f"Deactivate{noun}", permission, Effect.CHANGES, off, form,
            about=f"Switch {one} off; one that is off is refused.",
        ),
        operation(
            f"Reactivate{noun}", permission, Effect.CHANGES, on, form,
            about=f"Switch {one} on again; one that is on is refused.",
        ),
    )  # fmt: skip


def remove(
    name: str,
    permission: str,
    named: ById,
    *,
    answers_details: bool = True,
    about: str = "",
) -> Operation:
    """Return the operation that removes an object, and answers its details or nothing."""

    def work(call: Writing, asked: Asked) -> Answer:
        row = named.target(call, asked)
        stored = call.remove(row, Removed(named.kind))
        details = details_at(row.organization, stored.sequence)
        return {"details": details} if answers_details else {}

    return operation(
        name, permission, Effect.REMOVES, work, named.form,
        about=about or f"Remove {KINDS[named.kind].one}.",
    )  # fmt: skip
