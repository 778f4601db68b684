"""The report of drift: in words, as JSON, and in one fence for an issue."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.plan.history import Step
from reconciler.plan.model import Cause, CauseKind, IgnoredField
from reconciler.report.drift_and_history import NO_HISTORY, DriftDocument
from reconciler.report.drift_and_history import drift_as_text as drawn
from reconciler.report.layout import BARE
from reconciler.state import ObjectEvent
from tests.builders import GREET, PLACE, WEB, a_ref
from tests.drawings import (
    drift_as_json,
    drift_as_markdown,
    drift_as_text,
    history_as_json,
    history_as_text,
)
from tests.rows import each_row

CAUSE = Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43, "other")
CHANGED = DriftedObject(GREET, "7", CAUSE, (FieldChange("timeout", "20s", "3s"),))
REMOVED = DriftedObject(WEB, "8", CAUSE._replace(tree=""), removed=True)
NOTHING = Drift(())


@each_row(
    ("changes", "sentence"),
    [
        ({}, "No drift. Nothing was changed on the service."),
        ({"keeps_history": False}, "No drift found."),
        ({"unjudged": (WEB,)}, "No drift found; 1 cannot be judged."),
        ({"objects": (CHANGED,)}, "Drift: 1 changed on the service, 0 removed."),
        (
            {"objects": (CHANGED, REMOVED), "unjudged": (WEB,)},
            "Drift: 1 changed on the service, 1 removed; 1 cannot be judged.",
        ),
        (
            {"untold": (WEB,)},
            "Drift: 0 changed on the service, 0 removed, 1 by an unknown writer.",
        ),
    ],
)
def test_one_sentence_says_how_much_drifted(changes: dict[str, Any], sentence: str) -> None:
    drift = replace(NOTHING, **changes)

    assert str(DriftDocument(drift, PLACE).sentence) == sentence
    assert drift_as_text(drift, PLACE).endswith(sentence)


def test_each_object_is_told_with_who_changed_it_and_how() -> None:
    text = drift_as_text(replace(NOTHING, objects=(CHANGED, REMOVED)), PLACE)

    assert f"~ {GREET}  (id 7)" in text
    assert "changed by ana for tree other at 2026-01-01T00:00:00Z (sequence 43)" in text
    assert '"20s"' in text
    assert f"- {WEB}  (id 8)" in text
    assert "removed by ana at" in text


def test_an_object_that_was_made_again_is_told_as_such() -> None:
    again = replace(CHANGED, removed_id="5")

    text = drift_as_text(replace(NOTHING, objects=(again,)), PLACE)

    assert "what this tree applied was deleted (id 5)" in text
    assert "made again by ana" in text
    assert drift_as_json(replace(NOTHING, objects=(again,)), PLACE)["drift"][0]["removed_id"] == "5"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unmanaged": (WEB,)}, "Held, but declared nowhere:"),
        ({"untold": (WEB,)}, "Differs, and the service does not report who changed it:"),
        ({"unjudged": (WEB,)}, "never applied by this tree"),
        ({"unjudged": (WEB,), "keeps_history": False}, "not held: never applied, or removed"),
        ({"keeps_history": False}, NO_HISTORY),
    ],
)
def test_what_is_not_drift_is_told_beside_it(changes: dict[str, Any], words: str) -> None:
    assert words in drift_as_text(replace(NOTHING, **changes), PLACE)


def test_names_of_others_stay_in_one_fence() -> None:
    hostile = replace(CHANGED, ref=a_ref(name="```\n# title"))

    text = drift_as_markdown(replace(NOTHING, objects=(hostile,)), PLACE)

    fence = re.findall(r"(?m)^`{3,}", text)
    assert len(fence) == 2
    assert fence[0] == fence[1] == "````"


def test_a_long_report_is_cut_and_says_so() -> None:
    many = tuple(replace(CHANGED, id=str(number)) for number in range(50))

    text = drift_as_markdown(replace(NOTHING, objects=many), PLACE, limit=1000)

    whole = text.count("(id ")
    assert f"[cut: {50 - whole} more; `reconciler drift` shows them]" in text
    assert 0 < whole < 50
    assert len(text) < 1100


def test_what_is_most_dangerous_is_not_cut() -> None:
    """Nor is what is told below the objects, of which only the lists are."""
    many = tuple(replace(CHANGED, id=str(number)) for number in range(500))
    before, after = ["https://a.example.com/cb"], ["https://a.example.com/cb", "https://b.test/cb"]
    moved = replace(CHANGED, ref=WEB, fields=(FieldChange("redirectUris", before, after),))
    names = tuple(a_ref(name=f"web-{number}") for number in range(500))
    drift = replace(NOTHING, objects=(*many, moved, REMOVED), unmanaged=names, owed=2)

    text = drift_as_markdown(drift, PLACE, limit=4000)

    assert (
        text.index(f"- {WEB}  (id 8)") < text.index('"https://b.test/cb"') < text.index("timeout")
    )
    assert "Held, but declared nowhere:" in text
    assert "2 client secrets" in text
    assert text.count("[cut: ") == 2
    assert len(text) < 4200


def test_where_no_object_drifted_a_list_has_the_room() -> None:
    names = tuple(a_ref(name=f"web-{number}") for number in range(500))

    text = drift_as_markdown(replace(NOTHING, unmanaged=names), PLACE, limit=4000)

    assert len(text) > 1000
    assert text.count("[cut: ") == 1
    assert len(text) < 4200


def test_one_object_that_is_too_long_is_cut_and_the_rest_is_told() -> None:
    long = replace(CHANGED, fields=(FieldChange("timeout", "20s", "3" * 5000),))

    text = drift_as_markdown(replace(NOTHING, objects=(long,), owed=2), PLACE, limit=2000)

    assert f"~ {GREET}  (id 7)" in text
    assert "2 client secrets" in text
    assert len(text) < 2200


def test_json_counts_and_names_everything() -> None:
    drift = Drift((CHANGED, REMOVED), (WEB,), (GREET,), (WEB,), owed=2)

    told = drift_as_json(drift, PLACE)

    assert told["summary"] == {
        "changed": 1, "removed": 1, "untold": 1, "unmanaged": 1, "unjudged": 1,
        "ignored": 0, "owed": 2, "owed_elsewhere": 0, "left_out": 0,
    }  # fmt: skip
    assert [each["drift"] for each in told["drift"]] == ["changed", "removed"]
    assert told["drift"][0]["sequence"] == "43"
    assert told["unjudged"][0]["reason"] == "never_applied"


CONTEXT = {"tree": "default", "revision": "abc", "plan": "sha256:1", "reason": "key leaked"}


def a_step(context: dict[str, Any] | None = None, **more: Any) -> Step:
    event = ObjectEvent("action.changed", 43, "2026-01-01T00:00:00Z", "ana", context or {}, {})
    return Step(event, **{"fields": (FieldChange("timeout", "20s", "3s"),), "after": {}, **more})


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


def test_an_object_that_nothing_happened_to_says_so() -> None:
    assert history_as_text("Action/acme/greet", []) == "Action/acme/greet\n\nNothing happened."


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


def test_many_ignored_fields_are_cut_on_a_terminal_only() -> None:
    """A list that Defaults make for every object would hide the rest."""
    fields = tuple(IgnoredField(WEB, f"f{number}", None, [number]) for number in range(40))
    document = DriftDocument(replace(NOTHING, ignored=fields), PLACE)

    short = drawn(document, replace(BARE, folded=True))

    assert "  OidcApplication acme/shop/storefront  f0: [0]  (declared: nothing)\n" in short
    assert "and 10 more: --format json lists each" in short
    assert "f39" not in short
    assert "f39: [39]" in drawn(document, BARE)
    assert "; 40 ignored fields are not judged." in short
