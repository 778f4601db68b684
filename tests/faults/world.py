"""A tree of manifests, a service of its own, and a place for secrets, for faults to come over."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import ORGANIZATION, an_action, an_application, an_idp, write
from tests.fault_proxy import FAILURES, FAULTS, FaultProxy, fault_proxy
from tests.faults.catalogue import must
from tests.faults.invariants import check_store
from tests.program import Ran, Run, program, started
from tests.running import Server, running_server
from tests.sinks import SINKS, Sink, counted, hashes
from tests.warm import Copy

EVERYTHING = ("--prune", "--allow-updates", "1000", "--allow-deletes", "1000")
APPLY = ("apply", "--auto-approve", *EVERYTHING)
PLAN = ("plan", "--detailed-exitcode", *EVERYTHING)
ENDS_WITHIN = 100.0
ENDS_SOON = 30.0
NAMES = ("web", "api", "spa", "admin", "jobs", "mobile", "docs", "shop")
METHODS = ("BASIC", "POST", "NONE")


class Tree:
    """Manifests that are edited at random, always valid.

    Attributes:
        declared: What is declared beside the organization and its project, by file name.
    """

    def __init__(self, dice: random.Random, folder: Path) -> None:
        self._dice = dice
        self._folder = folder
        self.declared: dict[str, str] = {}
        write(folder / "acme.yaml", ORGANIZATION)

    def declare(self, *kinds: str) -> None:
        """Declare one more of each kind: ``secret``, ``public``, ``action`` or ``idp``."""
        for kind in kinds:
            self._put(kind, f"{kind}{len(self.declared)}")

    def edit(self, count: int) -> None:
        """Add, change or drop so many resources."""
        for _ in range(count):
            kind = self._dice.choice(("secret", "secret", "public", "action", "idp"))
            name = self._dice.choice(NAMES)
            if self._dice.random() < 0.2:
                self._drop(f"{_family(kind)}-{name}.yaml")
            else:
                self._put(kind, name)

    def drop(self, count: int) -> None:
        """Declare so many resources no longer."""
        for file in self._dice.sample(sorted(self.declared), min(count, len(self.declared))):
            self._drop(file)

    def give_secrets(self) -> None:
        """Let every public application sign in with a secret."""
        for file, text in list(self.declared.items()):
            if "AUTH_METHOD_TYPE_NONE" in text:
                self._put("secret", json.loads(text)["metadata"]["name"], file)

    def moved(self, folder: Path) -> Tree:
        """Return the same manifests in another folder."""
        other = Tree(self._dice, folder)
        other.declared = dict(self.declared)
        return other

    def _put(self, kind: str, name: str, file: str = "") -> None:
        file = file or f"{_family(kind)}-{name}.yaml"
        self.declared[file] = _manifest(kind, name, self._dice)
        write(self._folder / file, self.declared[file])

    def _drop(self, file: str) -> None:
        if self.declared.pop(file, None):
            (self._folder / file).unlink()


def _family(kind: str) -> str:
    return "app" if kind in {"secret", "public"} else kind


def _manifest(kind: str, name: str, dice: random.Random) -> str:
    number = dice.randrange(1000)
    if kind == "action":
        return an_action(name, timeout=f"{1 + number % 20}s")
    if kind == "idp":
        return an_idp(name, issuer=f"https://{number}.example.com")
    method = "NONE" if kind == "public" else dice.choice(METHODS[:2])
    return an_application(
        name,
        redirectUris=[f"https://{name}.example.com/{number}"],
        authMethodType=f"OIDC_AUTH_METHOD_TYPE_{method}",
        **({"appType": "OIDC_APP_TYPE_USER_AGENT"} if kind == "public" else {}),
    )


@dataclass
class World:
    """Where the program runs, what it reads, and what it writes to.

    Attributes:
        here: The environment that names the service and the sink.
        server: The server that is the service, where it is not a store of the program's own.
        proxy: The way to the server that the program takes.
    """

    dice: random.Random
    folder: Path
    tree: Tree
    store: Path
    sink: Sink
    here: dict[str, str]
    server: Server | None = None
    proxy: FaultProxy | None = None
    _run: Run = field(init=False)

    def __post_init__(self) -> None:
        self._run = program(self.folder)

    def run(self, *arguments: str, **more: str) -> Ran:
        """Run the program to its end."""
        return self._run(*arguments, **{**self.here, **more})

    @contextmanager
    def started(self, *arguments: str, **more: str) -> Iterator[Copy]:
        """Start the program; it is ended with the block."""
        with started(self.folder, *arguments, **{**self.here, **more}) as process:
            try:
                yield process
            finally:
                end(process)

    def killed(self, seconds: float) -> bool:
        """Apply, kill the program after so long, and say whether it was still at it."""
        with self.started(*APPLY) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            end(process)
            return process.returncode == -signal.SIGKILL

    def settle(self) -> Ran:
        """Apply undisturbed, and check all that must hold then; return what apply said."""
        if self.proxy:
            self.proxy.choose = undisturbed
        done = self.run(*APPLY)
        must(done.code == 0, "I7", done.all)
        again = self.run(*PLAN)
        must(again.code == 0, "I7", f"the plan is not empty: {again.all}")
        self.check()
        return done

    def check(self) -> None:
        """Check the store, and that every secret that counts was delivered (I2 to I5, I9)."""
        check_store(self.store)
        kept = hashes(self.sink.read())
        lost = {client for client, digest in counted(self.store).items()
                if kept.get(client) != digest}  # fmt: skip
        must(not lost, "I3", f"the sink has not the secrets of {lost}")

    def events(self) -> int:
        """Return how many events the store has."""
        told = self._run("store", "verify", "--format", "json",
                         RECONCILER_SERVICE=f"sqlite:{self.store}")  # fmt: skip
        must(told.code == 0, "I5", told.all)
        return int(told.json["events"])


def end(process: Copy) -> tuple[str, str]:
    """End a process, whatever it does, and return what it said."""
    process.kill()
    return process.communicate(timeout=ENDS_WITHIN)


def wait_a_while(process: Copy, dice: random.Random) -> None:
    """Wait until the program has opened what it writes to, and some moment longer."""
    deadline = time.monotonic() + ENDS_SOON
    while process.poll() is None and time.monotonic() < deadline:
        if _has_begun(process.pid):
            break
        time.sleep(0.01)
    time.sleep(dice.uniform(0, 0.6))


def _has_begun(process: int) -> bool:
    with suppress(OSError):
        opened = [str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir()]
        return any(name.startswith("socket:") or "identity.db" in name for name in opened)
    return False


def undisturbed(first: bytes) -> str:
    """Choose no fault."""
    return ""


def is_write(first: bytes) -> bool:
    """Return whether the first line of a request is that of a write to objects."""
    if b"/reconciler/v1/batch" in first:
        return True
    return first[:3] != b"GET" and b"/management/" in first and b"_search" not in first


def disturbed(dice: random.Random, share: float, failures: float = 0.02) -> Any:
    """Return a choice that harms a share of all requests, and lets a few fail for good."""

    def choose(first: bytes) -> str:
        if dice.random() < failures:
            return dice.choice(FAILURES)
        return dice.choice(FAULTS) if dice.random() < share else ""

    return choose


@contextmanager
def own_store(dice: random.Random, folder: Path, kind: str = "") -> Iterator[World]:
    """Yield a world whose service is a store of the program's own."""
    sink = _sink(dice, folder, kind)
    tree = Tree(dice, folder / "manifests")
    store = folder / ".reconciler" / "identity.db"
    world = World(dice, folder, tree, store, sink, {"RECONCILER_SECRETS_TO": sink.address})
    made = world.run(*APPLY)
    must(made.code == 0, "I7", made.all)
    yield world


@contextmanager
def a_server(dice: random.Random, folder: Path, kind: str = "") -> Iterator[World]:
    """Yield a world whose service is a server behind a proxy."""
    sink = _sink(dice, folder, kind)
    tree = Tree(dice, folder / "manifests")
    (folder / "server").mkdir()
    with (
        running_server(folder / "server") as server,
        fault_proxy(server.address, undisturbed) as proxy,
    ):
        here = {
            "RECONCILER_SECRETS_TO": sink.address,
            "RECONCILER_SERVICE": proxy.address,
            "RECONCILER_TOKEN": server.token("admin"),
        }
        yield World(dice, folder, tree, server.store, sink, here, server, proxy)


def _sink(dice: random.Random, folder: Path, kind: str) -> Sink:
    make = dice.choice([make for make in SINKS if kind in make.__name__])
    return make(folder)


def faults(proxy: FaultProxy | None) -> int:
    """Return how many faults a proxy has brought about."""
    return sum(proxy.done.values()) - proxy.done[""] if proxy else 0
