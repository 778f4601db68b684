"""Redirect URIs of applications, judged harder than any service does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.diagnostics import Diagnostic, cut, warning
from reconciler.resources.nearest import within
from reconciler.resources.origin import DEFAULT_PORTS, is_loopback_host
from reconciler.rules.texts import (
    EXAMPLE,
    UriError,
    check_authority,
    check_path,
    check_text,
    split_path,
)

_DANGEROUS = {"javascript", "data", "file", "vbscript", "blob", "about"}
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):(.*)"


def redirect_uri_problems(uri: str, *, native: bool, dev_mode: bool) -> tuple[Diagnostic, ...]:
    """Return what is wrong or dangerous about a redirect URI or post-logout redirect URI."""
    try:
        check_text(uri)
        scheme, rest = _split_scheme(uri)
        if scheme not in DEFAULT_PORTS:
            _check_custom(scheme, rest)
            return tuple(_claimable(scheme, native=native))
        host, port = check_authority(rest)
    except UriError as fault:
        return (fault.problem,)
    warnings = [*_insecure(scheme, host, native=native, dev_mode=dev_mode)]
    if port == DEFAULT_PORTS[scheme]:
        warnings.append(
            warning(
                "URI-DEFAULT-PORT",
                f"port {port} is the port of {scheme} anyway",
                "URIs are compared as text: leave the port out unless clients send it.",
            )
        )
    return tuple(warnings)


def _split_scheme(uri: str) -> tuple[str, str]:
    found = re.fullmatch(_SCHEME, uri)
    if found is None:
        remedy = f"Write the whole URI, such as {EXAMPLE}."
        raise UriError("URI-SCHEME", "a URI without a scheme", remedy)
    scheme, rest = found.groups()
    if scheme.lower() in _DANGEROUS:
        remedy = f"Write a URI such as {EXAMPLE}."
        raise UriError("URI-SCHEME", f"the dangerous scheme {scheme.lower()}", remedy)
    meant = within(scheme.lower(), ("https", "http"), 1)
    if meant is not None and scheme.lower() != meant:
        remedy = f"Write {meant}:. For an app, write a domain backwards: com.example.app:/callback."
        raise UriError("URI-SCHEME", f"the scheme {scheme.lower()} is nearly {meant}", remedy)
    if scheme != scheme.lower():
        raise UriError("URI-CASE", "upper case in the scheme", f"Write {scheme.lower()}:.")
    return scheme, rest


def _check_custom(scheme: str, rest: str) -> None:
    if not rest.strip("/"):
        remedy = f"Write a path, such as {cut(scheme)}:/callback."
        raise UriError("URI-PATH", "a custom scheme with nothing after it", remedy)
    authority, path = split_path(rest[2:]) if rest.startswith("//") else ("", rest)
    if "@" in authority:
        raise UriError("URI-USERINFO", "a user name in a URI", "Leave out everything up to @.")
    if "[" in authority or "]" in authority:
        remedy = f"Write a name, or a path alone: {cut(scheme)}:/callback."
        raise UriError("URI-HOST", f"the host {cut(authority)}", remedy)
    check_path(path.partition("?")[0])


def _claimable(scheme: str, *, native: bool) -> Iterator[Diagnostic]:
    if not native:
        yield warning(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} in an application that is not native",
            "Write an https URI, or set appType: OIDC_APP_TYPE_NATIVE.",
        )
    elif "." not in scheme:
        yield warning(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} has no dot",
            "Any app can claim it: write a domain of yours backwards, com.example.app:/callback.",
        )


def _insecure(scheme: str, host: str, *, native: bool, dev_mode: bool) -> Iterator[Diagnostic]:
    if scheme != "http":
        return
    if not is_loopback_host(host):
        yield warning(
            "URI-HTTP",
            "plain http to a host other than this machine",
            "Codes and tokens are sent there in the clear: write https.",
        )
    elif not native and not dev_mode:
        yield warning(
            "URI-LOOPBACK",
            "a loopback address in an application that is not native",
            "It works on one machine only: leave it to an application with devMode: true.",
        )
