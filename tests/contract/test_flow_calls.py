"""The calls of flows: one suite over our service, in process and over HTTP, and two ZITADELs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.embedded import InProcessWire
from reconciler.resources.call import Call
from reconciler.service_client.wire import Answer, Reply, Wire, WireRefusal
from tests.examples import SCRIPT
from tests.http_clients import PATIENT, http_wire
from tests.listening import listening
from tests.memory_store import open_memory
from tests.running import running_server
from tests.zitadel.stand_in import IAM, OLDER, FakeZitadel

SERVICES = ("ours in process", "ours over HTTP", "ZITADEL 3.x", "ZITADEL 4.x")
EXTERNAL, TOKEN, LOGIN, SAML = "1", "2", "3", "4"
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Party:
    """An organization of one test on a service, and the calls about it."""

    wire: Wire
    organization: str
    is_ours: bool

    def reply(self, operation: str, **fields: Any) -> Reply:
        (reply,) = self.wire.send([Call(operation, fields, organization=self.organization)])
        return reply

    def __call__(self, operation: str, **fields: Any) -> Mapping[str, Any]:
        reply = self.reply(operation, **fields)
        assert isinstance(reply, Answer), reply
        return reply.fields

    def code(self, operation: str, **fields: Any) -> int:
        """Return the code of a refusal; 0 where there is none."""
        reply = self.reply(operation, **fields)
        return reply.code if isinstance(reply, WireRefusal) else 0

    def action(self, name: str) -> str:
        """Make an action; return its id."""
        made: str = self("CreateAction", name=name, script=SCRIPT)["id"]
        return made

    def set(self, flow: str, trigger: str, *ids: str) -> int:
        """Set the actions of a trigger; return the sequence after it."""
        answer = self("SetTriggerActions", flowType=flow, triggerType=trigger, actionIds=[*ids])
        assert answer["details"]["resourceOwner"] == self.organization
        return int(answer["details"]["sequence"])

    def triggers(self, flow: str) -> Mapping[str, Sequence[str]]:
        """Return the names of the actions at each trigger of a flow."""
        found = self("GetFlow", type=flow)["flow"]
        assert (found["type"]["id"], found["state"]) == (flow, "FLOW_STATE_ACTIVE")
        return {
            each["triggerType"]["id"]: [action["name"] for action in each["actions"]]
            for each in found.get("triggerActions", [])
        }

    def another(self) -> Party:
        """Return another organization of the same service."""
        name = f"acme-{next(NUMBERS)}"
        (made,) = self.wire.send([Call("AddOrg", {"name": name})])
        assert isinstance(made, Answer), made
        return Party(self.wire, made.fields["id"], self.is_ours)


@contextmanager
def a_service(name: str, folder: Path) -> Iterator[Party]:
    """Run one of the services."""
    with ExitStack() as stack:
        is_ours = name.startswith("ours")
        if name == "ours in process":
            wire: Wire = InProcessWire(stack.enter_context(closing(open_memory())))
        elif is_ours:
            server = stack.enter_context(running_server(folder))
            wire = stack.enter_context(http_wire(server.address, server.token("admin"), PATIENT))
        else:
            fake = FakeZitadel(version=OLDER) if "3" in name else FakeZitadel()
            address = stack.enter_context(listening(fake.app()))
            wire = stack.enter_context(http_wire(address, IAM, PATIENT))
        yield Party(wire, "", is_ours)


@pytest.fixture(scope="module", params=SERVICES)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Party]:
    """Run one service."""
    with a_service(request.param, tmp_path_factory.mktemp("server")) as party:
        yield party


@pytest.fixture
def ask(service: Party) -> Party:
    """Make an organization of this test alone."""
    return service.another()


def test_a_trigger_has_the_actions_that_were_set_last_in_their_order(ask: Party) -> None:
    """Each call is about one trigger, and leaves the others; every change has a sequence."""
    first, second = ask.action("first"), ask.action("second")

    sequences = [
        ask.set(LOGIN, "1", first),
        ask.set(LOGIN, "3", first),
        ask.set(LOGIN, "1", second, first),
        ask.set(SAML, "6", second),
        ask.set(LOGIN, "3"),
    ]

    assert ask.triggers(LOGIN) == {"1": ["second", "first"]}
    assert ask.triggers(SAML) == {"6": ["second"]}
    assert (ask.triggers(EXTERNAL), ask.triggers(TOKEN)) == ({}, {})
    assert sequences == sorted(set(sequences))


def test_an_action_in_a_flow_is_answered_whole(ask: Party) -> None:
    action = ask.action("greet")
    ask.set(TOKEN, "4", action)

    ((found,),) = [each["actions"] for each in ask("GetFlow", type=TOKEN)["flow"]["triggerActions"]]

    assert found == ask("GetAction", id=action)["action"]
    assert (found["id"], found["script"]) == (action, SCRIPT)


def test_a_flow_that_is_cleared_is_empty_and_can_be_filled_again(ask: Party) -> None:
    action = ask.action("greet")
    ask.set(TOKEN, "4", action)
    ask.set(TOKEN, "5", action)
    ask.set(LOGIN, "1", action)

    cleared = ask("ClearFlow", type=TOKEN)["details"]

    assert cleared["resourceOwner"] == ask.organization
    assert (ask.triggers(TOKEN), ask.triggers(LOGIN)) == ({}, {"1": ["greet"]})
    assert ask.set(TOKEN, "5", action) > int(cleared["sequence"])
    assert ask.triggers(TOKEN) == {"5": ["greet"]}


def test_an_action_that_is_deleted_leaves_every_trigger(ask: Party) -> None:
    """One of its name that is made afterwards is another one."""
    first, second = ask.action("first"), ask.action("second")
    ask.set(LOGIN, "1", first, second)
    ask.set(LOGIN, "2", first)
    ask.set(EXTERNAL, "3", first)

    ask("DeleteAction", id=first)
    ask.action("first")

    assert ask.triggers(LOGIN) == {"1": ["second"]}
    assert ask.triggers(EXTERNAL) == {}


def test_what_no_flow_takes_is_refused_and_changes_nothing(ask: Party) -> None:
    """Unknown actions, those of others, one twice; and triggers that the flow does not have."""
    mine, foreign = ask.action("mine"), ask.another().action("foreign")
    ask.set(LOGIN, "1", mine)

    def code(flow: str, trigger: str, *ids: str) -> int:
        fields = {"flowType": flow, "triggerType": trigger, "actionIds": [*ids]}
        return ask.code("SetTriggerActions", **fields)

    assert [code(LOGIN, "2", *ids) for ids in (["404"], [foreign], [mine, mine])] == [9, 9, 9]
    assert [code(LOGIN, "1", mine, "404"), code(LOGIN, "1", mine, mine)] == [9, 9]
    assert [code(flow, "4", mine) for flow in (EXTERNAL, LOGIN, SAML)] == [3, 3, 3]
    assert [code(TOKEN, trigger, mine) for trigger in ("1", "6", "7", "0", "x")] == [3] * 5
    assert [code(flow, "1", mine) for flow in ("0", "5", "x")] == [3, 3, 3]
    assert ask.code("ClearFlow", type="5") == 3
    assert ask.triggers(LOGIN) == {"1": ["mine"]}
    assert ask.triggers(TOKEN) == {}


def test_flows_of_organizations_are_apart(ask: Party) -> None:
    other = ask.another()
    ask.set(LOGIN, "1", ask.action("mine"))
    other.set(LOGIN, "1", other.action("theirs"))

    ask("ClearFlow", type=LOGIN)

    assert (ask.triggers(LOGIN), other.triggers(LOGIN)) == ({}, {"1": ["theirs"]})


def test_words_of_old_clients_are_numbers(ask: Party) -> None:
    action = ask.action("greet")

    ask.set("FLOW_TYPE_EXTERNAL_AUTHENTICATION", "TRIGGER_TYPE_POST_CREATION", action)

    assert ask.triggers(EXTERNAL) == {"3": ["greet"]}


def test_what_changes_nothing_is_told_by_a_zitadel_and_done_by_ours(ask: Party) -> None:
    """Ours answers it as every update that changes nothing: with success and no event."""
    action = ask.action("greet")
    before = ask.set(LOGIN, "1", action)
    nothing = [
        ask.code("SetTriggerActions", flowType=LOGIN, triggerType="1", actionIds=[action]),
        ask.code("SetTriggerActions", flowType=LOGIN, triggerType="2", actionIds=[]),
        ask.code("ClearFlow", type=TOKEN),
    ]

    assert nothing == ([0, 0, 0] if ask.is_ours else [9, 9, 9])
    assert ask("GetFlow", type=LOGIN)["flow"]["details"]["sequence"] == str(before)
