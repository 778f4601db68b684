"""Operations over JSON: the limits and answers of the source, leases and health."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from tests.contract.json_transport.asking import NAMES, ask, refused, send
from tests.contract.story import JWT
from tests.running import Server

# Source sections 7 and 8.


@pytest.mark.parametrize("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        pytest.param("é" * 200, True, id="200 characters"),
        pytest.param("\U0001f511" * 200, True, id="200 characters beyond the basic plane"),
        pytest.param("x" * 201, False, id="201 characters"),
        pytest.param(None, False, id="left out"),
        pytest.param("", False, id="empty"),
        pytest.param(7, False, id="a number"),
    ],
)
def test_the_jwt_configuration_keeps_its_limits(
    server: Server, idp: str, field: str, value: Any, *, is_taken: bool
) -> None:
    """Source 2.2 and 8. Of the four fields, one may be empty: headerName."""
    answer = send(server, "PUT", f"/management/v1/idps/{idp}/jwt_config", {**JWT, field: value})

    if is_taken or (field, value) == ("headerName", ""):
        assert answer.status == 200
        assert set(answer.json) == {"details"}
    else:
        assert refused(answer, 400, 3).startswith(f"{field}: ")


@pytest.mark.parametrize("prefix", ["/management/v1", "/admin/v1"])
def test_the_jwt_configuration_is_updated_at_both_addresses(
    server: Server, idp: str, prefix: str
) -> None:
    """Source 4.1: 200, 403, 404 and 409, each for its reason."""
    path, body = f"{prefix}/idps/{idp}/jwt_config", json.dumps(JWT).encode()

    assert ask(server, "PUT", path, body).status == 200
    refused(ask(server, "PUT", path, body, server.bearer("viewer")), 403, 7)
    refused(ask(server, "PUT", path, body, server.bearer("stranger")), 404, 5)
    refused(ask(server, "PUT", f"{prefix}/idps/1/jwt_config", body), 404, 5)
    refused(ask(server, "PUT", path, body, {"if-match": '"1"'}), 409, 9)


def test_an_application_is_created_as_the_source_shows(server: Server) -> None:
    """Source 2.4: the secret comes with the answer, and only where there is one."""
    path = f"/management/v1/projects/{server.known.project}/apps/oidc"

    web = send(server, "POST", path, {"name": next(NAMES)})
    spa = send(
        server, "POST", path,
        {"name": next(NAMES), "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"},
    )  # fmt: skip

    fields = {"appId", "details", "clientId", "noneCompliant", "complianceProblems"}
    assert set(web.json) == fields | {"clientSecret"}
    assert set(spa.json) == fields
    assert isinstance(web.json["details"]["sequence"], str)


def test_a_held_lease_says_who_holds_it(server: Server) -> None:
    """Whoever waits wants to know for whom."""
    lease = {"organization": "acme", "holder": "ci run 17", "seconds": 60}
    held = send(server, "POST", "/reconciler/v1/leases", lease)
    assert held.status == 200

    answer = send(server, "POST", "/reconciler/v1/leases", {**lease, "holder": "me"})

    refused(answer, 409, 10)
    (detail,) = answer.json["details"]
    assert (detail["id"], detail["holder"]) == ("lease.held", "ci run 17")
    assert {"acquiredAt", "expiresAt", "fence"} <= set(detail)
    gone = {"organization": "acme", "lease": held.json["lease"]}
    assert send(server, "DELETE", "/reconciler/v1/leases", gone).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/debug/healthz", "/debug/ready"])
def test_health_needs_no_token(server: Server, path: str) -> None:
    """Those who ask are machines that have none."""
    answer = ask(server, "GET", path, headers={"authorization": ""})

    assert answer.status == 200


@pytest.mark.parametrize("path", ["/management/v1/healthz", "/admin/v1/healthz"])
def test_health_is_also_where_similar_services_have_it(server: Server, path: str) -> None:
    """An empty object, as there."""
    answer = ask(server, "GET", path, headers={"authorization": ""})

    assert (answer.status, answer.json) == (200, {})


def test_head_is_get_without_a_body(server: Server) -> None:
    """Some checks of health ask so."""
    with_body = ask(server, "GET", "/management/v1/orgs/me")
    head = exchange_head(server, "/management/v1/orgs/me")

    assert head == with_body.headers["content-length"]


def exchange_head(server: Server, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("HEAD", path, headers=server.bearer())
        response = connection.getresponse()
        assert response.status == 200
        assert response.read() == b""
        return response.headers["content-length"]
    finally:
        connection.close()
