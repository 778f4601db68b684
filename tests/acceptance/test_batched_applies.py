"""Writes in batches against a real server: lost answers, and a server that dies in a batch."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from tests.acceptance.conftest import ORGANIZATION, Run, an_action, an_application, write
from tests.fault_proxy import fault_proxy
from tests.program import started
from tests.served import Served, a_free_port, a_token
from tests.sinks import counted, hashes

APPLY = ("apply", "--auto-approve", "--secrets-to", "file:kept")
STORE = Path("served") / "identity.db"
BATCH = b"POST /reconciler/v1/batch"
APPLICATIONS, OBJECTS = 12, 26
ALL = ("--prune", "--allow-updates", "99")


def declare(tree: Path, timeout: str = "5s") -> None:
    """Declare an organization, a project, and as many applications as actions."""
    write(tree / "o.yaml", ORGANIZATION)
    for number in range(APPLICATIONS):
        write(tree / f"app{number}.yaml", an_application(f"app{number}"))
        write(tree / f"act{number}.yaml", an_action(f"act{number}", timeout=timeout))


def secrets_in(folder: Path) -> dict[str, str]:
    files = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return {one["client_id"]: one["client_secret"] for one in files}


class Service:
    """A server, and what a run needs to know to apply to it."""

    def __init__(self, run: Run, folder: Path, served: Served) -> None:
        self.run = run
        self.folder = folder
        self.served = served
        token = a_token(run, served, "--name", "root", "--role", "admin")
        self.remote = {"RECONCILER_TOKEN": token, "RECONCILER_SERVICE": served.address}

    def events(self) -> Sequence[str]:
        """Return the type of each event in the store."""
        with (
            closing(open_sqlite(self.folder / STORE, read_only=True)) as service,
            service.store.snapshot() as view,
        ):
            return [event.type for event in view.read_all(after=0, limit=10_000)]

    def check(self) -> None:
        """Check that all is as declared, and every secret kept is the one that counts."""
        planned = self.run("plan", "--detailed-exitcode", **self.remote)
        assert planned.code == 0, planned.all
        verified = self.run("store", "verify", "--service", self.served.service)
        assert verified.code == 0, verified.all
        kept = hashes(secrets_in(self.folder / "kept"))
        assert kept == counted(self.folder / STORE)
        assert len(kept) == APPLICATIONS


@pytest.fixture
def service(run: Run, tmp_path: Path, tree: Path) -> Iterator[Service]:
    """Have a server ready to start over an empty store, beside the manifests of an organization."""
    declare(tree)
    served = Served(tmp_path, f"sqlite:{STORE}", a_free_port())
    try:
        yield Service(run, tmp_path, served)
    finally:
        served.stop()


def test_writes_go_in_batches_and_one_whose_answer_is_lost_is_asked_for_again(
    service: Service, tree: Path
) -> None:
    """Creates, updates and deletes alike, each batch in some of the ways an answer is lost."""
    harms = iter(("reset after", "half an answer", "garbage", "unavailable after"))

    def choose(first: bytes) -> str:
        return next(harms, "") if first.startswith(BATCH) else ""

    service.served.start()
    with fault_proxy(service.served.address, choose) as proxy:
        remote = {**service.remote, "RECONCILER_SERVICE": proxy.address}
        made = service.run(*APPLY, "--verbose", **remote)
        harms = iter(("reset after", "", "garbage", ""))
        declare(tree, timeout="6s")
        for name in ("act1", "act2"):
            (tree / f"{name}.yaml").unlink()
        before = len(service.events())
        changed = service.run(*APPLY, *ALL, "--verbose", **remote)

    assert (made.code, changed.code) == (0, 0), made.all + changed.all
    assert "26 created" in made.out
    assert "10 updated, 2 deleted" in changed.out
    assert len(service.events()) == before + 12
    assert proxy.done["reset after"] == proxy.done["garbage"] == 2
    for said, tries in ((made.err, 5), (changed.err, 4)):
        alone = re.findall(r"(?:POST|PUT|DELETE) \S+/management/v1/(\w+)\S*: ", said)
        assert set(alone) <= {"orgs", "projects"}, said
        assert said.count("/reconciler/v1/batch: ") == tries, said
    service.check()


@pytest.mark.parametrize(
    ("point", "asking"),
    [
        pytest.param("S3:9", "same apply", id="in a commit"),
        pytest.param("S8:4", "next apply", id="after a commit"),
    ],
)
def test_a_server_that_dies_in_a_batch_loses_and_doubles_nothing(
    service: Service, tmp_path: Path, point: str, asking: str
) -> None:
    """The batch is asked for again with its keys: by the apply that waits, or by the next one."""
    served = service.served
    served.environment = {"RECONCILER_CRASHPOINT": point}
    served.start()
    applying = started(tmp_path, *APPLY, **service.remote)
    assert served.process is not None
    try:
        assert served.process.wait(30) == -signal.SIGKILL
        if asking == "next apply":
            applying.kill()
            applying.wait()
    finally:
        served.environment = {}
        served.start()
        code = applying.wait(60)
    if asking == "next apply":
        again = service.run(*APPLY, **service.remote)
        assert again.code == 0, again.all
    else:
        assert code == 0, (tmp_path / "apply.log").read_text(encoding="utf-8")
    happened = Counter(name.rpartition(".")[2] for name in service.events())
    assert happened.pop("added") == OBJECTS
    assert set(happened) <= {"claimed"}, "the next apply has the secrets told to it again"
    service.check()
