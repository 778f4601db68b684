"""Client secrets reach every kind of sink, once and whole."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_application, write
from tests.acceptance.zitadel import ServeZitadel
from tests.program import started
from tests.running import Server, running_server
from tests.sinks import (
    SINKS,
    Sink,
    a_file_sink,
    an_age_sink,
    an_exec_batch_sink,
    counted,
    hashes,
)


def store_of(tree: Path) -> Path:
    """Return the store beside a tree."""
    return tree.parent / ".reconciler" / "identity.db"


@pytest.mark.parametrize("make", [*SINKS, an_exec_batch_sink])
def test_every_sink_gets_the_secrets_that_count(
    run: Run, small: Path, make: Callable[[Path], Sink]
) -> None:
    """What was delivered is what signs in."""
    write(small / "api.yaml", an_application("api"))
    sink = make(small.parent)

    applied = run("apply", "--auto-approve", "--secrets-to", sink.address)

    assert applied.code == 0, applied.all
    assert hashes(sink.read()) == counted(store_of(small))
    assert len(sink.read()) == 2
    assert not any(secret in applied.all for secret in sink.read().values())


@pytest.mark.parametrize("make", [*SINKS, an_exec_batch_sink])
def test_a_rotated_secret_is_delivered_before_it_says_done(
    run: Run, small: Path, make: Callable[[Path], Sink]
) -> None:
    """One application gets a new secret; nobody else notices."""
    sink = make(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address)
    before = sink.read()

    rotated = run(
        "secret",
        "rotate",
        "--auto-approve",
        "OidcApplication/acme/shop/WEB",
        "--secrets-to",
        sink.address,
    )

    assert rotated.code == 0, rotated.all
    assert hashes(sink.read()) == counted(store_of(small))
    assert sink.read() != before
    assert not any(secret in rotated.all for secret in sink.read().values())
    assert run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("point", ["C2", "S4", "S8", "C6", "C8", "C9", "C10"])
def test_a_rotation_that_is_cut_short_is_ended_by_the_next_apply(
    run: Run, small: Path, point: str
) -> None:
    """The old secret may be gone already; the new one must not be."""
    sink = a_file_sink(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address)

    killed = run("secret", "rotate", "acme/shop/web", "--auto-approve",
                 "--secrets-to", sink.address, RECONCILER_CRASHPOINT=point)  # fmt: skip
    run("apply", "--auto-approve", "--secrets-to", sink.address)

    assert killed.code == -signal.SIGKILL
    assert hashes(sink.read()) == counted(store_of(small))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        pytest.param("age:kept", "recipient", id="age without a recipient"),
        pytest.param("age:kept?recipient=me", "age1", id="a recipient that is none"),
        pytest.param("age:kept?to=age1x", "does not know to", id="an unknown setting"),
        pytest.param("exec:no-such-program --x", "was not found", id="a program that is not there"),
        pytest.param("exec:false", "did not take", id="a command that fails"),
        pytest.param("file:~me/kept", "only ~/ is the home folder", id="the home of another"),
    ],
)
def test_a_sink_that_cannot_keep_secrets_is_told(
    run: Run, small: Path, address: str, words: str
) -> None:
    """Nothing is lost: with a sink that works, the next apply delivers."""
    refused = run("apply", "--auto-approve", "--secrets-to", address)

    assert refused.code in {1, 5}
    assert words in refused.all
    sink = a_file_sink(small.parent)
    assert run("apply", "--auto-approve", "--secrets-to", sink.address).code == 0
    assert hashes(sink.read()) == counted(store_of(small))


def test_a_job_on_github_masks_what_it_delivers(run: Run, small: Path) -> None:
    """A later step that prints the secret by mistake prints stars."""
    sink = a_file_sink(small.parent)

    applied = run("apply", "--auto-approve", "--secrets-to", sink.address, GITHUB_ACTIONS="true")

    (secret,) = sink.read().values()
    assert f"::add-mask::{secret}\n" in applied.err
    assert secret not in applied.out
    assert applied.err.count(secret) == 1


@pytest.mark.parametrize("ref", ["acme/shop/spa", "acme/shop/nope", "acme", "", "nope/a/b"])
def test_only_an_application_with_a_secret_can_be_given_a_new_one(
    run: Run, small: Path, ref: str
) -> None:
    """A wrong name changes nothing."""
    run("apply", "--auto-approve")
    before = counted(store_of(small))

    assert run("secret", "rotate", "--auto-approve", ref).code == 1
    assert counted(store_of(small)) == before


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Server]:
    """Serve a second service, which holds acme/shop already."""
    (tmp_path / "server").mkdir()
    with running_server(tmp_path / "server") as server:
        yield server


def files_of(folder: Path) -> dict[str, str]:
    """Return the client id of every file of a sink, by file name."""
    paths = sorted((folder / "kept").glob("[!.]*"))
    return {path.name: json.loads(path.read_bytes())["client_id"] for path in paths}


def test_two_services_share_a_folder_and_lose_nothing(
    run: Run, small: Path, elsewhere: Server
) -> None:
    """The same manifests for staging and production, and one sink by mistake."""
    sink = a_file_sink(small.parent)
    to_elsewhere = {"RECONCILER_SERVICE": elsewhere.address,
                    "RECONCILER_TOKEN": elsewhere.token("admin")}  # fmt: skip
    first = run("apply", "--auto-approve", "--secrets-to", sink.address)
    second = run("apply", "--auto-approve", "--secrets-to", sink.address, **to_elsewhere)

    assert (first.code, second.code) == (0, 0), first.all + second.all
    both = counted(store_of(small)) | counted(elsewhere.store)
    assert hashes(sink.read()) == both
    (theirs,) = counted(elsewhere.store)
    (ours,) = counted(store_of(small))
    assert files_of(small.parent) == {
        "acme.shop.web.json": ours, f"acme.shop.web.{theirs}.json": theirs,
    }  # fmt: skip
    assert "SECRET-KEPT-BESIDE" in second.all
    assert f"secret in kept/acme.shop.web.{theirs}.json" in second.out

    rotated = run("secret", "rotate", "acme/shop/web", "--auto-approve",
                  "--secrets-to", sink.address, **to_elsewhere)  # fmt: skip
    assert rotated.code == 0, rotated.all
    assert f"secret in kept/acme.shop.web.{theirs}.json" in rotated.out
    assert hashes(sink.read()) == counted(store_of(small)) | counted(elsewhere.store)
    assert len(files_of(small.parent)) == 2


@pytest.mark.parametrize("there", ["old\n", '{"client_id": "somebody"}'])
def test_a_file_of_something_else_is_kept(run: Run, small: Path, there: str) -> None:
    """It is not ours to replace, whatever it is."""
    sink = a_file_sink(small.parent)
    (small.parent / "kept").mkdir(mode=0o700)
    target = small.parent / "kept" / "acme.shop.web.json"
    target.write_text(there, encoding="ascii")
    target.chmod(0o600)

    applied = run("apply", "--auto-approve", "--secrets-to", sink.address, "--format", "json")

    assert applied.code == 0, applied.all
    (client,) = counted(store_of(small))
    (outcome,) = [one for one in applied.json["outcomes"] if one["secret_at"]]
    assert outcome["secret_at"] == f"kept/acme.shop.web.{client}.json"
    assert "SECRET-KEPT-BESIDE" in [note["code"] for note in applied.json["diagnostics"]]
    assert target.read_text(encoding="ascii") == there
    kept = json.loads((target.parent / f"acme.shop.web.{client}.json").read_bytes())
    assert hashes({client: kept["client_secret"]}) == counted(store_of(small))


@pytest.mark.parametrize("make", [a_file_sink, an_age_sink])
@pytest.mark.parametrize("point", ["C7", "C8", "C9"])
def test_a_kill_while_the_sink_is_proven_leaves_nothing_for_long(
    run: Run, small: Path, make: Callable[[Path], Sink], point: str
) -> None:
    """The probe is the first that passes these points. The next run removes what it left."""
    sink = make(small.parent)
    killed = run(
        "apply", "--auto-approve", "--secrets-to", sink.address, RECONCILER_CRASHPOINT=point
    )
    left = list((small.parent / "kept").glob(".secret*"))

    assert run("apply", "--auto-approve", "--secrets-to", sink.address).code == 0

    assert (killed.code, bool(left)) == (-signal.SIGKILL, True)
    assert [path.name for path in (small.parent / "kept").glob(".secret*")] == []
    assert hashes(sink.read()) == counted(store_of(small))


def held_as(run: Run, name: str) -> tuple[str, str]:
    """Return id and client id of an application."""
    told = run("outputs", "--format", "json")
    (found,) = [one for one in told.json["applications"] if one["ref"]["name"] == name]
    return found["id"], found["client_id"]


def renamed(run: Run, small: Path, name: str = "portal") -> str:
    """Give the application web another name in the manifests, and return its client id."""
    object_id, client = held_as(run, "web")
    manifest = json.loads(an_application(name))
    manifest["metadata"]["id"] = object_id
    write(small / "web.yaml", json.dumps(manifest))
    return client


@pytest.mark.parametrize(
    ("make", "point"),
    [
        *((a_file_sink, point) for point in ("", "C2", "C4", "C19", "C10")),
        *((an_age_sink, point) for point in ("", "C4")),
    ],
)
def test_a_secret_follows_a_rename(
    run: Run, small: Path, make: Callable[[Path], Sink], point: str
) -> None:
    """Wherever the run is killed: the next one ends what it began."""
    sink = make(small.parent)
    to = ("apply", "--auto-approve", "--secrets-to", sink.address)
    run(*to)
    client, before = renamed(run, small), sink.read()
    first = run(*to, RECONCILER_CRASHPOINT=point)
    assert sink.read() == before
    second = run(*to)

    assert (first.code, second.code) == (-signal.SIGKILL if point else 0, 0), second.all
    assert sink.read() == before
    end = f"portal.{client}.json.age" if make is an_age_sink else "portal.json"
    assert [path.name for path in (small.parent / "kept").glob("[!.]*")] == [f"acme.shop.{end}"]
    said = [ran for ran in (first, second) if "SECRET-MOVED" in ran.all]
    assert [f"acme.shop.{end}" in ran.all for ran in said] == [True]


def test_a_renamed_and_a_new_application_have_each_its_own_secret(run: Run, small: Path) -> None:
    """The new one takes the old name in the same apply."""
    sink = a_file_sink(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address)
    client = renamed(run, small)
    (before,) = sink.read().values()
    write(small / "new.yaml", an_application("web"))

    applied = run("apply", "--auto-approve", "--secrets-to", sink.address, "--format", "json")

    assert applied.code == 0, applied.all
    _, new = held_as(run, "web")
    assert files_of(small.parent) == {"acme.shop.portal.json": client, "acme.shop.web.json": new}
    assert sink.read()[client] == before
    assert hashes(sink.read()) == counted(store_of(small))
    codes = [note["code"] for note in applied.json["diagnostics"]]
    assert codes.count("SECRET-MOVED") == 1
    assert "SECRET-KEPT-BESIDE" not in codes
    moved = json.loads((small.parent / "kept" / "acme.shop.portal.json").read_bytes())
    assert moved["ref"]["name"] == "portal"


@pytest.mark.parametrize(
    ("make", "point"),
    [(a_file_sink, ""), (a_file_sink, "C2"), (a_file_sink, "C4"), (an_age_sink, "C4")],
)
def test_a_secret_goes_with_its_application(
    run: Run, small: Path, make: Callable[[Path], Sink], point: str
) -> None:
    """And no other does, not even one of another service under the same name."""
    sink = make(small.parent)
    to = ("apply", "--auto-approve", "--secrets-to", sink.address)
    write(small / "api.yaml", an_application("api"))
    run(*to)
    _, client = held_as(run, "web")
    before = sink.read()
    (small / "web.yaml").unlink()

    first = run(*to, "--prune", RECONCILER_CRASHPOINT=point)
    second = run(*to, "--prune")

    assert (first.code, second.code) == (-signal.SIGKILL if point else 0, 0), second.all
    assert sink.read() == {other: before[other] for other in before if other != client}
    said = [ran for ran in (first, second) if "SECRET-REMOVED" in ran.all]
    assert len(said) == 1
    assert hashes(sink.read()) == counted(store_of(small))


def test_a_tilde_is_the_home_folder(run: Run, small: Path, tmp_path: Path) -> None:
    """No shell replaces it behind a colon."""
    home = tmp_path / "home"
    home.mkdir()

    applied = run("apply", "--auto-approve", "--secrets-to", "file:~/kept/here", HOME=str(home))

    assert applied.code == 0, applied.all
    (client,) = counted(store_of(small))
    kept = json.loads((home / "kept" / "here" / "acme.shop.web.json").read_bytes())
    assert kept["client_id"] == client
    assert not (tmp_path / "~").exists()


SLOW = """
import os, pathlib, sys, time
time.sleep(0.4)
with open(sys.argv[1], "a") as taken:
    taken.write(os.environ["RECONCILER_SECRET_CLIENT_ID"] + " " + sys.stdin.read() + chr(10))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_wait_for_the_rest_of_a_batch(
    run: Run, small: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """What is in the sink is told as made, the rest is owed, and delivered by the next apply."""
    script, taken = tmp_path / "slow.py", tmp_path / "taken"
    script.write_text(SLOW, encoding="utf-8")
    for name in range(12):
        write(small / f"app-{name}.yaml", an_application(f"app-{name}"))
    to = f"exec?parallel=2:{sys.executable} {script} {taken}"
    command = ("apply", "--auto-approve", "--format", "json", "--secrets-to", to)
    with started(tmp_path, *command) as process:
        while not taken.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number, out + err
    lines = taken.read_text(encoding="utf-8").splitlines()
    kept = dict(line.split() for line in lines)
    assert len(kept) < 13
    told = [one["client_id"] for one in json.loads(out)["outcomes"] if one["secret_at"]]
    assert sorted(told) == sorted(kept)
    assert run("apply", "--auto-approve", "--secrets-to", to).code == 0
    kept |= dict(line.split() for line in taken.read_text(encoding="utf-8").splitlines())
    assert hashes(kept) == counted(store_of(small))
    again = taken.read_text(encoding="utf-8").splitlines()
    assert again[: len(lines)] == lines
    assert len(again) == 13, "none is delivered twice"


def test_two_runs_at_once_share_a_folder(small: Path, tmp_path: Path) -> None:
    """Each of them has a store of its own, and both write the same names."""
    for name in range(6):
        write(small / f"app-{name}.yaml", an_application(f"app-{name}"))
    sink, stores = a_file_sink(tmp_path), [tmp_path / f"{number}.db" for number in (1, 2, 3)]
    command = ("apply", "--auto-approve", "--secrets-to", sink.address)
    runs = [started(tmp_path, *command, "--service", f"sqlite:{store}") for store in stores]
    said = ["".join(run.communicate(timeout=120)) for run in runs]

    assert [run.returncode for run in runs] == [0, 0, 0], said
    wanted = {client: digest for store in stores for client, digest in counted(store).items()}
    assert len(wanted) == 3 * 7
    assert hashes(sink.read()) == wanted
    assert len(files_of(tmp_path)) == len(wanted), "and nothing else is in the folder"
    assert sum(text.count("SECRET-KEPT-BESIDE") for text in said) == 2 * 7


def test_a_rotation_that_the_sink_does_not_take_has_replaced_the_secret(
    run: Run, small: Path
) -> None:
    """A job must not take it for a command that did nothing."""
    sink = a_file_sink(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address)
    before = counted(store_of(small))

    rotated = run(
        "secret", "rotate", "acme/shop/web", "--auto-approve", "--secrets-to", "exec:false"
    )
    delivered = run("secret", "deliver", "--secrets-to", sink.address)

    assert rotated.code == 5, rotated.all
    assert counted(store_of(small)) != before
    assert "was replaced, and the new one is not in the sink" in rotated.err
    assert "The old one has ended" in rotated.err
    assert "reconciler secret deliver" in rotated.err
    assert delivered.code == 0, delivered.all
    assert hashes(sink.read()) == counted(store_of(small))


def test_a_secret_that_is_owed_and_that_no_sink_takes_is_not_delivered(
    run: Run, small: Path
) -> None:
    """It was made, and is in no sink: no other number says that, however many are owed."""
    assert run("apply", "--auto-approve", "--secrets-to", "exec:false").code == 5

    delivered = run("secret", "deliver", "--secrets-to", "exec:false")
    applied = run("apply", "--auto-approve", "--secrets-to", "exec-batch:sh -c true")

    assert delivered.code == 5, delivered.all
    assert "still owed" in delivered.out
    assert applied.code == 5, applied.all
    assert "0 of 1 owed secrets delivered" in applied.out


def test_a_zitadel_keeps_no_secret_that_a_command_did_not_take(
    run: Run, small: Path, a_zitadel: ServeZitadel
) -> None:
    """So it is not said that the secret is kept."""
    with a_zitadel() as (_, known):
        made = run("apply", "--auto-approve", "--secrets-to", "exec:false", **known)
        rotated = run(
            *("secret", "rotate", "acme/shop/web", "--auto-approve", "--secrets-to", "exec:false"),
            **known,
        )

    assert made.code == 5, made.all
    assert "delivers the secret if the service kept it, and otherwise says how to make" in made.all
    assert rotated.code == 5, rotated.all
    assert "This service keeps no secret" in rotated.err


def test_a_rotated_secret_is_kept_beside_the_one_of_another(run: Run, small: Path) -> None:
    """The command says so, as apply does."""
    run("apply", "--auto-approve")
    other = small.parent / "kept"
    other.mkdir(mode=0o700)
    (other / "acme.shop.web.json").write_text('{"client_id": "8"}', encoding="ascii")

    rotated = run(
        "secret", "rotate", "--auto-approve", "acme/shop/web", "--secrets-to", "file:kept"
    )

    assert rotated.code == 0, rotated.all
    (client,) = counted(store_of(small))
    assert "SECRET-KEPT-BESIDE" in rotated.err
    assert f"secret in kept/acme.shop.web.{client}.json" in rotated.out
    assert files_of(small.parent) == {
        "acme.shop.web.json": "8", f"acme.shop.web.{client}.json": client,
    }  # fmt: skip
