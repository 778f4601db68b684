"""One server's worth of writers: a process of its own, with its own service over one database.

Run as a script, which stops itself once it could begin; the story of what each writer was answered
goes to stdout.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request

ADMIN = Caller("admin", Role.ADMIN)
WRITERS = 16
ROUNDS = 6
CONTENDED = ("greet", "Greet", "bill", "ship", "ÉTÉ", "été")
SHARED = 12
Story = dict[str, Any]


def call(operation: str, organization: str = "", key: str = "", **fields: Any) -> Request:
    """Return a call by somebody who may do everything."""
    return Request(
        operation,
        {name.rstrip("_"): value for name, value in fields.items()},
        caller=ADMIN,
        organization=organization,
        idempotency_key=key,
    )


def tried(service: IdentityService, request: Request) -> tuple[int, dict[str, Any]]:
    """Return the code of a refusal or 0, and what was answered."""
    try:
        return 0, service.call(request)
    except Refusal as refusal:
        return int(refusal.code), {}


def create(name: str, organization: str, key: str = "") -> Request:
    """Return a call that makes an action."""
    return call("CreateAction", organization, key, name=name, script="function greet() {}")


def story_of(service: IdentityService, organizations: list[str], writer: str) -> Iterator[Story]:
    """Create, update and delete what others want, too, and tell what was answered."""
    chance = random.Random(writer)
    for turn in range(ROUNDS):
        organization = chance.choice(organizations)
        name = chance.choice(CONTENDED)
        code, made = tried(service, create(name, organization, f"{writer}-{turn}"))
        yield {"what": "create", "code": code, "id": made.get("id"), "name": name}
        if code:
            continue
        target = {"id": made["id"], "name": name, "script": f"function greet() {{ /*{turn}*/ }}"}
        code, _ = tried(service, call("UpdateAction", organization, **target))
        yield {"what": "update", "code": code, "id": made["id"]}
        if chance.random() < 0.7:
            code, _ = tried(service, call("DeleteAction", organization, id=made["id"]))
            yield {"what": "delete", "code": code, "id": made["id"]}


def shared_story(service: IdentityService, projects: list[str]) -> Iterator[Story]:
    """Make what every other process makes under the same keys."""
    for number in range(SHARED):
        project = projects[number % len(projects)]
        request = call("AddOIDCApp", "", f"shared-{number}", projectId=project, name=f"s{number}")
        code, answer = tried(service, request)
        yield {"what": "shared", "code": code, "key": number, "answer": answer}


def main(address: str, key_file: str, organizations: str, projects: str) -> None:
    """Write with many threads at once, once somebody lets the process go on."""
    with closing(open_postgres(address, seal_key_file=Path(key_file), create=True)) as service:
        os.kill(os.getpid(), signal.SIGSTOP)
        with ThreadPoolExecutor(WRITERS) as pool:
            owners = json.loads(organizations)
            stories = [story_of(service, owners, uuid.uuid4().hex) for _ in range(WRITERS - 1)]
            stories.append(shared_story(service, json.loads(projects)))
            told: list[Story] = list(chain.from_iterable(pool.map(list, stories)))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
