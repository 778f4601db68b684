"""HTTP requests of calls, and HTTP responses and failed connections as replies."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import quote, urlencode, urljoin, urlsplit

from reconciler.errors import ServiceError
from reconciler.kinds.addresses import ADDRESSES, REST
from reconciler.resources.call import (
    HEADERS,
    ORGANIZATION_OF_ZITADEL,
    WRITE_BATCH,
    Call,
    Code,
    JsonObject,
    is_id,
)
from reconciler.resources.paths import stays_in_place
from reconciler.resources.strict_json import JsonError, check_count, read_object
from reconciler.service_client.credentials import Response
from reconciler.service_client.endpoint import Endpoint
from reconciler.service_client.wire import (
    NO_ANSWER,
    UNKNOWN,
    Answer,
    Reply,
    WireRefusal,
    is_read,
    lost,
    refusal_in,
    unsent,
)

_PARAMETER = re.compile(r"\{(\w+)\}", re.ASCII)


class Target(NamedTuple):
    """A call as HTTP addresses it: verb, path with query, and the JSON body or nothing."""

    verb: str
    path: str
    body: bytes | None


def target_of(call: Call) -> Target:
    """Return the address of a call. What is not in the path goes into the query or the body."""
    verb, _, template = ADDRESSES[call.operation][0].partition(" ")
    in_path = set(_PARAMETER.findall(template))
    path = _PARAMETER.sub(lambda found: _part(found[1], call.fields[found[1]]), template)
    rest = {name: value for name, value in call.fields.items() if name not in in_path}
    if verb == "GET":
        # An empty text means the same as none, and makes the shorter address.
        query = urlencode({name: value for name, value in rest.items() if value != ""})
        return Target(verb, f"{path}?{query}" if query else path, None)
    # A DELETE has a body only where its address does not say everything, as for leases.
    if verb == "DELETE" and not rest:
        return Target(verb, path, None)
    return Target(verb, path, json.dumps(rest, separators=(",", ":")).encode())


def headers_of(call: Call, target: Target, bearer: str) -> Mapping[str, str]:
    """Return the headers of a call. The organization goes by both of its names."""
    expected = call.expected_sequence
    values = {
        "authorization": f"Bearer {bearer}",
        **{header: getattr(call, name) for name, header in HEADERS.items()},
        ORGANIZATION_OF_ZITADEL: call.organization,
        HEADERS["expected_sequence"]: "" if expected is None else f'"{expected}"',
        "content-type": "" if target.body is None else "application/json",
    }
    return {name: value for name, value in values.items() if value}


def _part(name: str, value: object) -> str:
    text = str(value)
    if name in REST:
        if not stays_in_place(text):
            raise ServiceError(
                f"{text!r} cannot be part of an address: a proxy could read it as another address",
                remedy="Nothing was sent. See GUARD-ROLE-KEY.",
            )
        return quote(text, safe="")
    if not is_id(text):  # it could leave its segment of the path
        raise ServiceError(
            "the service gave an id that cannot be part of an address",
            remedy="Ids are letters, digits, - and _. Nothing was sent.",
        )
    return text


MAX_VALUES = 500_000  # several times what a full page has; they fit into 50 MB of memory
# For bodies without a code of their own, such as those of proxies. 409 is the weakest of its three
# meanings, which promises nothing about the object.
_CODES: Mapping[int, int] = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    405: Code.UNIMPLEMENTED,
    409: Code.ABORTED,
    412: Code.PRECONDITION_FAILED,
    413: Code.INVALID_ARGUMENT,
    422: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    501: Code.UNIMPLEMENTED,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.UNAVAILABLE,
}


CHECK_ADDRESS = (
    "Check the address in --service (http or https) and any proxy on the way: what answers there "
    "does not speak as an identity service."
)
_TOO_LARGE = 413  # HTTP status
_NO_SUCH_CALL = frozenset({404, 405, 501})  # HTTP statuses


def reply_of(status: int, content_type: str, content: bytes) -> Reply:
    """Return what a response says."""
    if status < 300 and status != 200:
        return lost(
            f"the service answered with status {status}, which is not part of its interface",
            CHECK_ADDRESS,
        )
    fields, problem = _read(content_type, content)
    if status == 200:
        return lost(problem) if problem else Answer(fields)
    # The body of a refusal may be unreadable: then only the status counts.
    refusal = refusal_in(fields, _CODES.get(status, UNKNOWN), f"HTTP status {status}")
    if status not in _NO_SUCH_CALL or refusal.is_code_told:
        return refusal
    message = f"the address does not know a call of an identity service (HTTP status {status})"
    return replace(refusal, message=message, remedy=CHECK_ADDRESS, is_whole=True)


def reply_of_stranger(response: Response, url: str, endpoint: Endpoint) -> WireRefusal | None:
    """Return the reply of what is no identity service: a redirect or a web page; None otherwise.

    ``url`` is what was asked, in full.
    """
    if response.status in range(300, 400):
        return _redirected(response.location, url, endpoint)
    # A server that fails, or has no time, may be a service all the same: its proxy writes the page.
    is_passing = response.status >= 500 or response.status == 429
    if is_passing or _type(response.content_type) not in _PAGES:
        return None
    if response.status == _TOO_LARGE:
        return WireRefusal(
            Code.INVALID_ARGUMENT,
            f"a proxy before {endpoint.address} takes no request as large as this one (HTTP status "
            f"{_TOO_LARGE})",
            remedy="Let it take bodies of 1 MiB: with nginx, client_max_body_size 1m.",
            is_whole=True,
        )
    is_sure = response.status != 200
    return WireRefusal(
        _CODES.get(response.status, UNKNOWN) if is_sure else NO_ANSWER,
        f"{endpoint.address} is not an identity service: it answered with a web page (HTTP status "
        f"{response.status})",
        unsure=not is_sure,
        remedy="Correct the address in --service. If it is right, a proxy or a sign-in page "
        "answers in its place: let these requests through to the service.",
        is_whole=True,
    )


def _redirected(location: str, url: str, endpoint: Endpoint) -> WireRefusal:
    """Return the refusal of a redirect. Of its target no user, query or fragment is shown."""
    try:
        parts = urlsplit(urljoin(url, location))
        target = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        target = "another address that cannot be read"
    asked = url.removeprefix(endpoint.address).partition("?")[0]
    service = target.removesuffix(asked)
    if service == endpoint.address:
        remedy = "It leads back to itself. Correct the address, or the proxy that answers there."
    else:
        is_whole = service != target  # the path that was asked for is at its end
        where = f"write --service {service}" if is_whole else "write the address it has now"
        remedy = (
            f"If the service is there, {where}. A redirect to a sign-in page means that a proxy "
            "keeps these requests from the service."
        )
    return WireRefusal(
        UNKNOWN,
        f"{endpoint.address} redirects to {target}, and redirects are not followed",
        remedy=remedy,
        is_whole=True,
    )


_PAGES = frozenset({"text/html", "application/xhtml+xml"})


def _type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _read(content_type: str, content: bytes) -> tuple[JsonObject, str]:
    """Return the object in a body; nothing, and why, where it cannot be read."""
    if _type(content_type) != "application/json":
        return {}, "the service answered with something that is not JSON"
    try:
        # Millions of tiny values would take many times the memory of their bytes.
        check_count(content, MAX_VALUES)
        return read_object(content), ""
    except JsonError as failure:
        return {}, f"the service's answer cannot be read: it {failure}"


LONGEST_ASKED = 60.0  # seconds, of what a service may ask for
_SECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)
# Writes that are safe to repeat without a key of their own: a repeated claim only adds one more
# event, and each order of a batch has a key.
_REPEATABLE = frozenset(
    {"RenewLease", "ReleaseLease", "ClaimSecrets", "AcknowledgeSecrets", WRITE_BATCH}
)


def may_repeat(call: Call) -> bool:
    """Return whether a call may be sent again when its first result is unknown.

    A read may. A write may where the service keeps a second one from counting.
    """
    return bool(is_read(call) or call.idempotency_key or call.operation in _REPEATABLE)


def asked_pause(retry_after: str, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` asks for, at most a minute; 0 for nonsense."""
    text = retry_after.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_ASKED)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_ASKED)


def connection_failure(
    failure: Exception, endpoint: Endpoint, *, through_proxy: bool
) -> WireRefusal:
    """Return the refusal of a call that never reached the service, or the proxy before it.

    ``failure`` is what the HTTP library raised, with the system's own error as its cause.
    """
    origin, causes = endpoint.origin, tuple(_causes(failure))
    if is_untrusted(failure):
        word, remedy = (each.format(host=endpoint.host) for each in _distrust(causes))
        return unsent(f"the certificate of {origin} {word}", remedy)
    if through_proxy:
        return unsent(
            f"{origin} cannot be reached through the proxy ({failure_in_words(failure)})",
            "Check HTTPS_PROXY, or leave --use-proxy out.",
        )
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return unsent(
            f"{origin} cannot be reached: connection refused, no server listens there",
            "Start the service, or correct the host and the port in --service.",
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return unsent(
            f"{origin} cannot be reached: the host {endpoint.host} is unknown",
            "Correct the host in --service. If it is right, check that this machine has a network "
            "and can look up names.",
        )
    scheme = " (http or https)" if any(isinstance(each, ssl.SSLError) for each in causes) else ""
    return unsent(
        f"{origin} cannot be reached ({failure_in_words(failure)})",
        f"Check the address in --service{scheme}, the network and any firewall, then run the "
        "command again.",
    )


_AUTHORITY = (
    "Install the certificate authority that signed it on this machine, name its file in "
    # OpenSSL takes a missing SSL_CERT_FILE for one without certificates, and reports no error.
    "SSL_CERT_FILE, or correct the address. Where SSL_CERT_FILE is set, check that its file is "
    "there."
)
# The signer's certificate was not sent, and is not known here.
_CHAIN = (
    f"{_AUTHORITY} Where the authority is trusted already, let the server send its intermediate "
    "certificates after its own, as in a chain.pem."
)
_OTHER_NAME = (
    "is for another name than {host}",
    "Write the name that it is for in --service, or give the server a certificate for {host}.",
)
# By OpenSSL's number (X509_V_ERR_...): why a certificate is refused, and what to do.
_DISTRUST: Mapping[int, tuple[str, str]] = {
    9: (
        "is not valid yet",
        "Set this machine's clock. If it is right, the server needs a certificate that has begun.",
    ),
    10: ("has expired", "Renew it on the server. If it is valid, set this machine's clock."),
    **dict.fromkeys((2, 18, 19), ("is of an unknown authority", _AUTHORITY)),
    **dict.fromkeys((20, 21), ("is of an unknown authority", _CHAIN)),
    **dict.fromkeys((62, 64), _OTHER_NAME),
}


def _distrust(causes: Sequence[BaseException]) -> tuple[str, str]:
    """Return why a certificate was refused, as the end of a sentence, and what to do."""
    found = (each for each in causes if isinstance(each, ssl.SSLCertVerificationError))
    code = next((each.verify_code for each in found), 0)
    return _DISTRUST.get(code, ("cannot be trusted", _AUTHORITY))


def is_untrusted(failure: Exception) -> bool:
    """Return whether the certificate of the service was refused."""
    return "CERTIFICATE_VERIFY_FAILED" in str(failure)


def failure_in_words(failure: Exception) -> str:
    """Return what went wrong on the way, in words that hold nothing of the request."""
    if any(isinstance(cause, TimeoutError) for cause in _causes(failure)):
        return "it took too long"
    if "ssl" in str(failure).lower():
        return "no encrypted connection could be made"
    return "the connection failed"


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those it was raised from; the HTTP library wraps the system's."""
    while failure is not None:
        yield failure
        failure = failure.__cause__ or failure.__context__
