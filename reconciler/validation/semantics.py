"""Rules that a schema cannot express, for each resource on its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.diagnostics import Diagnostic, cut, error, note, warning
from reconciler.kinds.action_flow.flows import FLOW_NAMED, FLOWS
from reconciler.kinds.oidc_application.compliance import (
    MESSAGES,
    PREFIX,
    breaking_uri,
    compliance_problems,
    oidc_problems,
)
from reconciler.manifests.manifest import Manifest
from reconciler.resources.fields import Spec
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.normal import SETS, wire_spelling
from reconciler.resources.ref import ACTION, ACTION_FLOW, APPLICATION, PROVIDER, fold
from reconciler.state import Resource
from reconciler.validation.schema import MAX_FAULTS, unshown
from reconciler.validation.script import CompileError, ScriptCompiler
from reconciler.validation.texts import (
    bare_variable,
    duplicates,
    endpoint_problems,
    header_problems,
    is_ordinary,
    is_plain,
    issuer_problems,
    logout_uri_problems,
    name_problems,
    redirect_uri_problems,
)

_URI_LISTS = ("redirectUris", "postLogoutRedirectUris")
_LOGOUT = "backChannelLogoutUri"
_HEADLINE = PREFIX + "V1.NotCompliant"

# Characters that turn the direction of text: what a reviewer sees is not what runs.
_TURNING = "[\u202a-\u202e\u2066-\u2069]"

_CRLF = note(
    "SCRIPT-CRLF",
    "the script has Windows line ends (CRLF)",
    "They are sent as they are, so that a checkout with other line ends shows an update. Save the "
    "script with LF, and add `*.js text eol=lf` to .gitattributes.",
)

_Found = tuple[Diagnostic, tuple[str | int, ...]]


class Semantics:
    """Judges the resources of one run."""

    def __init__(self) -> None:
        self._compiler = ScriptCompiler()

    def findings(self, resource: Resource, manifest: Manifest) -> list[Diagnostic]:
        """Return what is wrong or dangerous about one resource."""
        kind = resource.ref.kind
        found: list[_Found] = []
        if not all(map(is_plain, resource.ref[1:])):
            found += _names(manifest.document["metadata"])
        if kind is APPLICATION:
            found += _application(resource, manifest.document.get("spec") or {})
        elif kind is PROVIDER:
            found += _identity_provider(resource)
        elif kind is ACTION_FLOW:
            found += _flow(resource)
        if len(found) > MAX_FAULTS:
            found.sort(key=lambda each: not each[0].is_error)  # errors first
            left_out = found[MAX_FAULTS:]
            is_error = any(problem.is_error for problem, _ in left_out)
            more = unshown(len(left_out), is_error=is_error)
            found = [*found[:MAX_FAULTS], (more, found[MAX_FAULTS - 1][1])]
        findings = [problem.at(manifest.place(*path), resource.ref) for problem, path in found]
        if kind is ACTION:
            findings += self._action(resource, manifest)
        return findings

    def _action(self, resource: Resource, manifest: Manifest) -> Iterator[Diagnostic]:
        name = resource.ref.name
        script = resource.spec.get("script")
        if script is None:
            return  # its file cannot be read, which the reader has told
        verdict = self._compiler.compile(script, name)
        if isinstance(verdict, CompileError):
            place = manifest.place_within(verdict.line, verdict.column, "spec", "script")
            yield _does_not_compile(verdict).at(place, resource.ref)
        elif not verdict:
            yield _no_function(name).at(manifest.place("metadata", "name"), resource.ref)
        if "\r\n" in script:
            yield _CRLF.at(manifest.place("spec", "script"), resource.ref)
        hidden = None if script.isascii() else re.search(_TURNING, script)
        if hidden is not None:
            yield _turned(hidden.group()).at(manifest.place("spec", "script"), resource.ref)


def _names(metadata: Spec) -> Iterator[_Found]:
    for field in ("organization", "project", "name"):
        if field in metadata:
            for problem in name_problems(metadata[field]):
                yield problem, ("metadata", field)


def _application(resource: Resource, written: Spec) -> list[_Found]:
    spec = resource.spec
    found = [
        *_uris(spec),
        *_logout(spec),
        *_words_twice(spec, written),
        *_refused(resource, written),
    ]
    if not any(problem.is_error for problem, _ in found):
        found += _compliance(spec)
    found += _dangerous_settings(spec)
    return found


def _uris(spec: Spec) -> Iterator[_Found]:
    native = spec["appType"] == "OIDC_APP_TYPE_NATIVE"
    dev_mode = spec["devMode"]
    for field in _URI_LISTS:
        for position, uri in enumerate(spec[field]):
            if not is_ordinary(uri):
                for problem in redirect_uri_problems(uri, native=native, dev_mode=dev_mode):
                    yield problem, ("spec", field, position)
    for field in (*_URI_LISTS, "additionalOrigins"):
        values = spec[field]
        if len(values) > 1:
            for position in duplicates(values):
                yield _TWICE, ("spec", field, position)


def _logout(spec: Spec) -> Iterator[_Found]:
    uri = spec.get(_LOGOUT)
    if uri:  # an empty one means none
        for problem in logout_uri_problems(uri):
            yield problem, ("spec", _LOGOUT)


_TWICE = warning("URI-DUPLICATE", "the same entry is in this list already", "Remove one.")


def _words_twice(spec: Spec, written: Spec) -> Iterator[_Found]:
    for field in SETS[APPLICATION]:
        values = written.get(field, ())
        if len(values) > len(spec[field]):  # the normal form has each word once
            words = wire_spelling(APPLICATION, field, values)
            for position in duplicates(words):
                problem = warning(
                    "VALUE-DUPLICATE",
                    f"{words[position]} is in this list already",
                    "Remove one; the short spelling is the same value.",
                )
                yield problem, ("spec", field, position)


def _refused(resource: Resource, written: Spec) -> Iterator[_Found]:
    for problem in oidc_problems(resource.spec):
        value = resource.spec[problem.field][problem.position]
        sentence = f"{problem.message[:1].upper()}{problem.message[1:]}."
        if name := bare_variable(value):
            sentence = f"Write ${{{name}}} for a variable, which reconciler.yaml declares."
        if problem.field in SETS[APPLICATION]:
            refused = error("OIDC-GRANT", "a response type without its grant type", sentence)
            yield refused, _written_path(problem.field, value, written)
        else:
            refused = error("OIDC-ORIGIN", "the additional origin is not valid", sentence)
            yield refused, ("spec", problem.field, problem.position)


def _written_path(field: str, value: str, written: Spec) -> tuple[str | int, ...]:
    """Return where a value of a set stands: they are sorted in the normal form, not in the file."""
    values = wire_spelling(APPLICATION, field, written.get(field, ()))
    if value in values:
        return ("spec", field, values.index(value))
    return ("spec", "grantTypes")  # the value is a default, and this is what does not fit it


def _compliance(spec: Spec) -> Iterator[_Found]:
    for key in compliance_problems(spec):
        if key != _HEADLINE:
            broken = f"breaks the rule {key.removeprefix(PREFIX)}"
            remedy = f"{MESSAGES[key]} The service will report {key}."
            yield warning("OIDC-COMPLIANCE", broken, remedy), ("spec", *_place_of(key, spec))


def _place_of(key: str, spec: Spec) -> tuple[str | int, ...]:
    """Return the field that breaks a rule; of redirect URIs, the first one that does."""
    if "AuthMethodType" in key:
        return ("authMethodType",)
    if "GrantType" in key:
        return ("grantTypes",)
    position = breaking_uri(key, spec["redirectUris"])
    return ("redirectUris",) if position is None else ("redirectUris", position)


def _dangerous_settings(spec: Spec) -> Iterator[_Found]:
    if spec["devMode"]:
        yield _DEV_MODE, ("spec", "devMode")
    if "OIDC_GRANT_TYPE_IMPLICIT" in spec["grantTypes"]:
        yield _IMPLICIT, ("spec", "grantTypes")
    if spec["idTokenUserinfoAssertion"]:
        yield _USERINFO, ("spec", "idTokenUserinfoAssertion")


_DEV_MODE = warning(
    "OIDC-DEV-MODE",
    "development mode is on",
    "Some checks of the OIDC specification are not performed: turn it off in production.",
)
_IMPLICIT = warning(
    "OIDC-IMPLICIT",
    "the implicit grant is allowed",
    "Tokens show in the address bar and its history: use the authorization code grant.",
)
_USERINFO = warning(
    "OIDC-USERINFO",
    "user info in the id token",
    "This violates the OIDC specification: read the claims from the userinfo endpoint.",
)


def _identity_provider(resource: Resource) -> Iterator[_Found]:
    for field, problems in _PROVIDER_RULES.items():
        for problem in problems(resource.spec[field]):
            yield problem, ("spec", field)


_PROVIDER_RULES = {
    "jwtEndpoint": endpoint_problems,
    "issuer": issuer_problems,
    "keysEndpoint": endpoint_problems,
    "headerName": header_problems,
}


def _flow(resource: Resource) -> Iterator[_Found]:
    triggers = [trigger.name for trigger in FLOW_NAMED[resource.ref.name].triggers]
    for trigger, names in resource.spec.items():
        if trigger in resource.written and trigger not in triggers:
            yield _not_of_the_flow(resource.ref.name, trigger, triggers), ("spec", trigger)
        for position in duplicates([fold(name) for name in names]):
            yield _twice(names[position]), ("spec", trigger, position)


def _not_of_the_flow(flow: str, trigger: str, triggers: list[str]) -> Diagnostic:
    others = [each.name for each in FLOWS if trigger in {one.name for one in each.triggers}]
    meant = nearest(trigger, triggers)
    hint = f"Did you mean {meant}? " if meant else ""
    return error(
        "FLOW-TRIGGER",
        f"{flow} has no trigger {trigger}",
        f"{hint}Write {one_of(triggers)}; {trigger} is a trigger of {one_of(others)}.",
    )


def _twice(name: str) -> Diagnostic:
    return error(
        "FLOW-ACTION-TWICE",
        f"the action {cut(name)} is in this list already",
        "Remove one: a trigger runs an action once.",
    )


def _does_not_compile(failure: CompileError) -> Diagnostic:
    return error(
        "ACTION-SCRIPT",
        f"the script does not compile: {cut(failure.message)}",
        "Correct the JavaScript here or in the line above.",
    )


def _no_function(name: str) -> Diagnostic:
    return warning(
        "ACTION-FUNCTION",
        f"the script defines no function named {cut(name)}",
        "The service calls the function that has the action's name. Rename the action or the "
        "function so that both have the same name.",
    )


def _turned(character: str) -> Diagnostic:
    return warning(
        "ACTION-DIRECTION",
        f"the script contains the direction mark U+{ord(character):04X}",
        "Code around it shows in another order than it runs: write an escape, such as \\u202e.",
    )
