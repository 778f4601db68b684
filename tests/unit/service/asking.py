"""Calls of operations, short to write: valid by default, so that a test states its subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.service.build import IdentityService
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request
from tests.examples import JWT, SCRIPT, Clock

ADMIN = Caller("admin", Role.ADMIN)


@dataclass
class Asking:
    """A service, and an organization with a project in it."""

    service: IdentityService
    clock: Clock
    organization: str = ""
    project: str = ""

    def prepare(self) -> None:
        """Make organization and project."""
        self.organization = self("AddOrg", name="acme")["id"]
        self.project = self("AddProject", organization=self.organization, name="shop")["id"]

    def __call__(self, operation: str, /, **fields: Any) -> dict[str, Any]:
        """Call, and return what is answered. See ``BESIDE`` for what is no field."""
        return self.service.call(self.request(operation, fields))

    def request(self, operation: str, fields: Mapping[str, Any]) -> Request:
        """Return a call; what goes beside the fields is told from them by its name."""
        beside = {BESIDE[name]: fields[name] for name in BESIDE if name in fields}
        rest = {name: value for name, value in fields.items() if name not in BESIDE}
        caller = beside.pop("caller", ADMIN)
        if "named" in rest:  # the leases have a field that is called organization
            rest["organization"] = rest.pop("named")
        return Request(operation, rest, caller=caller, **beside)

    def refused(self, operation: str, /, **fields: Any) -> Refusal:
        """Call, and return the refusal."""
        with pytest.raises(Refusal) as caught:
            self(operation, **fields)
        return caught.value

    def an_action(self, name: str = "greet", **fields: Any) -> dict[str, Any]:
        """Make an action."""
        return self(
            "CreateAction",
            **{"organization": self.organization, "name": name, "script": SCRIPT, **fields},
        )

    def an_app(self, name: str = "web", **fields: Any) -> dict[str, Any]:
        """Make an application."""
        return self("AddOIDCApp", **{"projectId": self.project, "name": name, **fields})

    def an_idp(self, name: str = "partner", **fields: Any) -> dict[str, Any]:
        """Make an identity provider."""
        return self(
            "AddOrgJWTIDP", **{"organization": self.organization, "name": name, **JWT, **fields}
        )

    def objects(self, **fields: Any) -> list[dict[str, Any]]:
        """Return every object of the organization but itself and the project."""
        answer = self("ListObjects", organizationId=self.organization, **fields)
        return [found for found in answer["objects"] if found["kind"] not in BORING]

    def event_count(self) -> int:
        """Return how many events the log has."""
        with self.service.store.snapshot() as view:
            return len(view.read_all(limit=100_000))


# What goes beside the fields of a call, by its name in tests and in a request.
BESIDE = {
    "by": "caller",
    "organization": "organization",
    "expected_sequence": "expected_sequence",
    "idempotency_key": "idempotency_key",
    "under": "lease",
    "context": "context",
    "custody": "custody",
}
BORING = {"Organization", "Project"}
