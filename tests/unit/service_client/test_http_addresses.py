"""Where calls go over HTTP, what may be asked twice, and which addresses are fit for a token."""

from __future__ import annotations

import pytest

from reconciler.errors import ServiceError, UsageError
from reconciler.resources.call import ADDRESSES, Call
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.http_messages import Target, target_of
from reconciler.service_client.retries import may_repeat
from reconciler.service_client.wire import is_id, is_read


@pytest.mark.parametrize(
    ("call", "target"),
    [
        (Call("GetServiceInfo"), Target("GET", "/reconciler/v1/service", None)),
        (
            Call("ListObjects", {"organizationId": "7", "cursor": "", "limit": 10}),
            Target("GET", "/reconciler/v1/organizations/7/objects?limit=10", None),
        ),
        (
            Call("AddOIDCApp", {"projectId": "2", "name": "w\u00eb"}),
            Target("POST", "/management/v1/projects/2/apps/oidc", b'{"name":"w\\u00eb"}'),
        ),
        (
            Call("RemoveApp", {"projectId": "2", "appId": "3"}),
            Target("DELETE", "/management/v1/projects/2/apps/3", None),
        ),
        (
            Call("ReleaseLease", {"organization": "acme", "lease": "1.x"}),
            Target("DELETE", "/reconciler/v1/leases", b'{"organization":"acme","lease":"1.x"}'),
        ),
        (
            Call("RegenerateOIDCClientSecret", {"projectId": "2", "appId": "3"}),
            Target(
                "POST",
                "/management/v1/projects/2/apps/3/oidc_config/_generate_client_secret",
                b"{}",
            ),
        ),
    ],
)
def test_a_call_has_one_address(call: Call, target: Target) -> None:
    """What is not in the path goes into the query or the body."""
    assert target_of(call) == target


@pytest.mark.parametrize(
    "object_id", ["", "..", "a/b", "a%2fb", "a?b", "a#b", "a b", "\u0661", "a\n", "x" * 201]
)
def test_what_could_leave_its_place_in_a_path_is_no_id(object_id: str) -> None:
    """Ids come from the service, and steer no address but their own."""
    assert not is_id(object_id)
    with pytest.raises(ServiceError):
        target_of(Call("DeleteAction", {"id": object_id}))


@pytest.mark.parametrize("object_id", ["1", "301234567890123456", "oid-shop-web", "A_b-9"])
def test_usual_ids_are_ids(object_id: str) -> None:
    """Decimal strings, and what others make."""
    assert is_id(object_id)


def test_reads_are_those_that_get_or_list() -> None:
    """The rest writes, and is held to more."""
    reads = {name for name in ADDRESSES if is_read(Call(name))}

    assert reads == {name for name in ADDRESSES if name.startswith(("Get", "List", "Healthz"))}


@pytest.mark.parametrize(
    ("call", "may"),
    [
        (Call("ListApps"), True),
        (Call("AddOIDCApp"), False),
        (Call("AddOIDCApp", idempotency_key="k"), True),
        (Call("UpdateAction"), False),
        (Call("UpdateAction", expected_sequence=0), True),
        (Call("DeleteAction", expected_sequence=7), True),
        (Call("RegenerateOIDCClientSecret"), False),
        (Call("RenewLease"), True),
        (Call("AcquireLease"), False),
    ],
)
def test_what_counts_twice_is_not_repeated(call: Call, *, may: bool) -> None:
    """Only where the service itself keeps a second one from counting."""
    assert may_repeat(call) is may


@pytest.mark.parametrize(
    ("address", "origin", "prefix"),
    [
        ("https://id.example.com", "https://id.example.com", ""),
        ("https://ID.example.com:8443/", "https://id.example.com:8443", ""),
        ("https://example.com/identity/", "https://example.com", "/identity"),
        ("http://localhost:8080", "http://localhost:8080", ""),
        ("http://127.0.0.7:1", "http://127.0.0.7:1", ""),
        ("http://[::1]:8080", "http://[::1]:8080", ""),
    ],
)
def test_an_address_is_an_origin_and_a_path(address: str, origin: str, prefix: str) -> None:
    """The origin is where the token goes, and nowhere else."""
    endpoint = parse_endpoint(address)

    assert (endpoint.origin, endpoint.prefix) == (origin, prefix)


@pytest.mark.parametrize(
    "address",
    [
        "http://id.example.com",
        "http://10.0.0.1",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://0.0.0.0",
        "https://user@id.example.com",
        "https://user:geheim@id.example.com",
        "https://id.example.com/?token=geheim",
        "https://id.example.com/#x",
        "https://id.example.com/../x",
        "https://id.example.com/a b",
        "https://id.example.com:port",
        "https://id.example.com:99999",
        "https://",
        "https://-",
        "https://ex\u00e4mple.com",
        "https://[::1",
        "ftp://id.example.com",
    ],
)
def test_an_address_that_endangers_the_token_is_refused(address: str) -> None:
    """And what it holds is not repeated where it may be a password."""
    with pytest.raises(UsageError) as refused:
        parse_endpoint(address)

    assert "geheim" not in refused.value.problem + refused.value.remedy
