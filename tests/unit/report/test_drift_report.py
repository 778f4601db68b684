"""The report of drift: in words, as JSON, and in one fence for an issue."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, DriftedObject, Reason, Unjudged
from reconciler.plan.model import Cause, CauseKind
from reconciler.report.drift_report import (
    NO_HISTORY,
    drift_as_json,
    drift_as_markdown,
    drift_as_text,
    drift_sentence,
)
from tests.builders import GREET, PLACE, WEB, a_ref

CAUSE = Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43, "other")
CHANGED = DriftedObject(GREET, "7", CAUSE, (FieldChange("timeout", "20s", "3s"),))
REMOVED = DriftedObject(WEB, "8", replace(CAUSE, tree=""), removed=True)
NOTHING = Drift("default", ())
UNJUDGED = Unjudged(WEB, Reason.NEVER_APPLIED)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "No drift. Nothing was changed on the service."),
        ({"keeps_history": False}, "No drift found."),
        ({"unjudged": (UNJUDGED,)}, "No drift found; 1 cannot be judged."),
        ({"objects": (CHANGED,)}, "Drift: 1 changed on the service, 0 removed."),
        (
            {"objects": (CHANGED, REMOVED), "unjudged": (UNJUDGED,)},
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

    assert drift_sentence(drift) == sentence
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
        ({"untold": (WEB,)}, "Differs, and the service does not tell who changed it:"),
        ({"unjudged": (UNJUDGED,)}, "never applied by this tree"),
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

    text = drift_as_markdown(replace(NOTHING, objects=many), PLACE, limit=500)

    assert "[cut: the whole of it is in the output of the job]" in text
    assert len(text) < 800


def test_json_counts_and_names_everything() -> None:
    drift = Drift("t", (CHANGED, REMOVED), (WEB,), (GREET,), (UNJUDGED,), owed=2)

    told = drift_as_json(drift, PLACE)

    assert told["summary"] == {
        "changed": 1, "removed": 1, "untold": 1, "unmanaged": 1, "unjudged": 1,
        "owed": 2, "owed_elsewhere": 0,
    }  # fmt: skip
    assert [each["drift"] for each in told["drift"]] == ["changed", "removed"]
    assert told["drift"][0]["sequence"] == "43"
    assert told["unjudged"][0]["reason"] == "never_applied"
