"""What a service should hold after applies, edits by hand and undoes, as kept on paper."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

ACTION, APPLICATION, PROVIDER = "Action", "OidcApplication", "IdpJwtConfig"
PROJECT, ROLE, FLOW = "Project", "ProjectRole", "ActionFlow"
SHOP, TOKEN = "shop", "COMPLEMENT_TOKEN"
TRIGGERS = {"PRE_USERINFO_CREATION": "4", "PRE_ACCESS_TOKEN_CREATION": "5"}
BASIC, NONE = "OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_NONE"
BY_HAND = "by hand"
AS_FOUND = ""
_FLAG = (False, True)


class Sort(NamedTuple):
    """A kind as the model knows it.

    Attributes:
        names: What its objects may be called; no two kinds share a name.
        fields: The values that each field may have.
        fixed: Fields that always have the same value.
        has_state: Whether an object may be inactive.
        is_renamed: Whether an object may get another name. It then has an id of its own, and one
            that is made again under its name has another id.
    """

    names: Collection[str]
    fields: Mapping[str, Collection[Any]]
    fixed: Mapping[str, Any] = {}
    has_state: bool = False
    is_renamed: bool = False


SORTS = {
    ACTION: Sort(
        "abcd",
        {"timeout": ("1s", "2s", "3s"), "allowedToFail": _FLAG},
        {"script": "function a() {}"},
        has_state=True,
        is_renamed=True,
    ),
    APPLICATION: Sort(
        "mno",
        {
            "authMethodType": (BASIC, NONE),
            "redirectUris": (["https://one.example.com/"], ["https://two.example.com/"]),
            "devMode": _FLAG,
        },
        has_state=True,
        is_renamed=True,
    ),
    PROVIDER: Sort(
        "pq",
        {
            "issuer": ("https://one.example.com", "https://two.example.com"),
            "headerName": ("authorization", "x-token"),
            "audience": ("", "https://login.example.com"),
        },
        {"jwtEndpoint": "https://e.example.com/jwt", "keysEndpoint": "https://e.example.com/keys"},
        has_state=True,
        is_renamed=True,
    ),
    PROJECT: Sort((SHOP,), {"projectRoleAssertion": _FLAG, "projectRoleCheck": _FLAG}),
    ROLE: Sort("rs", {"displayName": ("One", "Two"), "group": ("", "Staff")}),
    FLOW: Sort((TOKEN,), {}),
}


class Thing(NamedTuple):
    """An object; ``key`` is the model's own. The value of a flow has keys of actions."""

    key: str
    kind: str
    name: str
    value: Mapping[str, Any]
    active: bool = True

    @property
    def address(self) -> str:
        inside = "acme/shop" if self.kind in {APPLICATION, ROLE} else "acme"
        return f"{self.kind}/{inside}/{self.name}"

    def actions(self) -> Iterator[str]:
        """Yield the key of each action that a flow runs."""
        if self.kind == FLOW:
            for keys in self.value.values():
                yield from keys


Things = Mapping[str, Thing]


class Run(NamedTuple):
    """What was held before a run, and the keys of what it wrote."""

    before: Things
    wrote: Collection[str]


@dataclass
class Model:
    """What is held, and what each run wrote.

    Attributes:
        stacks: Of each object, the runs whose change still stands, the oldest first. Each has with
            it the runs that could be undone without a conflict while that change is the last one:
            itself, and where a later one was undone, that one and its undo.
        popped: What an undo took from the stack of an object, by its key and the undo.
        undid: The run that each undo undid.
        writers: The runs that wrote an object, and people.
    """

    held: dict[str, Thing] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    stacks: dict[str, list[list[str]]] = field(default_factory=dict)
    popped: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    undid: dict[str, str] = field(default_factory=dict)
    writers: dict[str, set[str]] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def new_key(self, kind: str, name: str) -> str:
        """Return the key of an object that is made."""
        return f"{kind} {next(self.numbers)}" if SORTS[kind].is_renamed else f"{kind} {name}"

    def apply(self, run: str, wanted: Things) -> None:
        """Hold what is wanted and nothing else."""
        self._become(run, wanted)

    def edit(self, key: str, thing: Thing | None) -> None:
        """Change or remove an object by hand; a removed action leaves the flow."""
        others = {each.key: each for each in self.held.values() if each.key != key}
        wanted = without_lost_actions({**others, key: thing} if thing else others)
        if wanted != self.held:
            self._become(BY_HAND, wanted)

    def conflicts(self, of: str, kept: Collection[str]) -> set[str]:
        """Return the addresses of what cannot go back, beside what is kept already.

        It was changed since, its name is another object's, what it names is gone, or it was made by
        the run and something else names it.
        """
        written = self._written(of, kept)
        before = self.runs[of].before
        comes = [before[key] for key in written if key in before]
        back = {*self._back(of, written).values()}
        stays = [each for key, each in self.held.items() if key not in {*written, *back}]
        names = {(each.kind, each.name) for each in stays}
        actions = {each.name for each in (*comes, *stays) if each.kind == ACTION}
        found = {}
        for each in comes:
            lacks = {before[key].name for key in each.actions()} - actions
            if (each.kind, each.name) in names or lacks:
                found[each.key] = each.address
        for each in stays:
            for key in each.actions():
                if key in written and key not in before:
                    found[key] = self.held[key].address
        for key in written:
            if of not in self.stacks[key][-1]:
                found[key] = (self.held.get(key) or before[key]).address
        return {*found.values()}

    def undo(self, of: str, run: str, kept: Collection[str]) -> None:
        """Hold what was held before a run, as far as that run wrote it."""
        written = self._written(of, kept)
        before = self.runs[of].before
        back = self._back(of, written)
        left = {*written, *back.values()}
        wanted = {key: each for key, each in self.held.items() if key not in left}
        for key in sorted(written & before.keys()):  # so that a seed always takes the same steps
            was = before[key]
            new = key if key in self.held else back.get(key) or self.new_key(was.kind, was.name)
            wanted[new] = was._replace(key=new)
        named = {each.name: each.key for each in wanted.values() if each.kind == ACTION}
        for key, each in wanted.items():
            if each.kind == FLOW and key in written:  # it goes back to names, as a manifest would
                wanted[key] = each._replace(
                    value={
                        trigger: tuple(named[before[action].name] for action in actions)
                        for trigger, actions in each.value.items()
                    }
                )
        self._become(run, wanted, of)

    def _written(self, of: str, kept: Collection[str]) -> set[str]:
        """Return the keys of what an undo is about."""
        run = self.runs[of]
        found = set()
        for key in run.wrote:
            known = [each for each in (run.before.get(key), self.held.get(key)) if each]
            if known and not {each.address for each in known} & set(kept):
                found.add(key)
        return found

    def _back(self, of: str, written: Collection[str]) -> Mapping[str, str]:
        """Return what earlier undos of a run made again, by the keys of what the run removed.

        Nobody else wrote to it. The undo of an undo of such an undo is one as well.
        """
        takes_back = {of: True}
        for run, undone in self.undid.items():
            if undone in takes_back:
                takes_back[run] = undone == of or not takes_back[undone]
        own = {run for run, is_so in takes_back.items() if is_so}
        again = {
            (each.kind, each.name): key
            for key, each in self.held.items()
            if key not in self.runs[of].wrote and self.writers[key] <= own
        }
        before = self.runs[of].before
        gone = [before[key] for key in written if key in before and key not in self.held]
        return {
            each.key: again[each.kind, each.name]
            for each in gone
            if (each.kind, each.name) in again
        }

    def _become(self, run: str, wanted: Things, undoes: str = "") -> None:
        before = dict(self.held)
        wrote = {key for key in {*before, *wanted} if before.get(key) != wanted.get(key)}
        assert bool(run) == bool(wrote), (run, wrote)
        self.held = dict(wanted)
        for key in wrote:
            self.writers.setdefault(key, set()).add(run)
            self._stand(key, run, undoes)
        if run and run != BY_HAND:
            self.runs[run] = Run(before, wrote)
            self.undid |= {run: undoes} if undoes else {}

    def _stand(self, key: str, run: str, undoes: str) -> None:
        """Note that a run changed an object, or that the undo of a run did."""
        stack = self.stacks.setdefault(key, [[AS_FOUND]])
        if not undoes:
            stack.append([run])
        elif stack[-1][0] == undoes:
            self.popped[key, run] = stack.pop()
            left = [each for each in stack[-1] if each != self.undid.get(undoes)]
            stack[-1] = [*left, run, undoes]
        else:  # the undo of an undo is a change of its own, which restores what that one took back
            _, *restored = self.popped.get((key, undoes), [AS_FOUND])
            stack.append([run, undoes, *restored])


def without_lost_actions(things: Things) -> Things:
    """Return things whose flow runs only actions that are there; a flow that runs none is gone."""
    found = dict(things)
    for key, each in things.items():
        if each.kind == FLOW:
            value = {
                trigger: tuple(action for action in actions if action in things)
                for trigger, actions in each.value.items()
            }
            found[key] = each._replace(value=value)
            if not any(value.values()):
                del found[key]
    return found
