"""The rules of OIDC applications: what must not be written, what is dangerous, what is not lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.diagnostics import Diagnostic, error, listed, note, warning
from reconciler.kinds.oidc_application.compliance import (
    MESSAGES,
    PREFIX,
    breaking_uri,
    compliance_problems,
    oidc_problems,
)
from reconciler.kinds.oidc_application.redirect_uris import redirect_uri_problems
from reconciler.resources.fields import Spec
from reconciler.resources.normal import wire_spelling
from reconciler.resources.ref import Kind, ResourceRef, owner_of
from reconciler.rules.alike import alike
from reconciler.rules.form import (
    Compile,
    Found,
    KindRules,
    Planned,
    break_glass,
    place_of,
    place_of_id,
)
from reconciler.rules.risks import (
    Removal,
    Rule,
    Value,
    differs,
    gains,
    gains_any,
    gains_authority,
    loses_any,
    plain_http,
    role_assertion_off,
    turned_off,
    turned_on,
)
from reconciler.rules.texts import bare_variable, called_url_problems, duplicates, is_ordinary
from reconciler.state import (
    LET_THROUGH,
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    left_to_others,
)

_URI_LISTS = ("redirectUris", "postLogoutRedirectUris")
_LISTS = (*_URI_LISTS, "additionalOrigins")
_SETS = ("responseTypes", "grantTypes")
_LOGOUT = "backChannelLogoutUri"
_HEADLINE = PREFIX + "V1.NotCompliant"


def _findings(resource: Resource, written: Spec, _: Compile) -> list[Found]:
    spec = resource.spec
    found = [
        *_uris(spec),
        *_logout(spec),
        *_words_twice(spec, written),
        *_refused(resource, written),
    ]
    if not any(each.problem.is_error for each in found):
        found += _compliance(spec)
    found += _dangerous_settings(spec)
    return found


def _uris(spec: Spec) -> Iterator[Found]:
    native = spec["appType"] == "OIDC_APP_TYPE_NATIVE"
    dev_mode = spec["devMode"]
    for field in _URI_LISTS:
        for position, uri in enumerate(spec[field]):
            if not is_ordinary(uri):
                for problem in redirect_uri_problems(uri, native=native, dev_mode=dev_mode):
                    yield Found(problem, ("spec", field, position))
    for field in _LISTS:
        values = spec[field]
        if len(values) > 1:
            for position in duplicates(values):
                yield Found(_TWICE, ("spec", field, position))


def _logout(spec: Spec) -> Iterator[Found]:
    uri = spec.get(_LOGOUT)
    if uri:  # an empty one means none
        # OpenID Connect Back-Channel Logout 1.0 asks for an absolute URI without a fragment, which
        # should be https.
        example = "https://shop.example.com/logout"
        for problem in called_url_problems(uri, "URI-SCHEME", example, _HTTP_LOGOUT):
            yield Found(problem, ("spec", _LOGOUT))


_TWICE = warning("URI-DUPLICATE", "the same entry is in this list already", "Remove one.")


def _words_twice(spec: Spec, written: Spec) -> Iterator[Found]:
    for field in _SETS:
        values = written.get(field, ())
        if len(values) > len(spec[field]):  # the normal form has each word once
            words = wire_spelling(Kind.OIDC_APPLICATION, field, values)
            for position in duplicates(words):
                problem = warning(
                    "VALUE-DUPLICATE",
                    f"{words[position]} is in this list already",
                    "Remove one; the short spelling is the same value.",
                )
                yield Found(problem, ("spec", field, position))


def _refused(resource: Resource, written: Spec) -> Iterator[Found]:
    for problem in oidc_problems(resource.spec):
        value = resource.spec[problem.field][problem.position]
        sentence = f"{problem.message[:1].upper()}{problem.message[1:]}."
        if name := bare_variable(value):
            sentence = f"Write ${{{name}}} for a variable, which reconciler.yaml declares."
        if problem.field in _SETS:
            refused = error("OIDC-GRANT", "a response type without its grant type", sentence)
            yield Found(refused, _written_path(problem.field, value, written))
        else:
            refused = error("OIDC-ORIGIN", "the additional origin is not valid", sentence)
            yield Found(refused, ("spec", problem.field, problem.position))


def _written_path(field: str, value: str, written: Spec) -> tuple[str | int, ...]:
    """Return where a value of a set stands: they are sorted in the normal form, not in the file."""
    values = wire_spelling(Kind.OIDC_APPLICATION, field, written.get(field, ()))
    if value in values:
        return ("spec", field, values.index(value))
    return ("spec", "grantTypes")  # the value is a default, and this is what does not fit it


def _compliance(spec: Spec) -> Iterator[Found]:
    for key in compliance_problems(spec):
        if key != _HEADLINE:
            broken = f"breaks the rule {key.removeprefix(PREFIX)}"
            remedy = f"{MESSAGES[key]} The service will report {key}."
            problem = warning("OIDC-COMPLIANCE", broken, remedy)
            yield Found(problem, ("spec", *_place_of(key, spec)))


def _place_of(key: str, spec: Spec) -> tuple[str | int, ...]:
    """Return the field that breaks a rule; of redirect URIs, the first one that does."""
    if "AuthMethodType" in key:
        return ("authMethodType",)
    if "GrantType" in key:
        return ("grantTypes",)
    position = breaking_uri(key, spec["redirectUris"])
    return ("redirectUris",) if position is None else ("redirectUris", position)


def _dangerous_settings(spec: Spec) -> Iterator[Found]:
    if spec["devMode"]:
        yield Found(_DEV_MODE, ("spec", "devMode"))
    if "OIDC_GRANT_TYPE_IMPLICIT" in spec["grantTypes"]:
        yield Found(_IMPLICIT, ("spec", "grantTypes"))
    if spec["idTokenUserinfoAssertion"]:
        yield Found(_USERINFO, ("spec", "idTokenUserinfoAssertion"))


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


_HTTP_LOGOUT = warning(
    "URI-HTTP",
    "plain http to a host other than this machine",
    "Logout tokens are sent there in the clear: write https.",
)


def _logouts_checked(planned: Planned, _: DesiredState, __: ObservedState) -> Iterator[Diagnostic]:
    """Yield a note on updates that send an old back-channel logout URI, which is checked again."""
    sent = [
        resource
        for resource, held in planned.updated
        if held.spec.get(_LOGOUT)
        and resource.spec.get(_LOGOUT) == held.spec[_LOGOUT]
        and resource.spec != held.spec
    ]
    if sent:
        yield note(
            "PLAN-LOGOUT-CHECKED",
            f"the server checks the back-channel logout URI of {len(sent)} application(s) again",
            "A newer ZITADEL refuses an update of an application whose backChannelLogoutUri it can "
            "no longer resolve (PROJECT-msNebo), also where the manifest does not say it. Then "
            f"write another one, or an empty text: {listed(sent, named=place_of)}",
            sent[0].source.place("spec"),
        )


def _guards(
    planned: Planned, observed: ObservedState, named: Collection[str]
) -> Iterator[Diagnostic]:
    yield from _recreations(planned, observed, named)
    yield from _brought_back(planned, named)
    yield from _unsure_deletes(planned, observed)
    yield from _refused_updates(planned)


def _refused_updates(planned: Planned) -> Iterator[Diagnostic]:
    """Yield updates that the service refuses, as they send ignored fields as they are held.

    The findings of a manifest judge what it declares, which is not what is sent of these fields.
    """
    for resource, _ in planned.updated:
        if left_to_others(resource) and (problems := oidc_problems(resource.spec)):
            yield error(
                "GUARD-IGNORED",
                "what is ignored does not fit what is declared",
                f"An update of {resource.ref} sends the fields of metadata.ignore as the service "
                f"holds them, and the service would refuse it: {problems[0].message}. Declare "
                "values that fit what is held, or take the field out of metadata.ignore.",
                resource.source.place("metadata", "ignore"),
                resource.ref,
            )


def _recreations(
    planned: Planned, observed: ObservedState, named: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield applications that are deleted while another is created that may be the same.

    They are much alike, or the deleted one had the name of the other before.
    """
    if not planned.deleted:
        return
    made = [resource for resource, held in planned.written if held is None]
    marked: dict[tuple[object, ...], Resource] = {}
    for resource in made:
        for mark in _marks(resource.ref, resource.spec["redirectUris"]):
            marked.setdefault(mark, resource)
    same: dict[str, Resource] = {}
    for resource, twins in alike(made, planned.deleted):
        for held in twins:
            same.setdefault(held.id, resource)
    by_name = {resource.ref.key: resource for resource in made}
    for held in planned.deleted:
        marks = _marks(held.ref, held.spec.get("redirectUris", ()))
        former = sorted(observed.former_names.get(held.id, ()))
        before = (by_name.get(held.ref.key._replace(name=name)) for name in former)
        twin = (
            next((marked[mark] for mark in marks if mark in marked), None)
            or next(filter(None, before), None)
            or same.get(held.id)
        )
        if twin and not {held.ref.folded, twin.ref.folded} & set(named):
            yield _recreated(held, twin, planned.environment)


def _marks(ref: ResourceRef, uris: Iterable[str]) -> Iterator[tuple[object, ...]]:
    """Yield what two applications do not share by chance: the name; in one project, a URI."""
    yield ("name", ref.key.name)
    for uri in uris:
        yield ("uri", owner_of(ref.key), uri)


def _recreated(held: ObservedObject, twin: Resource, environment: str) -> Diagnostic:
    moved = owner_of(held.ref.key) != owner_of(twin.ref.key)
    instead = (
        "An application cannot move to another project and keep it."
        if moved
        else f"To rename it and keep both, write metadata.id: {held.id!r} in "
        f"{place_of_id(environment)}."
    )
    return error(
        "GUARD-MADE-ANEW",
        "an application would be deleted and created again",
        f"{held.ref} would be deleted and {twin.ref} created in its place: its client id "
        f"{held.client_id} and its secret would end, and whatever is deployed with them could no "
        f"longer sign in. {instead} {break_glass(held.ref)}",
        twin.source.place("metadata", "name"),
        held.ref,
    )


def _brought_back(planned: Planned, named: Collection[str]) -> Iterator[Diagnostic]:
    """Yield applications that were deleted and that an undo would create again."""
    for resource, held in planned.written:
        if held is None and resource.undone and resource.ref.folded not in named:
            yield error(
                "GUARD-MADE-ANEW",
                "an application would come back as a new one",
                f"{resource.ref} was deleted, and its client id and secret ended with it. The undo "
                "would create it with a new client id and, where it has one, a new client secret: "
                "whatever is deployed with the old ones must get the new ones. "
                f"{break_glass(resource.ref)}",
                ref=resource.ref,
            )


def _unsure_deletes(planned: Planned, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield why no application is deleted while the project of the console is not known."""
    # A ZITADEL signs its console in with an application of an ordinary project.
    if observed.unidentified and planned.deleted:
        ref = planned.deleted[0].ref
        yield error(
            "GUARD-OWN-PROJECT",
            "applications would be deleted, and one may be that of the service's own console",
            f"The service does not report which project is its own, so {ref} may be of "
            f"it. {LET_THROUGH}, or leave out the flag that deletes.",
            ref=ref,
        )


_STRENGTH: Mapping[object, int] = {
    "OIDC_AUTH_METHOD_TYPE_NONE": 0,
    "OIDC_AUTH_METHOD_TYPE_POST": 1,
    "OIDC_AUTH_METHOD_TYPE_BASIC": 2,
    "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT": 3,
}


def is_weaker(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a weaker method."""
    return _STRENGTH.get(after, 0) < _STRENGTH.get(before, 0)


def is_stronger(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a stronger method."""
    return _STRENGTH.get(after, 0) > _STRENGTH.get(before, 0)


RULES = KindRules(
    guarded=frozenset(
        {*_URI_LISTS, _LOGOUT, "authMethodType", "devMode", "grantTypes", "responseTypes"}
    ),
    removal=Removal("client-id-lost", 990, "its client id and secret end for good"),
    risks=(
        Rule(
            "credential-weaker", 890, ("authMethodType",), is_weaker,
            "the application proves its identity by a weaker method, or not at all",
        ),
        Rule(
            "implicit-grant-added", 880, ("grantTypes",), gains("OIDC_GRANT_TYPE_IMPLICIT"),
            "tokens are answered in the address of the browser, where history and logs keep them",
            also_new=True,
        ),
        Rule(
            "token-exchange-added", 870, ("grantTypes",), gains("OIDC_GRANT_TYPE_TOKEN_EXCHANGE"),
            "the application may exchange tokens for others, those of users it stands in for "
            "included",
            also_new=True,
        ),
        Rule(
            "redirect-host-added", 860, ("redirectUris",), gains_authority,
            "codes and tokens may go to a host they did not go to before",
        ),
        Rule(
            "dev-mode-on", 790, ("devMode",), turned_on,
            "checks of the OIDC specification are not performed", also_new=True,
        ),
        plain_http(*_LISTS),
        Rule(
            "back-channel-logout-removed", 760, ("backChannelLogoutUri",), turned_off,
            "the application no longer learns that a session has ended: its own goes on",
        ),
        Rule(
            "userinfo-assertion-on", 460, ("idTokenUserinfoAssertion",), turned_on,
            "profile, email and phone are in every id token, against the OIDC specification",
            also_new=True,
        ),
        Rule(
            "device-grant-added", 450, ("grantTypes",), gains("OIDC_GRANT_TYPE_DEVICE_CODE"),
            "a sign-in on one device can be approved on another, which phishing can exploit",
        ),
        Rule(
            "origin-added", 440, ("additionalOrigins",), gains_any,
            "pages of another origin may call the API",
        ),
        Rule(
            "logout-host-added", 430, ("postLogoutRedirectUris",), gains_authority,
            "browsers may be sent to a host they were not sent to before",
        ),
        role_assertion_off("accessTokenRoleAssertion", "idTokenRoleAssertion"),
        Rule(
            "app-type-changed", 410, ("appType",), differs,
            "other rules apply to its redirect URIs and its secret; what is deployed may be "
            "refused",
        ),
        Rule(
            "credential-changed", 400, ("authMethodType",), is_stronger,
            "what is deployed must sign in another way, or is refused",
        ),
        Rule(
            "login-version-changed", 390, ("loginVersion",), differs,
            "people sign in on other pages; actions and settings of the present ones may not count",
        ),
        Rule(
            "token-type-changed", 380, ("accessTokenType",), differs,
            "an API that expects the present type refuses the tokens",
        ),
        Rule(
            "grant-removed", 370, ("grantTypes",), loses_any,
            "what is deployed and still uses that grant is refused",
        ),
        Rule(
            "response-removed", 360, ("responseTypes",), loses_any,
            "what is deployed and still asks for that response is refused",
        ),
        Rule(
            "redirect-removed", 350, ("redirectUris",), loses_any,
            "sign-ins that come back there fail",
        ),
        Rule(
            "origin-removed", 340, ("additionalOrigins",), loses_any,
            "pages of that origin can no longer call the API",
        ),
        Rule(
            "logout-removed", 330, ("postLogoutRedirectUris",), loses_any,
            "sign-outs that come back there fail",
        ),
    ),
    problems=compliance_problems,
    problem_texts=MESSAGES,
    findings=_findings,
    guards=_guards,
    advice=_logouts_checked,
    kept_lists=_LISTS,
)  # fmt: skip
