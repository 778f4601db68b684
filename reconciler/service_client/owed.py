"""Owed secrets over the wire: listing, claiming and acknowledging them."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.secret import Secret
from reconciler.service_client.answers import (
    PAGE,
    cursor_pages,
    id_of,
    objects_of,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.service_client.port import Context, CreateOrder, Order, SecretOrder, Written
from reconciler.service_client.wire import (
    Reply,
    Wire,
    WireRefusal,
    answers_in,
    no_custody,
)
from reconciler.state import ObservedObject, OwedSecret

AT_ONCE = 500  # secrets of one claim or acknowledgement
_STATES = {"owed": False, "lost": True}  # whether only a new one can be made
T = TypeVar("T", OwedSecret, Written)


class _Owner(NamedTuple):
    """The organization of an application: its id, and its name folded."""

    id: str
    folded: str


class Custody:
    """The secrets that a service keeps until their delivery is acknowledged.

    The operations go by organization, and an order or a result by application: the owners of
    all applications that were written or listed are kept here.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._owners: dict[str, _Owner] = {}

    def note(self, order: Order, result: Written | ServiceError) -> None:
        """Remember the owner of an application that an order gave a secret."""
        if isinstance(order, CreateOrder | SecretOrder) and isinstance(result, Written):
            self._owners[result.id] = _Owner(order.organization_id, order.ref.key.organization)

    def listed(
        self, organizations: Sequence[str], objects: Iterable[ObservedObject]
    ) -> tuple[OwedSecret, ...]:
        """Return what is owed in organizations (ids), of the objects that were listed there."""
        held = {found.id: found for found in objects}
        found: list[OwedSecret] = []
        asked = {"cursor": "", "limit": PAGE}
        calls = {
            each: Call("ListOwedSecrets", {"organizationId": each, **asked}, each)
            for each in organizations
        }
        for _, page in cursor_pages(self._wire, calls, "cursor"):
            found += owed_secrets(objects_of(page, "owedSecrets"), held)
        for owed in found:
            name = owed.ref.key.organization
            self._owners[owed.id] = _Owner(held[owed.id].organization_id, name)
        return tuple(sorted(found, key=lambda owed: owed.ref.key))

    def claim(
        self, owed: Sequence[OwedSecret], context: Context, leases: Mapping[str, str]
    ) -> Sequence[Written | ServiceError]:
        """Return owed secrets, in the order given; leases are by folded names."""
        found: dict[str, Written | ServiceError] = {}
        # Claims are recorded with the reason, like writes.
        text = json.dumps(context)
        asked = []
        for owner, mine in self._by_owner(owed):
            named = [(each.id, each.made_at) for each in mine]
            call = _custody_call("ClaimSecrets", owner, named, leases)
            asked.append((mine, replace(call, context=text)))
        answers = self._answers([call for _, call in asked])
        for (mine, _), answer in zip(asked, answers, strict=True):
            results = _claimed_all(mine, answer)
            found.update((each.id, result) for each, result in zip(mine, results, strict=True))
        # An application that was neither written nor listed here has no owner to ask.
        return [found.get(each.id) or no_custody() for each in owed]

    def acknowledge(self, delivered: Collection[Written], leases: Mapping[str, str]) -> None:
        """End the custody of delivered secrets; leases are by folded names.

        An application that was neither written nor listed here owes nothing that is known.

        Raises:
            LockHeldError: the run has lost the lease of an organization.
            ServiceError: a call was refused.
        """
        calls = []
        for owner, mine in self._by_owner(delivered):
            named = [(each.id, each.sequence) for each in mine]
            calls.append(_custody_call("AcknowledgeSecrets", owner, named, leases))
        lost = "another run has taken the lock of the organization, or it ran out"
        self._answers(calls, lost)

    def _answers(self, calls: Sequence[Call], lost: str = "") -> Sequence[JsonObject]:
        """Carry out claims or acknowledgements; return their answers, in their order.

        A proxy may let through less than the service takes. What it refuses is asked in halves.

        Raises:
            LockHeldError: a call was aborted; ``lost`` says which lease the run lost.
            ServiceError: a call was refused.
        """
        answers: list[JsonObject] = []
        replies = self._wire.send(calls) if calls else ()
        for call, reply in zip(calls, replies, strict=True):
            if _is_too_large(call, reply):
                halves = self._answers(_halves(call), lost)
                claimed = [objects_of(half, "secrets") for half in halves if "secrets" in half]
                answers.append({"secrets": [each for some in claimed for each in some]})
            else:
                answers += answers_in([reply], lost)
        return answers

    def _by_owner(self, values: Iterable[T]) -> Iterator[tuple[_Owner, Sequence[T]]]:
        """Yield values by organization, as many at a time as one call may name."""
        groups: dict[_Owner, list[T]] = defaultdict(list)
        for value in values:
            owner = self._owners.get(value.id)
            if owner is not None:
                groups[owner].append(value)
        for owner, mine in groups.items():
            for start in range(0, len(mine), AT_ONCE):
                yield owner, mine[start : start + AT_ONCE]


def _is_too_large(call: Call, reply: Reply) -> bool:
    """Return whether something before the service refused a call that can be made shorter."""
    return (
        isinstance(reply, WireRefusal)
        and reply.code == Code.INVALID_ARGUMENT
        and not reply.is_code_told
        and not reply.unsure
        and len(call.fields["secrets"]) > 1
    )


def _halves(call: Call) -> Sequence[Call]:
    named = call.fields["secrets"]
    middle = len(named) // 2
    halves = (named[:middle], named[middle:])
    return [replace(call, fields={**call.fields, "secrets": half}) for half in halves]


def _custody_call(
    operation: str, owner: _Owner, named: Sequence[tuple[str, int]], leases: Mapping[str, str]
) -> Call:
    secrets = [{"id": object_id, "madeAt": str(made_at)} for object_id, made_at in named]
    fields = {"organizationId": owner.id, "secrets": secrets}
    lease = leases.get(owner.folded, "")
    return Call(operation, fields, organization=owner.id, lease=lease)


def owed_secrets(
    listed: Sequence[JsonObject], held: Mapping[str, ObservedObject]
) -> Iterator[OwedSecret]:
    """Yield listed secrets of applications that were listed too, by id.

    An application that came to be between both listings is left for the next look.
    """
    for fields in listed:
        application = held.get(id_of(fields))
        state = _STATES.get(text_of(fields, "state"))
        if state is None:
            raise unsound(id_of(fields), "its state is not known here")
        if application is not None:
            yield OwedSecret(
                ref=application.ref,
                id=application.id,
                client_id=text_of(fields, "clientId"),
                made_at=sequence_of(fields, "madeAt"),
                since=text_of(fields, "since"),
                by=text_of(fields, "madeBy"),
                tree=text_of(fields, "tree"),
                run=text_of(fields, "run"),
                lost=state,
            )


def owed_by_tree(organization: JsonObject) -> Mapping[str, int]:
    """Return how many secrets an organization owes to each tree."""
    counts = objects_of(organization, "owed")
    return {text_of(each, "tree"): sequence_of(each, "secrets") for each in counts}


def _claimed_all(owed: Sequence[OwedSecret], answer: JsonObject) -> list[Written | ServiceError]:
    """Return what a claim answered for each secret, in the order asked."""
    found = objects_of(answer, "secrets")
    # A secret given to the wrong application would be delivered under its name.
    if [each.get("id") for each in found] != [each.id for each in owed]:
        raise unsound("?", "a claim was answered with other secrets")
    return [_claimed(each, fields) for each, fields in zip(owed, found, strict=True)]


def _claimed(owed: OwedSecret, fields: JsonObject) -> Written | ServiceError:
    error, secret = fields.get("error"), fields.get("clientSecret")
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
        if isinstance(code, int) and isinstance(message, str):
            return ServiceError(
                f"the service refused: {message}",
                remedy="Run `reconciler plan` again. If the secret is owed still, make a new one: "
                f"reconciler apply --rotate-missing {shlex.quote(owed.ref.address)}",
            )
    if not isinstance(secret, str) or not secret or sequence_of(fields, "madeAt") != owed.made_at:
        raise unsound(owed.id, "a claim was answered with neither its secret nor an error")
    return Written(owed.id, owed.made_at, text_of(fields, "clientId"), Secret(secret))
