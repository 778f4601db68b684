"""A service as another person uses it: without manifests, under another name."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

from reconciler.service.build import IdentityService, open_postgres, open_sqlite
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request


class Direct:
    """Calls operations on a store, beside whatever else works with it."""

    def __init__(self, store: Path, name: str = "ana", organization: str = "acme") -> None:
        self.store = store
        self.organization = organization
        self._caller = Caller(name, Role.ADMIN)

    def opened(self) -> AbstractContextManager[IdentityService]:
        """Open the store for one call."""
        return closing(open_sqlite(self.store))

    def __call__(self, operation: str, organization: str = "", **fields: Any) -> dict[str, Any]:
        """Call; ``context`` is no field."""
        context = str(fields.pop("context", ""))
        with self.opened() as service:
            request = Request(
                operation,
                fields,
                caller=self._caller,
                organization=organization,
                context=context,
            )
            return service.call(request)

    def named(self, name: str) -> Direct:
        """Return the same for a person of another name."""
        return Direct(self.store, name, self.organization)

    def objects(self) -> dict[str, dict[str, Any]]:
        found = self("ListOrgs")["result"]
        (owner,) = [each["id"] for each in found if each["name"] == self.organization]
        return {
            found["name"]: found for found in self("ListObjects", organizationId=owner)["objects"]
        }

    def change(self, action: str, **fields: Any) -> None:
        held = self.objects()[action]
        self("UpdateAction", id=held["id"], **{"name": action, **held["spec"], **fields})

    def change_as(self, context: str, action: str, **fields: Any) -> None:
        """Change an action with a context that claims something."""
        held = self.objects()[action]
        changed = {"id": held["id"], "name": action, **held["spec"], **fields}
        with self.opened() as service:
            request = Request("UpdateAction", changed, caller=self._caller, context=context)
            service.call(request)

    def of_tree(self, operation: str, organization: str = "acme", **fields: Any) -> dict[str, Any]:
        """Call an operation about the tree ``default`` of an organization."""
        named = {"organization": organization, "tree": "default", **fields}
        with self.opened() as service:
            return service.call(Request(operation, named, caller=self._caller))

    def record(self, organization: str, commit: str) -> None:
        """Lead the tree of an organization for a moment, and record a commit as applied."""
        given = self.of_tree("AcquireLease", organization, holder="ana", seconds=60)
        lease = {"lease": given["lease"]}
        self.of_tree("RecordCommit", organization, commit=commit, outcome="changed", **lease)
        self.of_tree("ReleaseLease", organization, **lease)

    def remove_app(self, name: str) -> None:
        held = self.objects()[name]
        self("RemoveApp", projectId=held["projectId"], appId=held["id"])


class DirectDatabase(Direct):
    """The same on a database; ``store`` is the file of its seal key."""

    def __init__(self, address: str, seal_key: Path) -> None:
        super().__init__(seal_key)
        self._address = address

    def opened(self) -> AbstractContextManager[IdentityService]:
        return closing(open_postgres(self._address, seal_key_file=self.store))
