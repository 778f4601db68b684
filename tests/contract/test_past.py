"""Objects as they were at an earlier sequence, over every store."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from reconciler.cli.embedded import InProcessWire
from reconciler.cli.export import export_of
from reconciler.resources.call import Call
from reconciler.service.operations.callers import Caller, Role
from reconciler.service_client.port import ReadOnlyService
from reconciler.service_client.read_only import OperationsReader
from reconciler.service_client.wire import Answer, WireRefusal
from tests.effort import IS_USUAL
from tests.unit.service.asking import Asking

# Each moment is compared with all events after it, so twice the steps are four times the work.
STEPS = 100 if IS_USUAL else 200
SECRET = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC"}
FLOW = {"flowType": "3", "triggerType": "2"}
Held = Mapping[str, dict[str, Any]]
SORTS = 14  # of steps in a walk


def now(ask: Asking) -> Held:
    """Return every object of the organization by id, as a list answers it."""
    found: dict[str, dict[str, Any]] = {}
    cursor = ""
    while True:
        answer = ask("ListObjects", organizationId=ask.organization, cursor=cursor)
        found |= {each["id"]: each for each in answer["objects"]}
        if not (cursor := answer["next"]):
            return found


def head(ask: Asking) -> int:
    (found,) = ask("ListHeads")["organizations"]
    return int(found["sequence"])


def since(ask: Asking, sequence: int) -> list[str]:
    """Return the ids of what an event changed since, once each."""
    found: dict[str, None] = {}
    cursor: str | int = sequence
    while True:
        answer = ask("ListChanges", organizationId=ask.organization, cursor=cursor)
        found |= dict.fromkeys(each["id"] for each in answer["changes"])
        if not (cursor := answer["next"]):
            return [*found]


def at(ask: Asking, sequence: int, ids: list[str]) -> Held:
    """Return objects as they were; what there is no room for is asked for again."""
    found: dict[str, dict[str, Any]] = {}
    while ids:
        answer = ask(
            "ListObjectsAt", organizationId=ask.organization, sequence=sequence, ids=ids[:500]
        )
        found |= {each["id"]: each for each in answer["objects"]}
        done = {*found, *answer["absent"]}
        rest = [each for each in ids if each not in done]
        assert len(rest) < len(ids)
        ids = rest
    return found


def then(ask: Asking, sequence: int) -> Held:
    """Return what was held: what is held now, and in it what an event changed since."""
    ids = since(ask, sequence)
    rest = {key: held for key, held in now(ask).items() if key not in ids}
    return {**rest, **at(ask, sequence, ids)}


class Walk:
    """Random steps in an organization, of every sort of event."""

    def __init__(self, ask: Asking, seed: int) -> None:
        self.ask = ask
        self.dice = random.Random(seed)
        self.actions: list[str] = []
        self.apps: list[str] = []
        self.count = 0
        self.taken: set[str] = set()

    def step(self) -> None:
        """Do something at random; the clock may stand still."""
        self.count += 1
        self.ask.clock.time += self.dice.choice((0, 1, 1_000_000))
        steps: list[Callable[[], object]] = [self.make_action, self.make_app, self.pause]
        if self.actions:
            steps += [self.change_action, self.rename_action, self.flow, self.clear, self.take]
            steps += [self.remove_action, self.switch]
        if self.apps:
            steps += [self.change_app, self.rename_app, self.secret, self.remove_app]
        step = self.dice.choice(steps)
        self.taken.add(step.__name__)
        step()

    @property
    def is_complete(self) -> bool:
        """Whether every sort of step was taken."""
        return len(self.taken) == SORTS

    @property
    def context(self) -> str:
        """Return a context with a tree and marks, or none."""
        marks = ('{"tree":"a","preventDelete":true}', '{"tree":"b","critical":true}', "")
        return self.dice.choice(marks)

    def make_action(self) -> None:
        """Make one."""
        made = self.ask.an_action(f"a{self.count}", context=self.context)
        self.actions.append(made["id"])

    def make_app(self) -> None:
        """Make one with a secret, which is owed."""
        made = self.ask.an_app(f"w{self.count}", **SECRET, custody="r", context=self.context)
        self.apps.append(made["appId"])

    def pause(self) -> None:
        """Leave a mark on the organization."""
        self.ask("PauseTree", named="acme", tree="a", reason=f"r{self.count}", seconds=60)

    def _action(self) -> str:
        return self.dice.choice(self.actions)

    def _app(self) -> dict[str, Any]:
        return {"projectId": self.ask.project, "appId": self.dice.choice(self.apps)}

    def change_action(self) -> None:
        """Send other fields."""
        fields = {"name": f"c{self.count}", "script": f"x = {self.count}"}
        self.ask("UpdateAction", id=self._action(), **fields, context=self.context)

    def rename_action(self) -> None:
        """Change the name alone, as far as the script is the one that was made."""
        self.ask("UpdateAction", id=self._action(), name=f"n{self.count}", script="x = 1")

    def flow(self) -> None:
        """Set a trigger."""
        ids = self.dice.sample(self.actions, k=1)
        self.ask("SetTriggerActions", organization=self.ask.organization, **FLOW, actionIds=ids)

    def clear(self) -> None:
        """Remove the flow, if there is one: it may come back."""
        self.flow()
        self.ask("ClearFlow", organization=self.ask.organization, type="3")

    def take(self) -> None:
        """Record a context."""
        self.ask("RecordContext", id=self._action(), context='{"tree":"c"}')

    def switch(self) -> None:
        """Deactivate and reactivate."""
        action = self._action()
        self.ask("DeactivateAction", id=action)
        if self.dice.random() < 0.5:
            self.ask("ReactivateAction", id=action)
        else:
            self.actions.remove(action)  # it stays so

    def remove_action(self) -> None:
        """Remove one, which leaves the flow, too."""
        action = self._action()
        self.ask("DeleteAction", id=action)
        self.actions.remove(action)

    def change_app(self) -> None:
        """Send other fields."""
        uri = f"https://{self.count}.example.com/"
        self.ask("UpdateOIDCAppConfig", **self._app(), **SECRET, redirectUris=[uri])

    def rename_app(self) -> None:
        """Give it another name."""
        self.ask("UpdateApp", **self._app(), name=f"v{self.count}")

    def secret(self) -> None:
        """Give it another secret."""
        self.ask("RegenerateOIDCClientSecret", **self._app())

    def remove_app(self) -> None:
        """Remove one."""
        app = self._app()
        self.ask("RemoveApp", **app)
        self.apps.remove(app["appId"])


@pytest.mark.slow
def test_every_moment_of_a_random_walk_is_answered_as_it_was(ask: Asking) -> None:
    """Of each moment, all that was held then, to the last mark, writer and sequence."""
    walk = Walk(ask, seed=29)
    moments = []
    for _ in range(STEPS):
        walk.step()
        moments.append((head(ask), now(ask)))

    assert walk.is_complete
    assert len({sequence for sequence, _ in moments}) > STEPS * 3 // 4
    for sequence, held in moments:
        assert then(ask, sequence) == held


def test_before_the_first_event_there_is_nothing(ask: Asking) -> None:
    ids = [*now(ask), "404"]

    answer = ask("ListObjectsAt", organizationId=ask.organization, sequence=1, ids=ids)

    assert answer == {"objects": [], "absent": ids}


def test_an_object_of_another_organization_never_was(ask: Asking) -> None:
    """Its id is answered as one that nobody ever had, and its organization does not exist."""
    other = ask("AddOrg", name="globex")["id"]
    foreign = ask("AddProject", organization=other, name="hidden")["id"]
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization}))
    fields: dict[str, Any] = {"sequence": 2**62, "ids": [foreign, other, "404"], "by": limited}

    answer = ask("ListObjectsAt", organizationId=ask.organization, **fields)

    assert answer == {"objects": [], "absent": [foreign, other, "404"]}
    assert ask.refused("ListObjectsAt", organizationId=other, **fields).code == 5


def test_no_secret_and_no_hash_is_answered(ask: Asking) -> None:
    app = ask.an_app(**SECRET, custody="run-1")
    row = ask("ListObjectsAt", organizationId=ask.organization, sequence=2**62, ids=[app["appId"]])

    (found,) = row["objects"]
    assert found["hasSecret"] is True
    assert app["clientSecret"] not in str(row)
    assert "hash" not in str(row).lower()


def test_answers_are_cut_by_bytes_and_by_events(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is asked for again, and at least one object is answered each time."""
    ids = [ask.an_action(f"a{number}")["id"] for number in range(6)]
    whole = at(ask, 2**62, ids)
    monkeypatch.setattr("reconciler.service.operations.texts.MAX_LIST_BYTES", 1)
    by_bytes = ask("ListObjectsAt", organizationId=ask.organization, sequence=2**62, ids=ids)
    assert [each["id"] for each in by_bytes["objects"]] == ids[:1]
    assert at(ask, 2**62, ids) == whole
    monkeypatch.undo()
    monkeypatch.setattr("reconciler.service.operations.history.AT_ONCE", 2)
    by_events = ask("ListObjectsAt", organizationId=ask.organization, sequence=2**62, ids=ids)
    assert [each["id"] for each in by_events["objects"]] == ids[:2]
    assert at(ask, 2**62, ids) == whole


@pytest.mark.parametrize("ids", [[], ["1"] * 501, ["a\0"], [""], [7], "7", None])
def test_a_list_that_is_none_is_refused(ask: Asking, ids: Any) -> None:
    fields = {"organizationId": ask.organization, "sequence": 1, "ids": ids}

    refusal = ask.refused("ListObjectsAt", **fields)

    assert refusal.code == 3
    assert "ids" in str(refusal)


def check_each_export(ask: Asking, reader: ReadOnlyService, seed: int) -> None:
    """Take a walk; the manifests of each moment are those that an export wrote then."""
    walk = Walk(ask, seed)
    moments = []
    for _ in range(STEPS):
        walk.step()
        held = reader.observe(["acme"])
        moments.append((head(ask), held.objects, export_of(held)))

    assert walk.is_complete
    for sequence, objects, export in moments:
        then_held = reader.observe_at({"Acme": sequence})
        assert then_held.objects == objects
        assert then_held.incomplete == ()
        assert export_of(then_held) == export
    assert len({str(export) for _, _, export in moments}) > STEPS // 2


@pytest.mark.slow
def test_every_moment_is_exported_as_it_was(ask: Asking) -> None:
    check_each_export(ask, OperationsReader(InProcessWire(ask.service)), seed=292)


def test_what_is_written_while_the_past_is_read_is_not_in_it(ask: Asking) -> None:
    """Objects are listed first, so that a write in between is among what changed since."""
    action = ask.an_action("a")["id"]
    moment = head(ask)
    before = OperationsReader(InProcessWire(ask.service)).observe(["acme"]).objects

    names = iter("cdef")

    class Disturbed(InProcessWire):
        def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
            replies = super().send(calls)
            if calls[0].operation == "ListObjects":
                ask("UpdateAction", id=action, name="b", script="x = 2")
                ask.an_action(next(names))
            return replies

    reader = OperationsReader(Disturbed(ask.service))

    assert reader.observe_at({"acme": moment}).objects == before
    assert reader.observe_at({"acme": 1}).objects == {}


def test_what_is_read_of_the_past_is_what_changed_since(ask: Asking) -> None:
    """A log may be of any length: only the events after the moment are asked for."""
    calls: list[str] = []

    class Counted(InProcessWire):
        def send(self, calls_: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
            calls.extend(call.operation for call in calls_)
            return super().send(calls_)

    reader = OperationsReader(Counted(ask.service))
    ids = [ask.an_action(f"a{number}")["id"] for number in range(5)]
    for number in range(500):
        ask("UpdateAction", id=ids[number % 5], name=f"a{number % 5}", script=f"x = {number}")
    before = reader.observe(["acme"]).objects
    moment, plain = head(ask), len(calls)
    ask("UpdateAction", id=ids[0], name="b", script="y = 1")
    calls.clear()

    assert reader.observe_at({"acme": moment}).objects == before
    assert since(ask, moment) == ids[:1]
    assert calls.count("ListChanges") == 1
    assert calls.count("ListObjectsAt") == 1
    assert len(calls) <= plain + 3
