"""The law of undo: random applies, edits by hand and undoes leave what a model remembers."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import Kind
from tests.acceptance.conftest import ORGANIZATION
from tests.acceptance.ways import Way, a_way
from tests.effort import cases
from tests.laws.undo_model import (
    ACTION,
    APPLICATION,
    BASIC,
    FLOW,
    PROJECT,
    PROVIDER,
    ROLE,
    SHOP,
    SORTS,
    TRIGGERS,
    Model,
    Thing,
    Things,
    without_lost_actions,
)
from tests.program import Ran, program

SEED = int(os.environ.get("UNDO_LAW_SEED", "7"))
GLASS = tuple(
    f"--break-glass={kind}/acme/shop/{name}=law"
    for kind in (APPLICATION, ROLE)
    for name in SORTS[kind].names
)
WRITES = (
    *("--prune", "--allow-deletes=99", "--allow-updates=99", "--auto-approve", "--format=json"),
    *GLASS,
)
PLANS = ("--prune", "--allow-deletes=99", "--allow-updates=99", "--detailed-exitcode", *GLASS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "steps"), [("embedded", 25), ("served", 8), ("served database", 8)]
)
def test_the_service_holds_what_a_model_remembers(
    kind: str, steps: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every refusal is one of the model's, and every state is the model's."""
    postgres = partial(request.getfixturevalue, "postgres")
    with a_way(kind, program(tmp_path), tmp_path, postgres) as way:
        walk = Walk(way, tmp_path / "manifests", random.Random(f"{SEED} {kind}"))
        walk.begin()
        for step in range(cases(steps)):
            walk.step()
            walk.compare((SEED, step))


@dataclass
class Walk:
    """Random steps against a service, each of which the model takes as well.

    Attributes:
        known: Ids that the service gave to objects, by the keys of the model.
    """

    way: Way
    folder: Path
    dice: random.Random
    model: Model = field(default_factory=Model)
    known: dict[str, tuple[str, str]] = field(default_factory=dict)

    def begin(self) -> None:
        """Apply the project, which no undo deletes, and then something of every kind."""
        wanted: dict[str, Thing] = {}
        self._put(wanted, PROJECT, SHOP)
        self._apply(wanted)
        self.model.runs.clear()
        for kind, sort in SORTS.items():
            if kind != PROJECT:
                self._put(wanted, kind, next(iter(sort.names)))
        self._apply(without_lost_actions(wanted))
        self.compare("at the beginning")

    def step(self) -> None:
        """Do something at random."""
        step = self.dice.choice((self._change, self._change, self._edit, *(3 * [self._undo])))
        step()

    def compare(self, when: object) -> None:
        """Assert that the service holds what the model does, under the ids that it had."""
        rows = self._rows()
        assert {*rows} == {each.name for each in self.model.held.values()}, when
        for key, thing in self.model.held.items():
            row = rows[thing.name]
            self.known.setdefault(key, (row["id"], row["clientId"]))
            assert self.known[key] == (row["id"], row["clientId"]), (when, thing, row)
            assert row["owner"] == "default", (when, thing, row)
        for thing in self.model.held.values():
            row, value = rows[thing.name], self._value(thing)
            held = {name: row["spec"].get(name, []) for name in value}
            assert (held, row["state"] == "ACTIVE") == (value, thing.active), (when, thing, row)
            assert row["hasSecret"] or value.get("authMethodType") != BASIC, (when, row)
        assert len({*self.known.values()}) == len(self.known), when

    def _rows(self) -> dict[str, dict[str, Any]]:
        return {
            name: row for name, row in self.way.direct.objects().items() if row["kind"] in SORTS
        }

    def _value(self, thing: Thing) -> Mapping[str, Any]:
        """Return what a list of the service answers of the fields of an object."""
        if thing.kind != FLOW:
            return thing.value
        return {
            trigger: [self.known[key][0] for key in keys] for trigger, keys in thing.value.items()
        }

    def _change(self) -> None:
        wanted = dict(self.model.held)
        for _ in range(self.dice.randint(1, 3)):
            kind = self.dice.choice([*SORTS])
            name = self.dice.choice([*SORTS[kind].names])
            thing = next((each for each in wanted.values() if each.name == name), None)
            if thing is None:
                self._put(wanted, kind, name)
            elif kind != PROJECT and self.dice.random() < 0.25:
                del wanted[thing.key]
            else:
                wanted[thing.key] = self._changed(wanted, thing)
        self._apply(without_lost_actions(wanted))

    def _put(self, wanted: dict[str, Thing], kind: str, name: str) -> None:
        """Declare an object; one that is held under its name is that one."""
        held = next((each.key for each in self.model.held.values() if each.name == name), None)
        if held in wanted:  # it gets another name in this very plan
            return
        active = not SORTS[kind].has_state or self.dice.random() < 0.8
        key = held or self.model.new_key(kind, name)
        wanted[key] = Thing(key, kind, name, self._random(wanted, kind), active)

    def _random(self, wanted: Things, kind: str) -> Mapping[str, Any]:
        if kind != FLOW:
            fields = SORTS[kind].fields
            return {name: self.dice.choice([*values]) for name, values in fields.items()}
        actions = [each.key for each in wanted.values() if each.kind == ACTION]
        return {
            trigger: tuple(self.dice.sample(actions, self.dice.randint(0, min(2, len(actions)))))
            for trigger in TRIGGERS
        }

    def _changed(self, wanted: Things, thing: Thing) -> Thing:
        """Return an object with another name, another state, or another value of a field."""
        sort, dice = SORTS[thing.kind], self.dice
        things = (*wanted.values(), *self.model.held.values())
        free = sorted({*sort.names} - {each.name for each in things})
        if sort.is_renamed and free and dice.random() < 0.3:
            return thing._replace(name=dice.choice(free))
        if sort.has_state and dice.random() < 0.3:
            return thing._replace(active=not thing.active)
        if thing.kind == FLOW:
            return thing._replace(value=self._random(wanted, FLOW))
        name = dice.choice([*sort.fields])
        others = [value for value in sort.fields[name] if value != thing.value[name]]
        return thing._replace(value={**thing.value, name: dice.choice(others)})

    def _write(self, wanted: Things) -> None:
        """Write manifests; what gets another name has the id of the object."""
        documents = []
        for key, each in wanted.items():
            named = {wanted[action].name for action in each.actions()}
            assert len(named) == len({*each.actions()})
            metadata: dict[str, Any] = {"organization": "acme", "name": each.name}
            if each.kind in {APPLICATION, ROLE}:
                metadata["project"] = SHOP
            if SORTS[each.kind].has_state:
                metadata["active"] = each.active
            held = self.model.held.get(key)
            if held and held.name != each.name:
                metadata["id"] = self.known[key][0]
            value = each.value
            if each.kind == FLOW:
                value = {
                    trigger: [wanted[action].name for action in actions]
                    for trigger, actions in value.items()
                    if actions
                }
            spec = {**SORTS[each.kind].fixed, **value}
            documents.append({"kind": each.kind, "metadata": metadata, "spec": spec})
        texts = [json.dumps({"apiVersion": "reconciler/v1", **each}) for each in documents]
        self.folder.mkdir(exist_ok=True)
        organization = ORGANIZATION.partition("---\n")[0]
        text = "\n---\n".join([organization, *texts])
        (self.folder / "all.yaml").write_text(text, encoding="utf-8")

    def _apply(self, wanted: Things) -> None:
        self._write(wanted)
        ran = self.way.run("apply", *WRITES)
        if ran.code == 3:
            redo = blocked(ran)
            ran = self.way.run("apply", *WRITES, *(f"--redo={each}" for each in redo))
        assert ran.code == 0, ran.all
        self.model.apply(str(ran.json["run"] or ""), wanted)

    def _edit(self) -> None:
        """Change, rename or remove an object as a person does in a console."""
        thing = self.dice.choice([*self.model.held.values()])
        row = self._rows()[thing.name]
        if thing.kind in REMOVES and self.dice.random() < 0.2:
            call = REMOVES[thing.kind]
            self.way.direct(call.operation, **call.fields(row, "", {}))
            self.model.edit(thing.key, None)
            return
        new = self._changed(self.model.held, thing)._replace(active=thing.active)
        changed = {name for name in new.value if new.value[name] != thing.value[name]}
        if thing.kind == FLOW:
            # A flow that runs nothing in between is another one, which no tree owns.
            for trigger in sorted(changed, key=lambda each: not new.value[each]):
                self._set(trigger, new.value[trigger])
        elif changed or new.name != thing.name:
            call = (RENAMES if new.name != thing.name else UPDATES)[thing.kind]
            spec = {**row["spec"], **{name: new.value[name] for name in changed}}
            self.way.direct(call.operation, **call.fields(row, new.name, spec))
            if new.value.get("authMethodType") == BASIC:  # a console shows the new secret at once
                self.way.direct("RegenerateOIDCClientSecret", **RENAMES[APPLICATION].of(row))
            left = {name: thing.value[name] for name in call.leaves if name in new.value}
            new = new._replace(value={**new.value, **left})
        self.model.edit(thing.key, new)

    def _set(self, trigger: str, keys: Collection[str]) -> None:
        ids = [self.known[key][0] for key in keys]
        owner = self.way.direct.objects()["acme"]["id"]
        fields = {"flowType": "2", "triggerType": TRIGGERS[trigger], "actionIds": ids}
        self.way.direct("SetTriggerActions", owner, **fields)

    def _undo(self) -> None:
        model, run = self.model, self.way.run
        of = self.dice.choice([*model.runs][-6:])
        before, kept = model.held, set[str]()
        while True:
            ran = run("undo", of, *WRITES, *(f"--keep={each}" for each in sorted(kept)))
            found = model.conflicts(of, kept)
            assert refused(ran) == found, (of, model.stacks, ran.all)
            if not found:
                break
            assert ran.code == 4, ran.all
            kept |= found
        assert ran.code == 0, ran.all
        undo = str(ran.json["run"] or "")
        model.undo(of, undo, kept)
        if undo and self.dice.random() < 0.4:
            self.compare("after an undo")
            self._check_it_stays_undone(before)

    def _check_it_stays_undone(self, before: Things) -> None:
        """Plan what was held before an undo, which is blocked, and what is held, which is empty."""
        held = self.model.held
        self._write(held)
        reverted = self.way.run("plan", *PLANS)
        assert reverted.code == 0, reverted.all
        back = [each for key, each in before.items() if held.get(key) != each]
        gone = [each for key, each in held.items() if key not in before]
        self._write(before)
        again = self.way.run("plan", *PLANS)
        assert again.code == 3, (back, gone, again.all)
        # The mark of a flow has names: where an action gets its old name back, it is blocked alone.
        is_renamed = any(
            each.kind == ACTION and each.key in held and held[each.key].name != each.name
            for each in back
        )
        unsure = {each.address for each in back if each.kind == FLOW and is_renamed}
        named = {each.address for each in (*back, *gone)}
        assert {*blocked(again)} | unsure == named, again.all


_REFUSED = re.compile(r"^ +(\w+) ([\w/]+) (?:was changed by|is now the name of|named|was made by) ")


def refused(ran: Ran) -> Collection[str]:
    """Return the addresses of what cannot go back."""
    found = filter(None, map(_REFUSED.match, ran.err.splitlines()))
    return {f"{each[1]}/{each[2]}" for each in found}


def blocked(ran: Ran) -> Collection[str]:
    """Return the addresses that a plan must not bring back."""
    assert "GUARD-UNDONE" in ran.err, ran.all
    return re.findall(r"--redo ([\w/]+)", ran.err)


def test_the_model_has_every_kind_that_an_undo_takes_back() -> None:
    """A law that is never tried on a kind may not hold of it."""
    assert SORTS.keys() == set(Kind) - {Kind.ORGANIZATION}
    assert REMOVES.keys() == {kind for kind, row in CALLS.items() if row.create and row.remove}
    assert RENAMES.keys() == {kind for kind, row in KINDS.items() if row.renamable}


class ByHand(NamedTuple):
    """A call as a person makes it in a console, and which fields of an object it sends.

    Attributes:
        ids: Fields that name the object, and what a list answers as their values.
        leaves: Fields of the spec that it does not know.
    """

    operation: str
    ids: Mapping[str, str]
    sends_name: bool = False
    sends_spec: bool = False
    leaves: Collection[str] = ()

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that name the object of which a list answered a row."""
        return {field: row[key] for field, key in self.ids.items()}

    def fields(self, row: Mapping[str, Any], name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields of the call."""
        sent = {each: value for each, value in spec.items() if each not in self.leaves}
        return {
            **self.of(row),
            **({"name": name} if self.sends_name else {}),
            **(sent if self.sends_spec else {}),
        }


APP_IDS = {"projectId": "projectId", "appId": "id"}
IDP_IDS = {"idpId": "id"}
ROLE_IDS = {"projectId": "projectId", "roleKey": "name"}
UPDATES = {
    ACTION: ByHand("UpdateAction", {"id": "id"}, sends_name=True, sends_spec=True),
    APPLICATION: ByHand("UpdateOIDCAppConfig", APP_IDS, sends_spec=True),
    PROVIDER: ByHand("UpdateOrgIDPJWTConfig", IDP_IDS, sends_spec=True, leaves={"audience"}),
    PROJECT: ByHand("UpdateProject", {"id": "id"}, sends_name=True, sends_spec=True),
    ROLE: ByHand("UpdateProjectRole", ROLE_IDS, sends_spec=True),
}
RENAMES = {
    ACTION: UPDATES[ACTION],
    APPLICATION: ByHand("UpdateApp", APP_IDS, sends_name=True),
    PROVIDER: ByHand("UpdateOrgIDP", IDP_IDS, sends_name=True),
}
REMOVES = {
    ACTION: ByHand("DeleteAction", {"id": "id"}),
    APPLICATION: ByHand("RemoveApp", APP_IDS),
    PROVIDER: ByHand("RemoveOrgIDP", IDP_IDS),
    ROLE: ByHand("RemoveProjectRole", ROLE_IDS),
}
