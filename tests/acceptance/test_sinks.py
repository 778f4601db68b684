"""Client secrets reach every kind of sink, once, whole, and through every crash."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyrage
import pytest

from reconciler.service.build import open_sqlite
from tests.acceptance.conftest import Run, an_application, write

POINTS = ["C2", "C4", "C6", "C7", "C8", "C9", "C10", "C11"]
POINTS += [f"S{number}" for number in range(1, 9)]


@dataclass(frozen=True)
class Sink:
    """A sink of some kind: its address, and how to read what it got, by client id."""

    address: str
    read: Callable[[], dict[str, str]]


def a_file_sink(folder: Path) -> Sink:
    def read() -> dict[str, str]:
        return _contents([path.read_bytes() for path in (folder / "kept").glob("*.json")])

    return Sink("file:kept", read)


def an_age_sink(folder: Path) -> Sink:
    mine, yours = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()

    def read() -> dict[str, str]:
        sealed = [path.read_bytes() for path in (folder / "kept").glob("*.json.age")]
        opened = [pyrage.decrypt(content, [mine]) for content in sealed]
        assert opened == [pyrage.decrypt(content, [yours]) for content in sealed]
        return _contents(opened)

    recipients = f"recipient={mine.to_public()}&recipient={yours.to_public()}"
    return Sink(f"age:kept?{recipients}", read)


def an_exec_sink(folder: Path) -> Sink:
    taker = write(
        folder / "taker.py",
        "import json, os, sys\n"
        "said = {'client_id': os.environ['RECONCILER_SECRET_CLIENT_ID'],\n"
        "        'client_secret': sys.stdin.read()}\n"
        "assert 'RECONCILER_TOKEN' not in os.environ\n"
        f"open({str(folder / 'taken')!r}, 'a').write(json.dumps(said) + '\\n')\n",
    )

    def read() -> dict[str, str]:
        return _contents((folder / "taken").read_bytes().splitlines())

    return Sink(f"exec:{sys.executable} {taker}", read)


def _contents(files: Sequence[bytes]) -> dict[str, str]:
    read = [json.loads(content) for content in files]
    return {one["client_id"]: one["client_secret"] for one in read}


SINKS = [a_file_sink, an_age_sink, an_exec_sink]


def counted(folder: Path) -> dict[str, str]:
    """Return the hash of the secret that counts now, by client id."""
    with (
        closing(open_sqlite(folder / ".reconciler" / "identity.db", read_only=True)) as service,
        service.store.snapshot() as view,
    ):
        return {row.client_id: row.secret_hash for row in view.all_objects() if row.secret_hash}


def hashes(secrets: dict[str, str]) -> dict[str, str]:
    return {
        client: hashlib.sha256(secret.encode()).hexdigest() for client, secret in secrets.items()
    }


@pytest.mark.parametrize("make", SINKS)
def test_every_sink_gets_the_secrets_that_count(
    run: Run, small: Path, make: Callable[[Path], Sink]
) -> None:
    """What was delivered is what signs in."""
    write(small / "api.yaml", an_application("api"))
    sink = make(small.parent)

    applied = run("apply", "--auto-approve", "--secrets-to", sink.address)

    assert applied.code == 0, applied.all
    assert hashes(sink.read()) == counted(small.parent)
    assert len(sink.read()) == 2
    assert not any(secret in applied.all for secret in sink.read().values())


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("make", SINKS[1:])
def test_a_crash_at_any_point_is_healed_for_every_sink(
    run: Run, small: Path, make: Callable[[Path], Sink], point: str
) -> None:
    """The next apply delivers what was owed, and nothing that was not."""
    sink = make(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address, RECONCILER_CRASHPOINT=point)

    healed = run("apply", "--auto-approve", "--secrets-to", sink.address)

    assert healed.code == 0, healed.all
    assert hashes(sink.read()) == counted(small.parent)
    assert run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("make", SINKS)
def test_a_rotated_secret_is_delivered_before_it_says_done(
    run: Run, small: Path, make: Callable[[Path], Sink]
) -> None:
    """One application gets a new secret; nobody else notices."""
    sink = make(small.parent)
    run("apply", "--auto-approve", "--secrets-to", sink.address)
    before = sink.read()

    rotated = run("secret", "rotate", "OidcApplication/acme/shop/WEB", "--secrets-to", sink.address)

    assert rotated.code == 0, rotated.all
    assert hashes(sink.read()) == counted(small.parent)
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

    killed = run("secret", "rotate", "acme/shop/web", "--secrets-to", sink.address,
                 RECONCILER_CRASHPOINT=point)  # fmt: skip
    run("apply", "--auto-approve", "--secrets-to", sink.address)

    assert killed.code == -signal.SIGKILL
    assert hashes(sink.read()) == counted(small.parent)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        pytest.param("age:kept", "recipient", id="age without a recipient"),
        pytest.param("age:kept?recipient=me", "age1", id="a recipient that is none"),
        pytest.param("age:kept?to=age1x", "does not know to", id="an unknown setting"),
        pytest.param("exec:no-such-program --x", "no program", id="a program that is not there"),
        pytest.param("exec:'", "quote", id="an open quote"),
        pytest.param("exec:false", "did not take", id="a command that fails"),
        pytest.param("vault:x", "file:DIR", id="no such kind"),
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
    assert hashes(sink.read()) == counted(small.parent)


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
    before = counted(small.parent)

    assert run("secret", "rotate", ref).code == 1
    assert counted(small.parent) == before
