"""What drifted is accepted; what only may have is accepted by its name."""

from __future__ import annotations

from typing import Any

from reconciler.plan.accepting import Wanted, accepted
from reconciler.plan.diff import CREDENTIAL, FieldChange
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.plan.model import Cause, CauseKind
from tests.builders import GREET, WEB, an_action, an_application, declared, desired, held, observed

ANA = Cause(CauseKind.SERVICE, "ana", "noon", 43)
DECLARED = desired(
    declared(GREET, an_action(timeout="5s", allowedToFail=True)), declared(WEB, an_application())
)
HELD = observed(
    held(GREET, an_action(timeout="1s", allowedToFail=False)),
    held(WEB, an_application(devMode=True)),
)
TIMEOUT = FieldChange("timeout", "5s", "1s")


def taken(drift: Drift, *wanted: Wanted, service: Any = HELD) -> tuple[Any, Any]:
    """Return what is accepted, by name, and what was asked for in vain."""
    found, left = accepted(drift, DECLARED, service, wanted)
    return {each.resource.ref: each.removed or each.fields for each in found}, left


def test_all_that_drifted_is_accepted_and_nothing_else() -> None:
    """A client secret is no field of a manifest."""
    secret = FieldChange(CREDENTIAL, before=True, after=False)
    drift = Drift(
        (DriftedObject(GREET, "1", ANA, (TIMEOUT,)), DriftedObject(WEB, "2", ANA, (secret,))),
    )

    assert taken(drift) == ({GREET: {"timeout": "1s"}}, [])
    assert taken(Drift((), untold=(GREET,))) == ({}, [])


def test_what_is_named_is_accepted() -> None:
    """An object by its drift, or by every difference where nobody tells; a field in any case."""
    drift = Drift((DriftedObject(GREET, "1", ANA, (TIMEOUT,)),))
    both = {"timeout": "1s", "allowedToFail": False}
    failing = Wanted(GREET, "allowedToFail")

    assert taken(drift, Wanted(GREET)) == ({GREET: {"timeout": "1s"}}, [])
    assert taken(drift, failing) == ({GREET: {"allowedToFail": False}}, [])
    assert taken(drift, failing, Wanted(GREET)) == ({GREET: both}, [])
    assert taken(drift, Wanted(WEB)) == ({}, [Wanted(WEB)])
    assert taken(drift, Wanted(WEB, "devMode")) == ({WEB: {"devMode": True}}, [])
    assert taken(drift, Wanted(WEB, "appType")) == ({}, [Wanted(WEB, "appType")])
    assert taken(Drift((), untold=(GREET,)), Wanted(GREET)) == ({GREET: both}, [])
    assert taken(Drift((), unjudged=(GREET,)), Wanted(GREET))[0] == {GREET: both}


def test_what_is_gone_loses_its_document() -> None:
    """Without a history nobody knows that it was there, so that it is named."""
    gone, service = DriftedObject(GREET, "1", ANA, removed=True), observed()
    missing = Drift((), unjudged=(GREET,), keeps_history=False)

    assert taken(Drift((gone,)), service=service) == ({GREET: True}, [])
    assert taken(missing, service=service) == ({}, [])
    assert taken(missing, Wanted(GREET), service=service) == ({GREET: True}, [])
    assert taken(missing, Wanted(GREET, "timeout"), service=service)[0] == {}
