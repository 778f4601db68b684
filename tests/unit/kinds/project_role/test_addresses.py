"""Keys of roles in addresses: whatever the client writes, the service reads."""

from __future__ import annotations

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import Call
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.table import operations
from reconciler.service.transport.json_http import Addresses, Found
from reconciler.service_client.http_messages import target_of
from tests.unit.kinds.project_role.keys import PLAIN_KEYS, REWRITTEN_KEYS

ADDRESSES = Addresses(operations().values())
ROLES = "/management/v1/projects/1/roles"


def read(verb: str, path: str) -> tuple[str, object]:
    found = ADDRESSES.find(verb, path)
    assert isinstance(found, Found)
    return found.operation.name, found.fields.get("roleKey")


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_a_key_comes_back_from_its_address(key: str) -> None:
    call = Call("RemoveProjectRole", {"projectId": "1", "roleKey": key})

    target = target_of(call)

    assert target.path.isascii()
    assert target.path.count("/") == ROLES.count("/") + 1
    assert read(target.verb, target.path) == ("RemoveProjectRole", key)


@pytest.mark.parametrize("operation", ["RemoveProjectRole", "UpdateProjectRole"])
@pytest.mark.parametrize("key", REWRITTEN_KEYS)
def test_a_key_that_a_proxy_could_rewrite_is_not_sent(key: str, operation: str) -> None:
    """A proxy_pass of nginx with a path makes the address of the project of roles/..%2F..%2F2."""
    with pytest.raises(ServiceError, match="proxy"):
        target_of(Call(operation, {"projectId": "1", "roleKey": key}))


def test_a_key_may_be_written_with_slashes() -> None:
    assert read("PUT", f"{ROLES}/a/b%2Fc") == ("UpdateProjectRole", "a/b/c")


def test_the_list_is_not_a_key() -> None:
    assert read("POST", f"{ROLES}/_search") == ("ListProjectRoles", None)
    assert read("PUT", f"{ROLES}/_search") == ("UpdateProjectRole", "_search")


def test_other_verbs_are_refused_by_name() -> None:
    refused = ADDRESSES.find("GET", f"{ROLES}/a/b")
    assert isinstance(refused, Refusal)
    assert refused.code == 12


@pytest.mark.parametrize("path", [f"{ROLES}/%ff", "/management/v1/projects/%2f/roles/a"])
def test_what_is_no_text_or_another_address_is_refused(path: str) -> None:
    refused = ADDRESSES.find("DELETE", path)
    assert isinstance(refused, Refusal)
    assert refused.code == 3
