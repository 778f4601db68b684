"""Deciding and remembering, on values alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain import action, identity_provider, oidc_application
from reconciler.service.domain.evolution import EVENTS, ContextRecorded, Event, evolve
from reconciler.service.domain.held import Held, ImpossibleHistoryError, Removed, State, Unborn
from reconciler.service.domain.oidc_application import (
    ALPHABET,
    allowed_origins,
    check_spec,
    hash_of,
    make_secret,
)
from reconciler.service.domain.organization import OrganizationAdded
from reconciler.service.domain.project import ProjectAdded
from reconciler.service.domain.refusal import HTTP_STATUS, Code, Refusal
from reconciler.service.operations.runtime import EPOCH, Identifiers

UNBORN = Unborn("1", "acme")
OIDC = dict(DEFAULTS[Kind.OIDC_APPLICATION])
ACTION = Held(Kind.ACTION, "1", "acme", "acme", "greet", {"script": "x"})
IDP = Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "partner", {"issuer": "x"})
APP = Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", OIDC, "7", "hash")
POST = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_POST"}
PUBLIC = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
REMOVED = Removed("1", "acme")

HISTORY: list[tuple[State, Event, State]] = [
    (
        UNBORN,
        OrganizationAdded("acme"),
        Held(Kind.ORGANIZATION, "1", "acme", "", "acme", {}),
    ),
    (UNBORN, ProjectAdded("shop"), Held(Kind.PROJECT, "1", "acme", "acme", "shop", {})),
    (UNBORN, identity_provider.IdpJwtAdded("partner", {"issuer": "x"}), IDP),
    (
        IDP,
        identity_provider.IdpRenamed("new"),
        Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "new", {"issuer": "x"}),
    ),
    (
        IDP,
        identity_provider.IdpJwtConfigChanged({"issuer": "y"}),
        Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "partner", {"issuer": "y"}),
    ),
    (IDP, identity_provider.IdpRemoved(), REMOVED),
    (UNBORN, oidc_application.AppOidcAdded("web", "shop", "7", "hash", OIDC), APP),
    (
        APP,
        oidc_application.AppRenamed("new"),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "new", OIDC, "7", "hash"),
    ),
    (
        APP,
        oidc_application.AppOidcConfigChanged(POST),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", POST, "7", "hash"),
    ),
    (
        APP,
        oidc_application.AppOidcConfigChanged(PUBLIC),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", PUBLIC, "7", ""),
    ),
    (
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", PUBLIC, "7", "by hand"),
        oidc_application.AppOidcConfigChanged({**PUBLIC, "devMode": True}),
        Held(
            Kind.OIDC_APPLICATION,
            "1",
            "acme",
            "shop",
            "web",
            {**PUBLIC, "devMode": True},
            "7",
            "by hand",
        ),
    ),
    (
        APP,
        oidc_application.AppOidcSecretChanged("new"),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", OIDC, "7", "new"),
    ),
    (APP, oidc_application.AppRemoved(), REMOVED),
    (UNBORN, action.ActionAdded("greet", {"script": "x"}), ACTION),
    (
        ACTION,
        action.ActionChanged("new", {}),
        Held(Kind.ACTION, "1", "acme", "acme", "new", {}),
    ),
    (ACTION, action.ActionRemoved(), REMOVED),
    (APP, ContextRecorded(), APP),
]


@pytest.mark.parametrize(
    ("before", "event", "after"), HISTORY, ids=lambda part: type(part).__name__
)
def test_an_event_makes_of_an_object_what_it_says(
    before: State, event: Event, after: State
) -> None:
    """What an event does not speak of stays as it was."""
    assert evolve(before, event) == after


def test_every_event_there_is_has_a_row_above() -> None:
    """A new event joins the table, or this fails."""
    assert {type(event) for _, event, _ in HISTORY} == set(EVENTS.values())


@pytest.mark.parametrize("event", [event for _, event, _ in HISTORY], ids=lambda e: e.TYPE)
def test_nothing_follows_a_removal(event: Event) -> None:
    """A log that says so is not one that this program wrote."""
    with pytest.raises(ImpossibleHistoryError):
        evolve(REMOVED, event)


@pytest.mark.parametrize("event", [event for _, event, _ in HISTORY], ids=lambda e: e.TYPE)
def test_an_object_begins_by_being_added_and_is_added_once(event: Event) -> None:
    """Every other event needs an object, and adding needs there to be none."""
    start = ACTION if event.TYPE.endswith("added") else UNBORN

    with pytest.raises(ImpossibleHistoryError):
        evolve(start, event)


@pytest.mark.parametrize(
    ("decided", "wanted"),
    [
        (action.change(ACTION, "greet", {"script": "x"}), ()),
        (
            action.change(ACTION, "Greet", {"script": "x"}),
            (action.ActionChanged("Greet", {"script": "x"}),),
        ),
        (
            action.change(ACTION, "greet", {"script": "y"}),
            (action.ActionChanged("greet", {"script": "y"}),),
        ),
        (identity_provider.rename(IDP, "partner"), ()),
        (identity_provider.rename(IDP, "new"), (identity_provider.IdpRenamed("new"),)),
        (identity_provider.change_jwt_config(IDP, {"issuer": "x"}), ()),
        (
            identity_provider.change_jwt_config(IDP, {"issuer": ""}),
            (identity_provider.IdpJwtConfigChanged({"issuer": ""}),),
        ),
        (oidc_application.rename(APP, "web"), ()),
        (oidc_application.rename(APP, "WEB"), (oidc_application.AppRenamed("WEB"),)),
        (oidc_application.change_config(APP, dict(OIDC)), ()),
        (
            oidc_application.change_config(APP, {**OIDC, "devMode": True}),
            (oidc_application.AppOidcConfigChanged({**OIDC, "devMode": True}),),
        ),
        (
            oidc_application.change_config(APP, {**OIDC, "redirectUris": ["b", "a"]}),
            (oidc_application.AppOidcConfigChanged({**OIDC, "redirectUris": ["b", "a"]}),),
        ),
    ],
)
def test_only_a_difference_is_an_event(decided: object, wanted: object) -> None:
    """An apply with nothing to change writes nothing."""
    assert decided == wanted


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN"]}, "responseTypes[0]"),
        ({"grantTypes": ["OIDC_GRANT_TYPE_REFRESH_TOKEN"]}, "responseTypes[0]"),
        ({"additionalOrigins": ["https://a:443"]}, "additionalOrigins[0]"),
        ({"additionalOrigins": ["https://a", "a"]}, "additionalOrigins[1]"),
    ],
)
def test_a_configuration_that_no_flow_can_carry_out_is_refused(
    changes: dict[str, Any], field: str
) -> None:
    """On create and on update alike; the place in the list is named."""
    with pytest.raises(Refusal) as caught:
        check_spec({**OIDC, **changes})
    assert (caught.value.code, caught.value.details["field"]) == (3, field)
    with pytest.raises(Refusal):
        oidc_application.change_config(APP, {**OIDC, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"grantTypes": ["OIDC_GRANT_TYPE_DEVICE_CODE"]},
        {"redirectUris": ["", "no uri", "javascript:x", "http://"]},
    ],
)
def test_redirect_uris_are_not_the_services_to_judge(changes: dict[str, Any]) -> None:
    """The reconciler judges them harder; the service refuses none."""
    check_spec({**OIDC, **changes})


@pytest.mark.parametrize(
    ("uris", "others", "origins"),
    [
        ([], [], []),
        (["https://a/x", "https://a/y?z#f"], ["https://b"], ["https://a", "https://b"]),
        (["https://a:8443/"], ["https://a:8443"], ["https://a:8443"]),
        (["https://user:canary@a/x"], [], ["https://a"]),
        (["no uri", "mailto:a", "http://[bad", "app://b"], [], ["app://b"]),
    ],
)
def test_allowed_origins_are_those_of_the_redirect_uris_then_the_others(
    uris: list[str], others: list[str], origins: list[str]
) -> None:
    """Each once, in order, and never with a password in it."""
    assert allowed_origins({"redirectUris": uris, "additionalOrigins": others}) == origins


def test_ids_grow_whatever_the_clock_and_chance_do() -> None:
    """Within a process each is greater than the one before, and below 2**63."""
    times = iter([EPOCH + 5, EPOCH + 5, EPOCH + 5, EPOCH + 4, 0, EPOCH + 6, 2**43])
    bits = iter([9, 9, 3, 9, 9, 0, 2**22 - 1])

    identifiers = Identifiers(lambda: next(times) * 1000, lambda _: next(bits))
    made = [int(identifiers.next()) for _ in range(6)]

    first = (5 << 22) + 9
    assert made == [first, first + 1, first + 2, first + 3, first + 4, 6 << 22]


def test_ids_stay_below_what_a_store_can_hold() -> None:
    """For longer than anybody will run this."""
    year_2080 = 3_471_292_800_000_000

    made = Identifiers(lambda: year_2080, lambda _: 2**22 - 1).next()

    assert int(made) < 2**63


def test_a_secret_is_letters_and_digits_each_equally_likely() -> None:
    """Bytes that would favour some letters are thrown away, and more are asked for."""
    asked = []

    def unlucky_at_first(count: int) -> bytes:
        asked.append(count)
        return bytes([255] * count) if len(asked) < 3 else bytes(range(count))

    secret = make_secret(unlucky_at_first)

    assert re.fullmatch("[A-Za-z0-9]{64}", secret.reveal())
    assert len(asked) == 3
    counts = [0] * 62
    for byte in range(248):
        letter = make_secret(bytes([byte]).__mul__).reveal()[0]
        counts[ALPHABET.index(letter)] += 1
    assert set(counts) == {4}


def test_a_secret_is_kept_as_its_hash() -> None:
    """SHA-256 in hexadecimal: a random secret needs no slow hash."""
    assert hash_of(Secret("a")) == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (3, 400), (16, 401), (7, 403), (5, 404), (6, 409), (9, 409), (10, 409), (8, 429),
        (12, 501), (13, 500), (14, 503),
    ],
)  # fmt: skip
def test_refusals_have_the_status_that_the_source_names(code: int, status: int) -> None:
    """Precondition failed is 409 here, in the source document's word."""
    refusal = Refusal(Code(code), "no", "reason", fact="1")

    assert refusal.http_status == status
    assert (str(refusal), refusal.reason, refusal.details) == ("no", "reason", {"fact": "1"})


def test_every_code_has_a_status() -> None:
    """No refusal reaches HTTP without one."""
    assert set(HTTP_STATUS) == set(Code)
    assert len(Code) == 11
