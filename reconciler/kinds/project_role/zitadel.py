"""The roles of the projects of a ZITADEL, which no call reads one by one."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import AlreadyExistsError, ObjectNotFoundError, ServiceError
from reconciler.kinds.project_role.fields import role_id
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind
from reconciler.service_client.answers import text_of
from reconciler.service_client.kinds import Placed
from reconciler.service_client.port import CreateOrder
from reconciler.service_client.wire import AGAIN
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import NO_PROJECT, Owner, items_of
from reconciler.state import ObservedObject


class _Roles(ZitadelKind):
    def named(self, at: Placed) -> Call:
        return self._of_key(at, "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE")

    def _of_key(self, at: Placed, method: str) -> Call:
        operation, fields = self.list_call({"keyQuery": {"key": at.ref.name, "method": method}})
        return Call(operation, {**fields, "projectId": at.project_id}, at.organization_id)

    def id_of(self, item: JsonObject) -> str:
        return text_of(item, "key")

    def is_called(self, item: JsonObject, name: str) -> bool:
        return text_of(item, "key") == name

    def kept_out(self, order: CreateOrder, items: Sequence[JsonObject]) -> ServiceError | None:
        keys = [text_of(item, "key") for item in items]
        if not keys:
            return None
        return AlreadyExistsError(
            f"ZITADEL refuses {order.ref} beside a role whose key differs in case: {keys[0]!r}",
            remedy="Choose another key, or remove that role first.",
        )

    def observed(
        self, item: JsonObject, owner: Owner, project: Owner = NO_PROJECT
    ) -> ObservedObject:
        key = text_of(item, "key")
        fields = {name: value for name, value in item.items() if name != "key"}
        own = {"id": role_id(project.id, key), "name": key}
        return super().observed({**fields, **own}, owner, project)

    def get(self, at: Placed, object_id: str) -> Call:
        return self._of_key(at, "TEXT_QUERY_METHOD_EQUALS")

    def read_in(self, answer: JsonObject) -> object:
        return next(iter(items_of(answer)), None)

    def moved_on(
        self, at: CreateOrder | ObservedObject, sequence: int, answer: JsonObject
    ) -> ServiceError | None:
        if not items_of(answer):
            return ObjectNotFoundError(f"{at.ref} does not exist in the service", remedy=AGAIN)
        return super().moved_on(at, sequence, answer)


ROW = _Roles(
    Kind.PROJECT_ROLE,
    lists="ListProjectRoles",
    not_changed=("COMMAND-5M0cs",),
)
