"""The states that events lead to, and the events that updates mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    EVENTS,
    ActionAdded,
    ActionChanged,
    ActionDeactivated,
    ActionReactivated,
    ActionRemoved,
    AppDeactivated,
    AppOidcAdded,
    AppOidcConfigChanged,
    AppOidcSecretChanged,
    AppReactivated,
    AppRemoved,
    AppRenamed,
    ContextRecorded,
    Event,
    FlowActionDropped,
    FlowRemoved,
    FlowTriggerSet,
    IdpDeactivated,
    IdpJwtAdded,
    IdpJwtConfigChanged,
    IdpReactivated,
    IdpRemoved,
    IdpRenamed,
    OrganizationAdded,
    ProjectAdded,
    ProjectChanged,
    ProjectDeactivated,
    ProjectReactivated,
)
from reconciler.service.domain.refusal import Refusal
from reconciler.service.domain.state import (
    Held,
    ImpossibleHistoryError,
    Removed,
    State,
    Unborn,
    change_action,
    change_flow,
    change_jwt_config,
    change_oidc_config,
    change_project,
    evolve,
    rename,
)
from tests.rows import each_row

UNBORN = Unborn("1", "acme")
OIDC = dict(DEFAULTS[Kind.OIDC_APPLICATION])
ACTION = Held(Kind.ACTION, "1", "acme", "acme", "greet", {"script": "x"})
FLAGS = {"projectRoleCheck": True}
PROJECT = Held(Kind.PROJECT, "1", "acme", "acme", "shop", FLAGS)
IDP = Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "partner", {"issuer": "x"})
APP = Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", OIDC, "7", "hash")
POST = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_POST"}
PUBLIC = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
REMOVED = Removed("1", "acme")


def flow(**triggers: list[str]) -> Held:
    return Held(Kind.ACTION_FLOW, "1", "acme", "acme", "LOGIN", triggers)


HISTORY: list[tuple[State, Event, State]] = [
    (
        UNBORN,
        OrganizationAdded("acme"),
        Held(Kind.ORGANIZATION, "1", "acme", "", "acme", {}),
    ),
    (UNBORN, ProjectAdded("shop", FLAGS), PROJECT),
    (PROJECT, ProjectChanged("new", {}), Held(Kind.PROJECT, "1", "acme", "acme", "new", {})),
    (UNBORN, IdpJwtAdded("partner", {"issuer": "x"}), IDP),
    (
        IDP,
        IdpRenamed("new"),
        Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "new", {"issuer": "x"}),
    ),
    (
        IDP,
        IdpJwtConfigChanged({"issuer": "y"}),
        Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "partner", {"issuer": "y"}),
    ),
    (IDP, IdpRemoved(), REMOVED),
    (UNBORN, AppOidcAdded("web", "shop", "7", "hash", OIDC), APP),
    (
        APP,
        AppRenamed("new"),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "new", OIDC, "7", "hash"),
    ),
    (
        APP,
        AppOidcConfigChanged(POST),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", POST, "7", "hash"),
    ),
    (
        APP,
        AppOidcConfigChanged(PUBLIC),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", PUBLIC, "7", ""),
    ),
    (
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", PUBLIC, "7", "by hand"),
        AppOidcConfigChanged({**PUBLIC, "devMode": True}),
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
        AppOidcSecretChanged("new"),
        Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", OIDC, "7", "new"),
    ),
    (APP, AppRemoved(), REMOVED),
    (UNBORN, ActionAdded("greet", {"script": "x"}), ACTION),
    (
        ACTION,
        ActionChanged("new", {}),
        Held(Kind.ACTION, "1", "acme", "acme", "new", {}),
    ),
    (ACTION, ActionRemoved(), REMOVED),
    (UNBORN, FlowTriggerSet("LOGIN", "PRE", ["7", "8"]), flow(PRE=["7", "8"])),
    (flow(PRE=["7"]), FlowTriggerSet("LOGIN", "POST", ["8"]), flow(PRE=["7"], POST=["8"])),
    (flow(PRE=["7"], POST=["8"]), FlowTriggerSet("LOGIN", "PRE", []), flow(POST=["8"])),
    (flow(PRE=["7", "8"], POST=["7"]), FlowActionDropped("7"), flow(PRE=["8"])),
    (flow(PRE=["7"]), FlowRemoved(), REMOVED),
    (APP, ContextRecorded(), APP),
    (PROJECT, ProjectDeactivated(), replace(PROJECT, active=False)),
    (replace(PROJECT, active=False), ProjectReactivated(), PROJECT),
    (IDP, IdpDeactivated(), replace(IDP, active=False)),
    (replace(IDP, active=False), IdpReactivated(), IDP),
    (APP, AppDeactivated(), replace(APP, active=False)),
    (replace(APP, active=False), AppReactivated(), APP),
    (ACTION, ActionDeactivated(), replace(ACTION, active=False)),
    (replace(ACTION, active=False), ActionReactivated(), ACTION),
]


@each_row(("before", "event", "after"), HISTORY)
def test_an_event_makes_of_an_object_what_it_says(
    before: State, event: Event, after: State
) -> None:
    """What an event does not speak of stays as it was."""
    assert evolve(before, event) == after


def test_every_event_there_is_has_a_row_above() -> None:
    """A new event joins the table, or this fails."""
    assert {type(event) for _, event, _ in HISTORY} == set(EVENTS.values())


@each_row("event", [event for _, event, _ in HISTORY])
def test_nothing_follows_a_removal(event: Event) -> None:
    """A log that says so is not one that this program wrote."""
    with pytest.raises(ImpossibleHistoryError):
        evolve(REMOVED, event)


@each_row("event", [event for _, event, _ in HISTORY])
def test_an_object_begins_by_being_added_and_is_added_once(event: Event) -> None:
    """Every other event needs an object, and adding needs there to be none."""
    # The first trigger that is set begins a flow, so that one has no event of its own for that.
    begins = event.TYPE.endswith("added") or isinstance(event, FlowTriggerSet)
    start = ACTION if begins else UNBORN

    with pytest.raises(ImpossibleHistoryError):
        evolve(start, event)


@each_row(
    ("decided", "wanted"),
    [
        (change_action(ACTION, "greet", {"script": "x"}), ()),
        (
            change_action(ACTION, "Greet", {"script": "x"}),
            (ActionChanged("Greet", {"script": "x"}),),
        ),
        (
            change_action(ACTION, "greet", {"script": "y"}),
            (ActionChanged("greet", {"script": "y"}),),
        ),
        (change_flow({"PRE": ["7"]}, FlowTriggerSet("LOGIN", "PRE", ("7",))), ()),
        (change_flow({}, FlowTriggerSet("LOGIN", "PRE", ())), ()),
        (change_flow({"PRE": ["7"]}, FlowActionDropped("8")), ()),
        (
            change_flow({"PRE": ["7", "8"]}, FlowTriggerSet("LOGIN", "PRE", ("8", "7"))),
            (FlowTriggerSet("LOGIN", "PRE", ("8", "7")),),
        ),
        (change_flow({"PRE": ["7"]}, FlowTriggerSet("LOGIN", "PRE", ())), (FlowRemoved(),)),
        (change_flow({"PRE": ["7"]}, FlowActionDropped("7")), (FlowRemoved(),)),
        (rename(IDP, "partner", IdpRenamed), ()),
        (rename(IDP, "new", IdpRenamed), (IdpRenamed("new"),)),
        (change_jwt_config(IDP, {"issuer": "x"}), ()),
        (
            change_jwt_config(IDP, {"issuer": ""}),
            (IdpJwtConfigChanged({"issuer": ""}),),
        ),
        (rename(APP, "web", AppRenamed), ()),
        (rename(APP, "WEB", AppRenamed), (AppRenamed("WEB"),)),
        (change_oidc_config(APP, dict(OIDC)), ()),
        (
            change_oidc_config(APP, {**OIDC, "devMode": True}),
            (AppOidcConfigChanged({**OIDC, "devMode": True}),),
        ),
        (
            change_oidc_config(APP, {**OIDC, "redirectUris": ["b", "a"]}),
            (AppOidcConfigChanged({**OIDC, "redirectUris": ["b", "a"]}),),
        ),
    ],
)
def test_only_a_difference_is_an_event(decided: object, wanted: object) -> None:
    """An apply with nothing to change writes nothing."""
    assert decided == wanted


@pytest.mark.parametrize(
    "changes",
    [
        {"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN"]},
        {"grantTypes": ["OIDC_GRANT_TYPE_REFRESH_TOKEN"]},
        {"additionalOrigins": ["https://a:443"]},
        {"additionalOrigins": ["https://a", "a"]},
    ],
)
def test_an_update_to_what_no_flow_can_carry_out_is_refused(changes: dict[str, Any]) -> None:
    """As on create."""
    with pytest.raises(Refusal):
        change_oidc_config(APP, {**OIDC, **changes})


def test_an_update_of_a_project_means_an_event_only_where_it_changes_something() -> None:
    assert change_project(PROJECT, "shop", FLAGS) == ()
    assert change_project(PROJECT, "new", FLAGS) == (ProjectChanged("new", FLAGS),)
    assert change_project(PROJECT, "shop", {}) == (ProjectChanged("shop", {}),)
