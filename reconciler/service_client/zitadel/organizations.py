"""Organizations of a ZITADEL, found for the user of any token.

The present list answers every valid token. It counts first and leaves out afterwards what the
user may not read: fewer items than its total mean organizations without rights, no unsound list.
A server without it is asked in the old ways: the list of the instance, and where the user may
not read that, the organizations that the user lives in or has a role of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.errors import AccessDeniedError
from reconciler.resources.call import Call, Code, JsonObject, is_id
from reconciler.resources.ref import fold
from reconciler.service_client.answers import text_of
from reconciler.service_client.wire import Answer, Wire, WireRefusal, error_id, service_error
from reconciler.service_client.zitadel.kinds import OF_INSTANCE, PRESENT, by_name
from reconciler.service_client.zitadel.objects import all_items, items_of, organization, total_of
from reconciler.service_client.zitadel.reading import Seen
from reconciler.service_client.zitadel.roles import (
    memberships,
    missing_role,
    no_organization,
    reads_everything,
    roles_of_user,
)
from reconciler.state import ObservedObject

OWN = "GetMyOrg"
_SORTED = {PRESENT: "ORGANIZATION_FIELD_NAME_NAME", OF_INSTANCE: "ORG_FIELD_NAME_NAME"}
_OTHER_WAY = frozenset({Code.PERMISSION_DENIED, Code.UNIMPLEMENTED, Code.NOT_FOUND})
_NO_MEMBERSHIP = "AUTHZ-cdgFk"


@dataclass(slots=True)
class OrganizationCalls:
    """The call by which a server lists organizations for the user of a token.

    Attributes:
        wire: To the server.
        way: The operation in use; the next one after a refusal, for the rest of the run.
        was_answered: The operation was answered, so a refusal of it is an error.
    """

    wire: Wire
    way: str = PRESENT
    was_answered: bool = False
    _is_of_instance: bool | None = None

    def find(self, names: Collection[str]) -> Seen:
        """Return the organizations of these names, ignoring case.

        Raises:
            AccessDeniedError: one exists that the user may not read, or the user may read none.
            ServiceError: the service cannot be read.
        """
        asked = list(names)
        while self.way != OWN:
            replies = self.wire.send([_named(self.way, name) for name in asked]) if asked else []
            refusal = next((each for each in replies if isinstance(each, WireRefusal)), None)
            if refusal is None:
                self.was_answered = self.was_answered or bool(asked)
                answers = [each.fields for each in replies if isinstance(each, Answer)]
                return self._found(dict(zip(asked, answers, strict=True)))
            self._go_on(refusal)
        return self._find_own(asked)

    def visible(self) -> Sequence[str]:
        """Return the names of every organization that the user may read, by name.

        Raises:
            AccessDeniedError: there is none.
            ServiceError: the service cannot be read.
        """
        while self.way != OWN:
            reply = all_items(self.wire, self.way, {"sortingColumn": _SORTED[self.way]})
            if isinstance(reply, WireRefusal):
                self._go_on(reply)
                continue
            if names := sorted({text_of(item, "name") for item in reply if _is_held(item)}):
                return names
            raise no_organization(roles_of_user(self.wire))
        if names := sorted({held.ref.name for held in (*self._own(), *self._of_roles())}):
            return names
        raise no_organization(roles_of_user(self.wire))

    def _find_own(self, names: Sequence[str]) -> Seen:
        """Return organizations that the user lives in, or has a role of."""
        found = {fold(held.ref.name): held for held in self._own()}
        if absent := {fold(name) for name in names} - found.keys():
            found |= {fold(held.ref.name): held for held in self._of_roles(absent)}
        if not found:
            raise no_organization(roles_of_user(self.wire))
        return self._seen(
            [found[fold(name)] for name in names if fold(name) in found],
            [name for name in names if fold(name) not in found],
        )

    def _seen(self, found: Iterable[ObservedObject], unseen: Sequence[str] = ()) -> Seen:
        remedy = missing_role(unseen[0], roles_of_user(self.wire), is_held=False) if unseen else ""
        seen = Seen(unseen=tuple(unseen), remedy=remedy)
        seen.add(found)
        return seen

    def _go_on(self, refusal: WireRefusal) -> None:
        """Ask in the next way from now on."""
        if self.was_answered or refusal.unsure or refusal.code not in _OTHER_WAY:
            raise service_error(refusal)
        self.way = OF_INSTANCE if self.way == PRESENT else OWN

    def _found(self, answers: Mapping[str, JsonObject]) -> Seen:
        found, hidden, absent = [], [], []
        for name, answer in answers.items():
            items = items_of(answer)
            item = next((each for each in items if _is_called(each, name)), None)
            if item is not None:
                found.append(organization(item))
            elif not items and total_of(answer):
                hidden.append(name)
            else:
                absent.append(name)
        if hidden:
            raise AccessDeniedError(
                f"the organization {hidden[0]} exists, and this token may not read it",
                remedy=missing_role(hidden[0], roles_of_user(self.wire), is_held=True),
            )
        # Who reads the whole instance sees every organization: what is absent does not exist.
        if absent and self.way == PRESENT and not self._reads_instance():
            return self._seen(found, absent)
        return self._seen(found)

    def _reads_instance(self) -> bool:
        """Return whether the user has a role over the whole instance."""
        if self._is_of_instance is None:
            told = memberships(self.wire, {"iamQuery": {"iam": True}})
            if told is None:
                # Only a user with such a role may read the list of the instance.
                (reply,) = self.wire.send([_named(OF_INSTANCE, "?")])
                self._is_of_instance = not isinstance(reply, WireRefusal)
            else:
                self._is_of_instance = any(reads_everything(each) for each in told)
        return self._is_of_instance

    def _own(self, organizations: Sequence[str] = ("",)) -> list[ObservedObject]:
        """Return organizations by id, without those that deny it; by default, the user's home."""
        found = []
        for reply in self.wire.send([Call(OWN, {}, each) for each in organizations]):
            if isinstance(reply, Answer):
                told = reply.fields.get("org")
                found.append(organization(told if isinstance(told, dict) else {}))
            elif reply.code != Code.PERMISSION_DENIED and error_id(reply) != _NO_MEMBERSHIP:
                raise service_error(reply)
        return found

    def _of_roles(self, names: Collection[str] | None = None) -> list[ObservedObject]:
        """Return the organizations that the user has a role of; only those of some folded names."""
        ids = [
            str(each["orgId"])
            for each in memberships(self.wire) or ()
            if is_id(each.get("orgId"))
            and (names is None or fold(str(each.get("displayName", ""))) in names)
        ]
        return self._own(ids) if ids else []


def _named(operation: str, name: str) -> Call:
    return Call(operation, {"queries": [by_name("nameQuery", name)]})


def _is_called(item: JsonObject, name: str) -> bool:
    return _is_held(item) and fold(text_of(item, "name")) == fold(name)


def _is_held(item: JsonObject) -> bool:
    """Return whether a listed organization exists: a list may go on showing a removed one."""
    return not str(item.get("state", "")).endswith("_REMOVED")
