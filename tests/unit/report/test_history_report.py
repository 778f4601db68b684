"""The history of an object: every event with its writer and what it changed."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.plan.causes import Step
from reconciler.plan.diff import FieldChange
from reconciler.report.history_report import history_as_json, history_as_text
from reconciler.state import ObjectEvent

CONTEXT = {"tree": "default", "revision": "abc", "plan": "sha256:1", "reason": "key leaked"}


def a_step(context: dict[str, Any] | None = None, **more: Any) -> Step:
    event = ObjectEvent("action.changed", 43, "2026-01-01T00:00:00Z", "ana", context or {}, {})
    return Step(event, **{"fields": (FieldChange("timeout", "20s", "3s"),), **more})


def test_an_event_is_told_with_its_writer_its_reason_and_its_fields() -> None:
    text = history_as_text("Action/acme/greet", [a_step(CONTEXT)])

    assert text.startswith("Action/acme/greet\n\n")
    assert "2026-01-01T00:00:00Z  action.changed  by ana  (sequence 43)" in text
    assert "tree default, revision abc, plan sha256:1" in text
    assert "reason: key leaked" in text
    assert '"3s"' in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"secret": True}, "a new client secret; the one before has ended"),
        ({"removed": True}, "removed"),
    ],
)
def test_what_is_no_field_is_told_in_words(more: dict[str, Any], words: str) -> None:
    assert history_as_text("x", [a_step(fields=(), **more)]).endswith(words)


def test_a_context_that_is_no_text_is_not_told() -> None:
    text = history_as_text("x", [a_step({"tree": 7, "reason": ["x"]})])

    assert "tree" not in text
    assert "reason" not in text


def test_what_others_wrote_hides_nothing() -> None:
    assert "\x1b" not in history_as_text("a\x1b", [a_step({"tree": "t\x1b"})])


def test_json_has_every_event_in_stable_keys() -> None:
    told = history_as_json("7", [a_step(CONTEXT, secret=True), a_step(removed=True, fields=())])

    first, last = told["events"]
    assert (first["sequence"], first["by"], first["tree"], first["reason"]) == (
        "43", "ana", "default", "key leaked",
    )  # fmt: skip
    assert (first["secret_changed"], first["removed"]) == (True, False)
    assert [field["name"] for field in first["fields"]] == ["timeout"]
    assert (last["tree"], last["reason"], last["removed"]) == (None, None, True)
