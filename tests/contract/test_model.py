"""The service against a model of it that fits on a page: whatever is asked, in any order.

The model knows nothing of events, projections or transactions. It is a dictionary of objects, and
a few rules: names are unique ignoring case, an update that changes nothing writes nothing, one
based on what has moved on is refused, and a create with a key is done once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, fold
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.projections.maintenance import rebuild, verify
from tests.effort import cases
from tests.examples import JWT, SCRIPT, Clock
from tests.fuzz.scratch import scratch
from tests.memory_store import open_memory
from tests.unit.service.asking import Asking

NAMES = st.sampled_from(["a", "A", "b", "ß", "SS", "i", "\u0130"])
KEYS = st.sampled_from(["", "", "k", "l"])
CREATES = {
    Kind.ACTION: "CreateAction",
    Kind.IDP_JWT_CONFIG: "AddOrgJWTIDP",
    Kind.OIDC_APPLICATION: "AddOIDCApp",
}
SPECS: Mapping[Kind, list[dict[str, Any]]] = {
    Kind.ACTION: [{"script": SCRIPT}, {"script": SCRIPT, "timeout": "1.0s"}, {"script": "let x"}],
    Kind.IDP_JWT_CONFIG: [JWT, {**JWT, "headerName": ""}],
    Kind.OIDC_APPLICATION: [
        {},
        {"clockSkew": "0.0s"},
        {"authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"},
        {"redirectUris": ["https://b.example/", "https://a.example/"], "devMode": True},
    ],
}
KINDS = st.sampled_from([(kind, spec) for kind, specs in SPECS.items() for spec in specs])


APPLICATION = Kind.OIDC_APPLICATION
ID_FIELDS = {Kind.ACTION: "id", Kind.IDP_JWT_CONFIG: "idpId", APPLICATION: "appId"}
REMOVALS = {
    Kind.ACTION: "DeleteAction",
    Kind.IDP_JWT_CONFIG: "RemoveOrgIDP",
    APPLICATION: "RemoveApp",
}
RENAMES = {
    Kind.ACTION: "UpdateAction",
    Kind.IDP_JWT_CONFIG: "UpdateOrgIDP",
    APPLICATION: "UpdateApp",
}
UPDATES = {
    Kind.ACTION: "UpdateAction",
    Kind.IDP_JWT_CONFIG: "UpdateOrgIDPJWTConfig",
    APPLICATION: "UpdateOIDCAppConfig",
}
STATES = {Kind.ACTION: "Action", Kind.IDP_JWT_CONFIG: "OrgIDP", APPLICATION: "App"}
# Which of name and spec an operation takes.
TAKES_NAME = {"UpdateAction", "UpdateOrgIDP", "UpdateApp"}
TAKES_SPEC = {"UpdateAction", "UpdateOrgIDPJWTConfig", "UpdateOIDCAppConfig"}
UNKNOWN = {"audience"}  # fields of a spec that no operation here takes
LOGIN = "3"
TRIGGERS = {"POST_AUTHENTICATION": "1", "PRE_CREATION": "2"}
BASES = st.sampled_from(["nothing", "this", "an older one"])


@dataclass(frozen=True)
class Thing:
    """One object as the model has it."""

    id: str
    kind: Kind
    organization: str
    parent: str
    name: str
    spec: Mapping[str, Any]
    sequence: int
    active: bool = True


NOTHING = Thing("", Kind.ACTION, "", "", "x", SPECS[Kind.ACTION][0], 1)


class Model(RuleBasedStateMachine):
    """Asks, and says beforehand what must be answered."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        clock = Clock()
        self.service = self.stack.enter_context(closing(self.opened(clock)))
        self.ask = Asking(self.service, clock)
        self.things: dict[str, Thing] = {}
        self.answers: dict[str, tuple[Any, ...]] = {}
        self.secrets: set[str] = set()  # applications that have the secret they were made with
        self.newest = 0
        self.flow_sequence = 0
        self.ask.prepare()

    def opened(self, clock: Clock) -> IdentityService:
        """Return a new service."""
        raise NotImplementedError

    @initialize(target=ids)
    def begin(self) -> str:
        """Have an organization with a project, and the id of nothing."""
        return "404"

    def expect(self, code: int, operation: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Call; the code of its refusal, or 0, must be this one."""
        (answer,) = self.service.call_many([self.ask.request(operation, fields)])
        if isinstance(answer, Refusal):
            assert answer.code == code, (operation, fields, answer.message)
            return {}
        assert code == 0, (operation, fields)
        return answer

    def is_taken(self, kind: Kind, parent: str, name: str, own: str = "") -> bool:
        """Say whether another object of this kind has the name."""
        return any(
            (thing.kind, thing.parent, fold(thing.name)) == (kind, parent, fold(name))
            for thing in self.things.values()
            if thing.id != own
        )

    def learn(self, thing: Thing, answer: Mapping[str, Any]) -> None:
        """Take over what was written: it is newer than all before."""
        sequence = int(answer["details"]["sequence"])
        assert sequence > self.newest
        self.newest = sequence
        assert answer["details"]["resourceOwner"] == thing.organization
        self.things[thing.id] = replace(thing, sequence=sequence)

    @rule(target=ids, what=KINDS, name=NAMES, key=KEYS)
    def create(self, what: tuple[Kind, dict[str, Any]], name: str, key: str) -> str:
        """Make an object, perhaps with a key that was used before."""
        (kind, spec), operation = what, CREATES[what[0]]
        owner = self.ask.organization
        parent = self.ask.project if kind is Kind.OIDC_APPLICATION else owner
        beside = {"projectId": parent} if kind is Kind.OIDC_APPLICATION else {"organization": owner}
        fields, whole = {"name": name, **spec, **beside}, normal_form(kind, spec)
        if key in self.answers:
            *asked, answered = self.answers[key]
            # A request that says a default in its own way is the same one.
            again = asked == [name, kind, whole] and self.holds_still(name, answered)
            answer = self.expect(0 if again else 9, operation, {**fields, "idempotency_key": key})
            assert not again or answer == answered
            return "404"
        taken = self.is_taken(kind, parent, name)
        said = {**fields, "idempotency_key": key} if key else fields
        answer = self.expect(6 if taken else 0, operation, said)
        if taken:
            return "404"
        if key:
            self.answers[key] = name, kind, whole, answer
        made: str = answer.get("appId") or answer.get("idpId") or answer["id"]
        assert made not in self.things
        has_secret = kind is APPLICATION and has_client_secret(whole)
        assert ("clientSecret" in answer) == has_secret
        if has_secret:
            self.secrets.add(made)
        self.learn(Thing(made, kind, owner, parent, name, whole, 0), answer)
        return made

    def holds_still(self, name: str, answered: Mapping[str, Any]) -> bool:
        """Say whether what a create made is there, under its name and with its secret."""
        made = answered.get("appId") or answered.get("idpId") or answered["id"]
        thing = self.things.get(made)
        has_secret = "clientSecret" not in answered or made in self.secrets
        return thing is not None and thing.name == name and has_secret

    @rule(object_id=ids, name=NAMES, based=BASES)
    def rename(self, object_id: str, name: str, based: str) -> None:
        """Give an object another name."""
        thing = self.things.get(object_id, NOTHING)
        code = self.code_of(thing, based)
        if code == 0 and self.is_taken(thing.kind, thing.parent, name, thing.id):
            code = 6
        self.change(replace(thing, id=object_id, name=name), RENAMES[thing.kind], code, based)

    @rule(object_id=ids, number=st.integers(0, 3), based=BASES)
    def configure(self, object_id: str, number: int, based: str) -> None:
        """Update every field of an object."""
        thing = self.things.get(object_id, NOTHING)
        specs = SPECS[thing.kind]
        spec = normal_form(thing.kind, specs[number % len(specs)])
        changed = replace(thing, id=object_id, spec=spec)
        self.change(changed, UPDATES[thing.kind], self.code_of(thing, based), based)

    @rule(object_id=ids, based=BASES, active=st.booleans())
    def switch(self, object_id: str, based: str, *, active: bool) -> None:
        """Switch an object on or off; one that is so already is refused."""
        thing = self.things.get(object_id, NOTHING)
        operation = f"{'Re' if active else 'De'}activate{STATES[thing.kind]}"
        code = self.code_of(thing, based) or (9 if thing.active == active else 0)
        said = self.said(replace(thing, id=object_id), operation, based)
        answer = self.expect(code, operation, said)
        if code == 0:
            self.learn(replace(thing, active=active), answer)

    @rule(object_id=ids, based=BASES)
    def remove(self, object_id: str, based: str) -> None:
        """Remove an object; its name is free again."""
        thing = self.things.get(object_id, NOTHING)
        code = self.code_of(thing, based)
        operation = REMOVALS[thing.kind]
        self.expect(code, operation, self.said(replace(thing, id=object_id), operation, based))
        if code == 0:
            del self.things[object_id]
            self.drop(object_id)

    @rule(
        trigger=st.sampled_from(sorted(TRIGGERS)),
        actions=st.lists(ids, max_size=3),
        based=BASES,
    )
    def set_trigger(self, trigger: str, actions: list[str], based: str) -> None:
        """Set the actions of a trigger: those that are there, each once."""
        flow, triggers = self.flow(), self.flow().spec
        things = {each: self.things[each] for each in actions if each in self.things}
        known = [each for each, thing in things.items() if thing.kind is Kind.ACTION]
        code = 9 if based == "an older one" or len(known) < len(actions) else 0
        fields = {"flowType": LOGIN, "triggerType": TRIGGERS[trigger], "actionIds": actions}
        answer = self.expect(code, "SetTriggerActions", {**fields, **self.beside_flow(based)})
        if code == 0:
            self.learn_flow(flow, {**triggers, trigger: actions}, answer["details"]["sequence"])

    @rule(based=BASES)
    def clear_flow(self, based: str) -> None:
        """Empty the flow, which may be empty."""
        code = 9 if based == "an older one" else 0
        answer = self.expect(code, "ClearFlow", {"type": LOGIN, **self.beside_flow(based)})
        if code == 0:
            self.learn_flow(self.flow(), {}, answer["details"]["sequence"])

    def flow(self) -> Thing:
        """Return the flow; without actions it is not among the things."""
        owner = self.ask.organization
        name, flow = f"{owner}-{LOGIN}", "INTERNAL_AUTHENTICATION"
        return self.things.get(name) or Thing(
            name, Kind.ACTION_FLOW, owner, owner, flow, {}, self.flow_sequence
        )

    def beside_flow(self, based: str) -> dict[str, Any]:
        sequence = self.flow().sequence
        bases = {"nothing": None, "this": sequence, "an older one": sequence - 1}
        return {"organization": self.ask.organization, "expected_sequence": bases[based]}

    def learn_flow(self, flow: Thing, triggers: Mapping[str, Any], sequence: str) -> None:
        """Take over the flow after a write; one that changed nothing has its old sequence."""
        spec = {name: actions for name, actions in triggers.items() if actions}
        if spec == flow.spec:
            assert int(sequence) == flow.sequence
            return
        assert int(sequence) > self.newest
        self.newest = self.flow_sequence = int(sequence)
        self.things.pop(flow.id, None)
        if spec:
            self.things[flow.id] = replace(flow, spec=spec, sequence=self.newest)

    def drop(self, action: str) -> None:
        """Take a removed action out of the flow."""
        flow = self.flow()
        left = {name: [each for each in ids if each != action] for name, ids in flow.spec.items()}
        told = self.ask("GetFlow", organization=self.ask.organization, type=LOGIN)["flow"]
        self.learn_flow(flow, left, told["details"]["sequence"])

    def code_of(self, thing: Thing, based: str) -> int:
        """Return what is answered for the object itself, whatever is then asked of it."""
        if not thing.id:
            return 5
        return 9 if based == "an older one" else 0

    def change(self, wanted: Thing, operation: str, code: int, based: str) -> None:
        """Update an object to what is wanted; what is so already is a success, and no event."""
        before = self.things.get(wanted.id)
        answer = self.expect(code, operation, self.said(wanted, operation, based))
        if code:
            return
        if before == wanted:
            assert int(answer["details"]["sequence"]) == wanted.sequence
        else:
            self.learn(wanted, answer)
            if wanted.kind is APPLICATION and not has_client_secret(wanted.spec):
                self.secrets.discard(wanted.id)

    def said(self, thing: Thing, operation: str, based: str) -> dict[str, Any]:
        """Return the fields of a call about an object."""
        target = {name: self.ask.project for name in ("projectId",) if thing.kind is APPLICATION}
        sequence = {"nothing": None, "this": thing.sequence, "an older one": thing.sequence - 1}
        return {
            **({"name": thing.name} if operation in TAKES_NAME else {}),
            **(
                {n: each for n, each in thing.spec.items() if n not in UNKNOWN}
                if operation in TAKES_SPEC
                else {}
            ),
            **target,
            ID_FIELDS[thing.kind]: thing.id,
            "expected_sequence": sequence[based],
        }

    @invariant()
    def what_is_listed_is_what_the_model_has(self) -> None:
        """Name, fields, owner and number of everything, by its id."""
        listed = self.ask("ListObjects", organizationId=self.ask.organization)["objects"]
        held = {
            each["id"]: (
                each["kind"],
                each["name"],
                each["spec"],
                each["details"]["sequence"],
                each["state"],
            )
            for each in listed
            if each["id"] not in {self.ask.organization, self.ask.project}
        }
        assert held == {
            thing.id: (
                thing.kind.value,
                thing.name,
                thing.spec,
                str(thing.sequence),
                "ACTIVE" if thing.active else "INACTIVE",
            )
            for thing in self.things.values()
        }

    def teardown(self) -> None:
        """In the end the store is sound, and made anew from the log it is the same."""
        try:
            assert verify(self.service.store) == []
            with self.service.store.snapshot() as view:
                held = view.all_objects()
            rebuild(self.service.store)
            with self.service.store.snapshot() as view:
                assert view.all_objects() == held
        finally:
            self.stack.close()


class MemoryModel(Model):
    """The service over a store in memory."""

    def opened(self, clock: Clock) -> IdentityService:
        return open_memory(now=clock)


class SqliteModel(Model):
    """The service over a file, in memory where the system can do that."""

    def opened(self, clock: Clock) -> IdentityService:
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(dir=scratch()))
        return open_sqlite(Path(folder, "identity.db"), create=True, now=clock)


LIMITS = settings(
    max_examples=cases(60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestServiceInMemory = MemoryModel.TestCase
TestServiceInMemory.settings = LIMITS
TestServiceInSqlite = SqliteModel.TestCase
TestServiceInSqlite.settings = LIMITS
