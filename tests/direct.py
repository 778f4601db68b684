"""A service as another person uses it: without manifests, under another name."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request


class Direct:
    """Calls operations on a store, beside whatever else works with it."""

    def __init__(self, store: Path, name: str = "ana", organization: str = "acme") -> None:
        self.store = store
        self.organization = organization
        self._caller = Caller(name, Role.ADMIN)

    def __call__(self, operation: str, organization: str = "", **fields: Any) -> dict[str, Any]:
        """Call; ``context`` is no field."""
        context = str(fields.pop("context", ""))
        with closing(open_sqlite(self.store)) as service:
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

    def remove_app(self, name: str) -> None:
        held = self.objects()[name]
        self("RemoveApp", projectId=held["projectId"], appId=held["id"])
