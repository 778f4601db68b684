"""The rules of JWT identity providers: where tokens and keys come from, and whom tokens are for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.diagnostics import Diagnostic, error, listed, warning
from reconciler.resources.fields import Spec
from reconciler.rules.form import Compile, Found, KindRules, Planned, place_of
from reconciler.rules.risks import Removal, Rule, differs, plain_http, turned_off
from reconciler.rules.texts import called_url_problems
from reconciler.state import DesiredState, ObservedState, Resource

DEPRECATED = "UpdateOrgIDPJWTConfig"


def _findings(resource: Resource, _: Spec, __: Compile) -> Iterator[Found]:
    for field, problems in _RULES.items():
        for problem in problems(resource.spec[field]):
            yield Found(problem, ("spec", field))


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_NOT_FOR_TOKENS = {
    *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
    *("cookie", "set-cookie"),
}
_PLAIN_HTTP = warning(
    "IDP-HTTP", "plain http", "Anyone on the way can replace what is sent: write https."
)


def endpoint_problems(url: str) -> Iterator[Diagnostic]:
    """Yield what is wrong or dangerous about a URL that the service asks for tokens or keys."""
    return called_url_problems(url, "IDP-ENDPOINT", "https://login.example.com/keys", _PLAIN_HTTP)


def issuer_problems(issuer: str) -> Iterator[Diagnostic]:
    """Yield what is dangerous about an issuer; it is compared as text and may be any."""
    if issuer.startswith("http://"):
        yield _PLAIN_HTTP


def header_problems(name: str) -> Iterator[Diagnostic]:
    """Yield why a header cannot carry a token; empty means ``authorization``."""
    if not name:
        return
    if not _TOKEN.fullmatch(name):
        remedy = "Write letters, digits and hyphens, such as x-partner-token."
        yield error("IDP-HEADER", "the header name is not valid", remedy)
    elif name.lower() in _NOT_FOR_TOKENS:
        remedy = "HTTP itself needs this header; write another, such as x-partner-token."
        yield error("IDP-HEADER", f"the header {name.lower()} cannot carry a token", remedy)


_RULES = {
    "jwtEndpoint": endpoint_problems,
    "issuer": issuer_problems,
    "keysEndpoint": endpoint_problems,
    "headerName": header_problems,
}


def _advice(
    planned: Planned, desired: DesiredState, observed: ObservedState
) -> Iterator[Diagnostic]:
    yield from _deprecated(planned, observed)
    yield from _audiences(planned, desired, observed)


def _deprecated(planned: Planned, observed: ObservedState) -> Iterator[Diagnostic]:
    # A ZITADEL is written to with newer calls, unless it is too old for them.
    if not observed.keeps_history and observed.knows_audience is not False:
        return
    using = [
        resource
        for resource, held in planned.updated
        if resource.spec != held.spec and resource.spec.get("audience") == held.spec.get("audience")
    ]
    if using:
        yield warning(
            "PLAN-DEPRECATED-OPERATION",
            "the plan uses a deprecated operation of the service",
            f"{DEPRECATED} may be removed in a future version of the service. It is used for "
            f"{listed(using, named=place_of)}. Nothing is wrong today; keep "
            "it in mind before the service is upgraded.",
            using[0].source.place("spec"),
        )


_UPGRADE = "ZITADEL knows it from 3.4.12 and 4.15.2 on: upgrade it."


def _audiences(
    planned: Planned, desired: DesiredState, observed: ObservedState
) -> Iterator[Diagnostic]:
    """Yield one warning about audiences that are not checked, and one where they may be lost."""
    providers = [each for each in desired.resources.values() if "audience" in each.spec]
    unchecked = [each for each in providers if not each.spec["audience"]]
    if providers and observed.knows_audience is False:
        yield warning(
            "PLAN-AUDIENCE-UNKNOWN",
            "the server does not know the audience of identity providers",
            f"It never checks `aud`, so for {len(providers)} provider(s) a token that their issuer "
            f"made for another application is accepted (CVE-2026-55669). {_UPGRADE}",
        )
        return
    if unchecked:
        yield warning(
            "PLAN-NO-AUDIENCE",
            f"{len(unchecked)} JWT identity provider(s) accept tokens for any audience",
            "`aud` is not checked: a token that the issuer made for another application is "
            "accepted (CVE-2026-55669). Write spec.audience: "
            f"{listed(unchecked, named=place_of)}",
            unchecked[0].source.place("spec"),
        )
    setting = [resource for resource, _ in planned.written if resource.spec.get("audience")]
    if setting and observed.knows_audience is None:
        yield warning(
            "PLAN-AUDIENCE-UNKNOWN",
            "whether the server knows the audience of identity providers shows only after apply",
            f"The plan sets it for {len(setting)} provider(s). If the next plan sets it again, the "
            f"server never checks `aud`. {_UPGRADE}",
            setting[0].source.place("spec"),
        )


RULES = KindRules(
    guarded=frozenset({*_RULES, "audience"}),
    removal=Removal("provider-removed", 980, "users who sign in through it are locked out"),
    risks=(
        Rule(
            "keys-moved", 850, ("keysEndpoint",), differs,
            "the server at that address decides which tokens are genuine",
        ),
        Rule(
            "issuer-moved", 840, ("issuer",), differs,
            "tokens of the present issuer are refused, those of another one are accepted",
        ),
        Rule(
            "audience-unchecked", 830, ("audience",), turned_off,
            "tokens that the issuer made for other applications are accepted", also_new=True,
        ),
        Rule(
            "jwt-endpoint-moved", 810, ("jwtEndpoint",), differs,
            "users are sent to another place to sign in",
        ),
        Rule(
            "header-moved", 800, ("headerName",), differs,
            "tokens in the present header are no longer found",
        ),
        plain_http("keysEndpoint", "issuer", "jwtEndpoint"),
    ),
    new_against={"audience": "checked"},  # a check that is off by default
    findings=_findings,
    advice=_advice,
    stays_active="This ZITADEL has no call that deactivates an identity provider of its present "
    "calls: only one that an old call made can be deactivated.",
    console=frozenset({"providerOptions", "autoRegister", "stylingType"}),
)  # fmt: skip
