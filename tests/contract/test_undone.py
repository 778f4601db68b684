"""The mark of an undo, kept with an object on every store."""

from __future__ import annotations

import json

import pytest

from reconciler.resources.undone import Undone, undone_text
from reconciler.service.domain.refusal import Refusal
from reconciler.service.projections.maintenance import rebuild, verify
from tests.unit.service.asking import Asking

MARK = Undone("run-2", "run-1", "logins failed", {"devMode": "0" * 64})
TEXT = undone_text(MARK)
KEPT = {"run": "run-2", "of": "run-1", "reason": "logins failed", "values": {"devMode": "0" * 64}}


def context(**said: object) -> str:
    return json.dumps({"tree": "team-a", **said})


def written(ask: Asking, *contexts: str) -> dict[str, object]:
    """Return the only object after these contexts were recorded, and rows agree with the log."""
    made = ask.an_app(context=context())
    for each in contexts:
        ask("RecordContext", id=made["appId"], context=each)
    (found,) = ask.objects()
    rebuild(ask.service.store)
    assert (ask.objects(), verify(ask.service.store)) == ([found], [])
    return found


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        pytest.param([context(undone=TEXT)], KEPT, id="kept"),
        pytest.param([context(undone=TEXT), context()], KEPT, id="a writer that knows no marks"),
        pytest.param([context(undone=TEXT), context(undone="")], None, id="ended"),
        pytest.param([context(undone=7)], None, id="not a text"),
        pytest.param([context(undone="x")], None, id="not JSON"),
        pytest.param([context(undone=TEXT), context(undone="[]")], KEPT, id="another shape"),
    ],
)
def test_the_mark_of_an_undo(ask: Asking, contexts: list[str], expected: object) -> None:
    assert written(ask, *contexts)["undone"] == expected


@pytest.mark.parametrize("said", [{"undone": "x" * 6001}, {"owner": "x" * 201}])
def test_too_long_a_text_is_refused(ask: Asking, said: dict[str, str]) -> None:
    made = ask.an_app(context=context())

    with pytest.raises(Refusal, match="characters"):
        ask("RecordContext", id=made["appId"], context=context(**said))


@pytest.mark.parametrize("owner", ["team-b", ""])
def test_an_undo_gives_an_object_back(ask: Asking, owner: str) -> None:
    assert written(ask, context(owner=owner))["owner"] == owner


def removed(ask: Asking, count: int = 1, mark: object = TEXT) -> list[str]:
    """Make as many applications, and remove them as an undo does; return their ids."""
    made = [ask.an_app(name=f"app-{number}")["appId"] for number in range(count)]
    for each in made:
        ask("RemoveApp", projectId=ask.project, appId=each, context=context(undone=mark))
    return made


def unmade(ask: Asking) -> list[dict[str, object]]:
    (found,) = ask("ListTrees")["organizations"]
    rebuild(ask.service.store)
    assert ask("ListTrees")["organizations"] == [found]
    assert verify(ask.service.store) == []
    kept: list[dict[str, object]] = found["unmade"]
    return kept


def test_the_mark_of_an_object_that_an_undo_removed_ends_when_it_is_made_again(ask: Asking) -> None:
    removed(ask)

    assert unmade(ask) == [
        {
            "kind": "OidcApplication",
            "projectId": ask.project,
            "name": "app-0",
            "undone": KEPT,
        }
    ]
    ask.an_app(name="APP-0")
    assert unmade(ask) == []


@pytest.mark.parametrize("mark", ["x", 7])
def test_what_is_no_mark_is_not_kept_of_an_object_that_is_removed(
    ask: Asking, mark: object
) -> None:
    removed(ask, mark=mark)

    assert unmade(ask) == []


def test_a_tree_with_the_name_of_the_marks_is_none_of_them(ask: Asking) -> None:
    """The trees of an organization are kept with its marks."""
    ask("RecordContext", id=ask.organization, context='{"tree": "unmade"}')

    ask.an_app()

    assert unmade(ask) == []


def test_an_organization_keeps_the_newest_of_the_marks(ask: Asking) -> None:
    removed(ask, 203)

    names = {each["name"] for each in unmade(ask)}

    assert len(names) == 200
    assert not names & {"app-0", "app-1", "app-2"}
