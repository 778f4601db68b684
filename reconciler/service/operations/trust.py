"""Trust rules and machines: callers who are given short tokens for tokens that others signed.

A machine is a rule of its own: its service made an id for it, and has the public half of its key.
Rules are never changed. One is removed, and another one made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from reconciler.resources.kinds import MAX_NAME
from reconciler.resources.ref import Kind, fold
from reconciler.service.domain.refusal import (
    Code,
    Refusal,
    invalid,
    name_taken,
    not_allowed,
    not_found,
)
from reconciler.service.domain.trust import (
    EDITOR,
    ISSUER,
    MACHINE,
    MAX_KEYS_BYTES,
    VIEWER,
    Claims,
    check_claims,
    check_issuer,
    public_keys,
)
from reconciler.service.eventstore.rows import TrustRow
from reconciler.service.operations.answers import Answer, timestamp
from reconciler.service.operations.callers import organizations_of
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields, shown
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import canonical

MAX_RULES = 200
MAX_ORGANIZATIONS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_CERTIFICATES = re.compile(
    r"(?:-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+", re.ASCII
)


def list_trust(call: Reading, fields: Fields) -> Answer:
    """Answer every rule and machine, by name, without their keys."""
    fields.end()
    rules = [rule for rule in call.view.trusts() if _is_visible(call, rule)]
    return {"rules": [_view(call, rule) for rule in rules]}


def get_trust(call: Reading, fields: Fields) -> Answer:
    """Answer a rule or a machine, with the public keys and the authority that it was given."""
    rule = _rule(call, fields)
    return {"rule": {**_view(call, rule), "keys": rule.keys, "authority": rule.authority}}


def grant_trust(call: Writing, fields: Fields) -> Answer:
    """Make a rule for the tokens of an issuer, or a machine with a key of its own."""
    kind = _word(fields, "kind", ISSUER, MACHINE)
    made = call.runtime.identifiers.next()
    rule = TrustRow(
        name=_name(fields),
        id=made,
        kind=kind,
        role=_word(fields, "role", VIEWER, EDITOR),
        organizations=_organizations(call, fields),
        issuer=made if kind == MACHINE else fields.text("issuer", required=True),
        claims=_claims(fields),
        preset=fields.text("preset"),
        keys=fields.text("keys", required=kind == MACHINE, limit=MAX_KEYS_BYTES),
        authority=fields.text("authority", limit=MAX_KEYS_BYTES),
        once=int(fields.flag("once")),
        created_at=call.runtime.now(),
        created_by=call.caller.name,
        expires_at=fields.number("expiresAt"),
    )
    fields.end()
    _check(rule, call.runtime.now())
    _put(call, rule)
    return {"id": rule.id}


def revoke_trust(call: Writing, fields: Fields) -> Answer:
    """Remove a rule or a machine. Every token that it gave ends at once."""
    rule = _rule(call, fields)
    call.tx.remove(rule)
    return {}


def _check(rule: TrustRow, now: int) -> None:
    """Accept the values of a new rule.

    Raises:
        Refusal: they accept too much, or contradict themselves.
    """
    if rule.keys:
        public_keys(rule.keys.encode())
    if rule.expires_at and rule.expires_at <= now:
        raise invalid("expiresAt", "is over already")
    if rule.kind == MACHINE:
        beside = (rule.preset, rule.authority, rule.once, rule.claims != "{}")
        if any(beside):
            raise invalid("kind", "a machine has a key and no claims")
        return
    check_issuer(rule.issuer, is_fetched=not rule.keys)
    check_claims(rule.preset, rule.issuer, rule.role, claims_of(rule))
    if rule.authority and (rule.keys or not _CERTIFICATES.fullmatch(rule.authority)):
        raise invalid(
            "authority", "must be certificates in PEM, of an issuer whose keys are fetched"
        )


def _put(call: Writing, rule: TrustRow) -> None:
    known = call.tx.trusts()  # which waits for other transactions that make one
    if any(fold(other.name) == fold(rule.name) for other in known):
        raise name_taken("rule or machine")
    if len(known) >= MAX_RULES:
        raise Refusal(
            Code.RESOURCE_EXHAUSTED,
            f"there are {MAX_RULES} rules and machines already, and none may be added",
            "trust.too_many",
        )
    call.tx.put(rule)


def claims_of(rule: TrustRow) -> Claims:
    """Return the claims that a rule asks for."""
    found: Claims = json.loads(rule.claims)
    return found


def _rule(call: Reading, fields: Fields) -> TrustRow:
    name = fields.text("name", required=True)
    fields.end()
    rule = call.view.trust(name)
    if rule is None or not _is_visible(call, rule):
        raise not_found("rule or machine")
    return rule


def _is_visible(call: Reading, rule: TrustRow) -> bool:
    """Return whether a caller may see a rule: every organization of it."""
    seen, given = call.caller.organizations, organizations_of(rule.organizations)
    return seen is None or (given is not None and given <= seen)


def _name(fields: Fields) -> str:
    name = fields.text("name", required=True)
    if not _NAME.fullmatch(name):
        raise fields.wrong("name", "must be letters, digits and . _ - (at most 100)")
    return name


def _word(fields: Fields, name: str, *words: str) -> str:
    found = fields.text(name, required=True)
    if found not in words:
        raise fields.wrong(name, f"must be {' or '.join(words)}")
    return found


def _organizations(call: Writing, fields: Fields) -> str:
    """Return the ids of the organizations of these names, as a row keeps them."""
    names = fields.values("organizations")
    if not names:
        if call.caller.organizations is not None:
            raise not_allowed("trust.manage", "admin", " of all organizations")
        return ""
    if len(names) > MAX_ORGANIZATIONS or not all(map(_can_be_name, names)):
        raise fields.wrong("organizations", f"must be up to {MAX_ORGANIZATIONS} names")
    found = []
    for name in map(str, names):
        row = call.view.find_object(Kind.ORGANIZATION, "", fold(name))
        if row is None or not call.sees(row.id):
            raise invalid("organizations", "must be names of organizations that there are")
        found.append(row.id)
    return json.dumps(sorted(set(found)))


def _can_be_name(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME


def _claims(fields: Fields) -> str:
    part = fields.part("claims")
    claims: Mapping[str, Sequence[object]] = {name: part.values(name) for name in part.names()}
    part.end()
    for name, values in claims.items():
        if not all(isinstance(value, (str, int)) for value in values):
            raise part.wrong(shown(name), "must be texts, whole numbers, true or false")
    try:
        return canonical(claims)
    except (TypeError, UnicodeEncodeError):
        raise fields.wrong("claims", "must be JSON with numbers of up to 64 bits") from None


def _view(call: Reading, rule: TrustRow) -> Answer:
    ids = organizations_of(rule.organizations)
    names = {row.id: row.name for row in call.view.get_objects(ids)} if ids else {}
    return {
        "name": rule.name,
        "id": rule.id,
        "kind": rule.kind,
        "role": rule.role,
        "allOrganizations": ids is None,
        "organizations": sorted(names.get(each, each) for each in ids or ()),
        "issuer": rule.issuer,
        "claims": claims_of(rule),
        "preset": rule.preset,
        "hasKeys": rule.keys != "",
        "once": bool(rule.once),
        "created": timestamp(rule.created_at),
        "createdBy": rule.created_by,
        "expires": timestamp(rule.expires_at) if rule.expires_at else "",
    }


ROWS = (
    Operation("ListTrust", "trust.manage", Effect.READS, list_trust),
    Operation("GetTrust", "trust.manage", Effect.READS, get_trust),
    Operation("GrantTrust", "trust.manage", Effect.COORDINATES, grant_trust),
    Operation("RevokeTrust", "trust.manage", Effect.COORDINATES, revoke_trust),
)
