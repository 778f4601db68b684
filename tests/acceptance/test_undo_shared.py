"""The undo of runs over fields that ``metadata.ignore`` leaves to others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.acceptance.conftest import Place, an_action, an_application
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_run import Loop, loop
from tests.acceptance.test_undo import undone
from tests.acceptance.test_undo_cases import ours, run_of, with_metadata
from tests.acceptance.ways import on_two_ways

__all__ = ["loop", "ours"]

CODE: Mapping[str, list[str]] = {"grantTypes": ["AUTHORIZATION_CODE"], "responseTypes": ["CODE"]}
BOTH: Mapping[str, list[str]] = {
    "grantTypes": ["IMPLICIT", "AUTHORIZATION_CODE"],
    "responseTypes": ["ID_TOKEN", "CODE"],
}


def web(spec: Mapping[str, list[str]], *ignored: str) -> str:
    text = an_application("web", **spec)
    return with_metadata(text, ignore=[*ignored]) if ignored else text


@pytest.mark.parametrize(("first", "second"), [(CODE, BOTH), (BOTH, CODE)])
@pytest.mark.parametrize("saved", [False, True])
def test_a_field_that_the_run_took_back_from_others_is_left_to_them_again_as_it_was(
    ours: Place, first: Mapping[str, list[str]], second: Mapping[str, list[str]], *, saved: bool
) -> None:
    """The run decided the field, so the undo does: otherwise it would not fit the others."""
    applied(ours.run, ours.manifests, web=web(first))
    applied(ours.run, ours.manifests, web=web(first, "grantTypes"))
    before = exported(ours.run)
    run_id = run_of(applied(ours.run, ours.manifests, web=web(second)))
    after = exported(ours.run)

    if saved:
        assert ours.run("undo", run_id, "--out", "undo.plan").code == 0
        ran = ours.run("apply", "undo.plan", "--format", "json")
        assert ran.code == 0, ran.all
        second_id = run_of(ran)
    else:
        second_id = undone(ours.run, run_id)
    assert exported(ours.run) == before
    blocked = ours.run("plan", "--detailed-exitcode")
    undone(ours.run, second_id)

    assert exported(ours.run) == after
    assert blocked.code == 3, blocked.all
    assert "GUARD-UNDONE" in blocked.err


@on_two_ways
def test_a_field_that_the_run_left_to_others_is_what_they_made_of_it(ours: Place) -> None:
    """The run gave it away: an undo takes it back as it was, and says if others wrote to it."""
    applied(ours.run, ours.manifests, web=web(CODE))
    before = exported(ours.run)
    run_id = run_of(applied(ours.run, ours.manifests, web=web(BOTH, "grantTypes", "responseTypes")))

    undone(ours.run, run_id)

    assert exported(ours.run) == before


def test_a_run_refuses_what_does_not_fit_what_others_hold_before_any_write(loop: Loop) -> None:
    """Nor does a heal stop: the commit before is what it heals to."""
    first = {"manifests/web.yaml": web(CODE), "manifests/greet.yaml": an_action()}
    loop.push(first)
    secrets = ("--secrets-to", "file:kept")
    assert loop.once("apply", *secrets).code == 0
    commit = loop.applied()
    loop.push({"manifests/web.yaml": web(BOTH, "grantTypes")})
    loop.direct.change("greet", timeout="11s")
    events = loop.events()

    refused = loop.once("apply", *secrets)

    assert refused.code == 3, refused.all
    assert "GUARD-IGNORED" in refused.err
    assert loop.applied() == commit
    assert loop.held("web")["spec"]["responseTypes"] == ["OIDC_RESPONSE_TYPE_CODE"]
    assert loop.events() - events <= 1  # the edit is healed or left, and nothing else is written
