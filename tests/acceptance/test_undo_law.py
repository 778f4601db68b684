"""Random applies, edits by hand and undoes leave what a model remembers."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.conftest import ORGANIZATION, Run, write
from tests.acceptance.test_moments import KEY
from tests.direct import Direct

STEPS = int(os.environ.get("UNDO_LAW_STEPS", "25"))
SEED = int(os.environ.get("UNDO_LAW_SEED", "7"))
NAMES = "abcde"
ALLOWED = ("--auto-approve", "--prune", "--allow-deletes=99", "--allow-updates=99", "--format=json")
BY_HAND = ""


class Thing(NamedTuple):
    """An action as the model knows it; ``id`` is the model's own."""

    id: int
    name: str
    value: tuple[str, bool]


@dataclass
class Model:
    """What is held, and what each run wrote, as a person would keep it on paper."""

    held: dict[int, Thing] = field(default_factory=dict)
    last: dict[int, str] = field(default_factory=dict)
    runs: dict[str, dict[int, Thing | None]] = field(default_factory=dict)
    ids: count[int] = field(default_factory=count)

    def named(self) -> Mapping[str, Thing]:
        return {each.name: each for each in self.held.values()}

    def apply(self, run: str, wanted: Mapping[str, tuple[str, bool]]) -> None:
        """Hold what is wanted and nothing else."""
        wrote: dict[int, Thing | None] = {}
        known = self.named()
        for name, thing in known.items():
            if wanted.get(name) != thing.value:
                wrote[thing.id] = thing
                self._put(thing.id, name, wanted.get(name))
        for name in wanted.keys() - known.keys():
            wrote[new := next(self.ids)] = None
            self._put(new, name, wanted[name])
        self._wrote(run, wrote)

    def edit(self, name: str, value: tuple[str, bool]) -> None:
        thing = self.named()[name]
        self._put(thing.id, name, value)
        self.last[thing.id] = BY_HAND

    def conflicts(self, of: str) -> set[str]:
        """Return the names that another changed since a run, or that another object has now."""
        found = set()
        for key, was in self.runs[of].items():
            thing = was or self.held.get(key)
            if thing is None:  # the run made it, and it is gone
                continue
            twin = self.named().get(thing.name)
            is_taken = was is not None and twin is not None and twin.id != key
            if self.last[key] != of or is_taken:
                found.add(thing.name)
        return found

    def undo(self, of: str, run: str, kept: set[str]) -> None:
        wrote: dict[int, Thing | None] = {}
        for key, was in self.runs[of].items():
            thing = was or self.held.get(key)
            if thing is None or thing.name in kept or self.held.get(key) == was:
                continue
            if key in self.held:
                wrote[key] = self.held[key]
                self._put(key, thing.name, was.value if was else None)
            else:
                wrote[new := next(self.ids)] = None
                self._put(new, thing.name, thing.value)
        self._wrote(run, wrote)

    def _put(self, key: int, name: str, value: tuple[str, bool] | None) -> None:
        if value is None:
            del self.held[key]
        else:
            self.held[key] = Thing(key, name, value)

    def _wrote(self, run: str, wrote: dict[int, Thing | None]) -> None:
        assert bool(run) == bool(wrote), (run, wrote)
        if run:
            self.runs[run] = wrote
            self.last.update(dict.fromkeys(wrote, run))


def test_the_service_holds_what_a_model_remembers(run: Run, tree: Path) -> None:
    """Every refusal is one of the model's, and every state is the model's."""
    here, rng, model = partial(run, **KEY), random.Random(SEED), Model()
    write(tree / "organization.yaml", ORGANIZATION)
    direct = Direct(tree.parent / ".reconciler" / "identity.db")
    assert here("apply", "--auto-approve").code == 0
    refused = 0
    for step in range(STEPS):
        kind = rng.choice(("apply", "apply", "edit", "undo", "undo", "undo"))
        if kind == "edit" and model.held:
            name = rng.choice(sorted(model.named()))
            seconds, active = model.named()[name].value
            new = rng.choice([each for each in ("1s", "2s", "3s") if each != seconds])
            direct.change(name, timeout=new)
            model.edit(name, (new, active))
        elif kind == "undo" and model.runs:
            refused += _undo(here, model, rng)
        else:
            _apply(here, tree, model, rng)
        assert _held(direct) == {n: each.value for n, each in model.named().items()}, (SEED, step)
    assert refused or STEPS < 25


def _apply(run: Run, tree: Path, model: Model, rng: random.Random) -> None:
    wanted = {n: each.value for n, each in model.named().items()}
    for name in rng.sample(NAMES, rng.randint(1, 3)):
        wanted[name] = rng.choice(("1s", "2s", "3s")), rng.random() < 0.7
        if rng.random() < 0.3:
            del wanted[name]
    documents = [_action(name, value) for name, value in wanted.items()]
    write(tree / "actions.yaml", "\n---\n".join(documents))
    ran = run("apply", *ALLOWED)
    if ran.code == 3:
        assert "GUARD-UNDONE" in ran.err, ran.all
        named = re.findall(r"--redo (Action/acme/\w)", ran.err)
        ran = run("apply", *ALLOWED, *(f"--redo={each}" for each in named))
    assert ran.code == 0, ran.all
    model.apply(str(ran.json["run"] or ""), wanted)


def _undo(run: Run, model: Model, rng: random.Random) -> bool:
    of = rng.choice([*model.runs][-6:])
    conflicts = model.conflicts(of)
    ran = run("undo", of, *ALLOWED)
    if conflicts:
        assert ran.code == 4, (conflicts, ran.all)
        ran = run("undo", of, *ALLOWED, *(f"--keep=Action/acme/{name}" for name in conflicts))
    assert ran.code == 0, ran.all
    model.undo(of, str(ran.json["run"] or ""), conflicts)
    return bool(conflicts)


def _action(name: str, value: tuple[str, bool]) -> str:
    timeout, active = value
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "Action",
            "metadata": {"organization": "acme", "name": name, "active": active},
            "spec": {"script": f"function {name}(ctx, api) {{}}", "timeout": timeout},
        }
    )


def _held(direct: Direct) -> Mapping[str, tuple[str, bool]]:
    return {
        name: (each["spec"]["timeout"], each["state"] == "ACTIVE")
        for name, each in direct.objects().items()
        if name in NAMES
    }
