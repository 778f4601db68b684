"""Fuzzing what is judged or shown as text: URIs, origins, durations, header names, reports."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from google.protobuf.duration_pb2 import Duration

from reconciler.kinds.action.fields import TIMEOUT
from reconciler.kinds.idp_jwt_config.rules import (
    endpoint_problems,
    header_problems,
    issuer_problems,
)
from reconciler.kinds.oidc_application.compliance import oidc_problems
from reconciler.kinds.oidc_application.fields import CLOCK_SKEW
from reconciler.kinds.oidc_application.redirect_uris import redirect_uri_problems
from reconciler.report.visible import LEAST, LIMIT, visible
from reconciler.resources.fields import (
    format_duration,
    normal_duration,
    parse_duration,
)
from reconciler.resources.normal import normal_form
from reconciler.resources.origin import parse_origin
from reconciler.resources.ref import Kind
from reconciler.rules.texts import is_ordinary
from reconciler.service.transport.framing import Framing
from reconciler.service.transport.limits import Limits
from reconciler.validation.schema import accepts
from tests.drawings import plan_as_markdown
from tests.fuzz.services import service_takes
from tests.hostile import hostile_findings, hostile_plan
from tests.unit.report.test_markdown import check_only_ours


def text_of(data: bytes) -> str:
    """Return bytes as any text of Python, halves of characters included."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _application(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "reconciler/v1",
        "kind": "OidcApplication",
        "metadata": {"organization": "acme", "project": "shop", "name": "web"},
        "spec": spec,
    }


def _is_declarable(**spec: object) -> bool:
    """Say whether a manifest may say so, as far as schema and domain rules go."""
    return accepts(Kind.OIDC_APPLICATION, _application(**spec)) and not oidc_problems(
        normal_form(Kind.OIDC_APPLICATION, spec)
    )


def redirect_uri(data: bytes) -> bool:
    """Judge a URI: what has no error means the same to every reader of it."""
    uri, flags = text_of(data[1:]), data[0] if data else 0
    native, dev_mode = bool(flags & 1), bool(flags & 2)
    problems = redirect_uri_problems(uri, native=native, dev_mode=dev_mode)
    assert problems == redirect_uri_problems(uri, native=native, dev_mode=dev_mode)
    assert not is_ordinary(uri) or problems == ()
    for problem in problems:
        visible(f"{problem.summary}{problem.remedy}").encode()
    is_wrong = any(problem.is_error for problem in problems)
    takes = service_takes("AddOIDCApp", redirectUris=[uri], postLogoutRedirectUris=[uri])
    assert takes == accepts(Kind.OIDC_APPLICATION, _application(redirectUris=[uri]))
    if is_wrong:
        return False
    assert takes
    _check_parts(uri, {problem.code for problem in problems})
    return True


def _check_parts(uri: str, codes: set[str]) -> None:
    """Assert that a URI without an error is read in one way."""
    parts = urlsplit(uri)
    assert uri.isascii()
    assert uri.isprintable()
    assert uri.startswith(f"{parts.scheme}:")
    assert not parts.fragment
    assert parts.username is None
    if parts.scheme not in {"http", "https"}:
        return
    host = parts.hostname or ""
    assert host
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port is None else f":{parts.port}"
    assert parts.netloc == f"{shown}{port}"
    assert not re.search(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", parts.path, re.IGNORECASE)
    is_local = re.fullmatch(r"localhost|127(?:\.[0-9]+){3}|\[(?=[0:]*1\]).*\]", shown) is not None
    assert ("URI-HTTP" in codes) == (parts.scheme == "http" and not is_local)


def endpoint(data: bytes) -> bool:
    """Judge an endpoint and an issuer: one without an error has a host."""
    url = text_of(data)
    problems = [*endpoint_problems(url)]
    for problem in (*problems, *issuer_problems(url)):
        visible(f"{problem.summary}{problem.remedy}").encode()
    if any(problem.is_error for problem in problems):
        return False
    parts = urlsplit(url)
    assert parts.scheme in {"http", "https"}
    assert parts.hostname
    return True


def origin(data: bytes) -> bool:
    """Parse an origin: it is written back as it was, and both sides agree on it."""
    text = text_of(data)
    try:
        found = parse_origin(text)
    except ValueError as refusal:
        visible(str(refusal)).encode()
        assert not service_takes("AddOIDCApp", additionalOrigins=[text])
        assert not _is_declarable(additionalOrigins=[text])
        return False
    port = "" if found.port is None else f":{found.port}"
    assert f"{found.scheme}://{found.host}{port}" == text
    parts = urlsplit(text)
    assert (parts.scheme, parts.netloc) == (found.scheme, f"{found.host}{port}")
    assert (parts.path, parts.query, parts.fragment, parts.port) == ("", "", "", found.port)
    assert service_takes("AddOIDCApp", additionalOrigins=[text])
    assert _is_declarable(additionalOrigins=[text])
    return True


def duration(data: bytes) -> bool:
    """Parse a duration: its normal form is one, and manifests and service take the same."""
    text = text_of(data)
    try:
        total = parse_duration(text)
    except ValueError:
        total = -1
    in_skew, in_timeout = 0 <= total <= CLOCK_SKEW.longest, 0 <= total <= TIMEOUT.longest
    assert _is_declarable(clockSkew=text) == in_skew
    assert service_takes("AddOIDCApp", clockSkew=text) == in_skew
    assert service_takes("CreateAction", timeout=text) == in_timeout
    if total < 0:
        return False
    shortest = format_duration(total)
    assert parse_duration(shortest) == total
    assert normal_duration(text) == normal_duration(shortest) == shortest
    assert len(shortest) <= len(text)
    protobuf = Duration()
    if total <= 10**12:
        protobuf.FromJsonString(text)
        assert protobuf.ToNanoseconds() == total
    return True


def header_name(data: bytes) -> bool:
    """Judge a header name: one without an error can be sent."""
    name = text_of(data)
    problems = [*header_problems(name)]
    for problem in problems:
        visible(f"{problem.summary}{problem.remedy}").encode()
    if problems:
        return False
    if name:
        head = f"GET / HTTP/1.1\r\nHost: a\r\n{name}: b\r\n\r\n".encode("ascii")
        assert Framing(Limits()).feed(head) in {head, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"}
    return True


def sanitiser(data: bytes) -> bool:
    """Make a text visible: nothing is hidden, nothing obeyed, nothing done twice."""
    text = text_of(data)
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert "##[" not in shown
    assert not shown.lstrip().startswith("::")
    assert visible(shown) == shown
    assert len(shown) <= 10 * len(text)
    return shown == text


def comment(data: bytes) -> bool:
    """Write the comment for a plan of hostile texts: only ours stands outside of fences."""
    limit = LEAST if data[:1] == b"<" else LIMIT
    texts = [text_of(part) for part in data.split(b"\x1e")[:3]]
    shown = plan_as_markdown(hostile_plan(texts), "sqlite:x.db", hostile_findings(texts[0]), limit)
    check_only_ours(shown)
    assert len(shown) <= limit
    return "not shown" not in shown
