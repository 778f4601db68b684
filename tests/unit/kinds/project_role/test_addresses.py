"""Keys of roles in addresses: whatever the client writes, the service reads."""

from __future__ import annotations

import pytest

from reconciler.resources.call import Call
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.table import operations
from reconciler.service.transport.json_http import Addresses, Found
from reconciler.service_client.http_messages import target_of

ADDRESSES = Addresses(operations().values())
ROLES = "/management/v1/projects/1/roles"


def read(verb: str, path: str) -> tuple[str, object]:
    found = ADDRESSES.find(verb, path)
    assert isinstance(found, Found)
    return found.operation.name, found.fields.get("roleKey")


@pytest.mark.parametrize(
    "key",
    ["admin", "Admin", "a/b", "/", "a//b", "a%2Fb", "100%", "a=b", "a b", "Käufer", ".hidden", ".",
     "..", "../..", "_search", "a?b#c", "a;b", "a\\b", "\n", "ü" * 200, "日本"],
)  # fmt: skip
def test_a_key_comes_back_from_its_address(key: str) -> None:
    call = Call("RemoveProjectRole", {"projectId": "1", "roleKey": key})

    target = target_of(call)

    assert target.path.isascii()
    assert target.path.count("/") == ROLES.count("/") + 1
    assert not target.path.endswith(("/.", "/.."))
    assert read(target.verb, target.path) == ("RemoveProjectRole", key)


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
