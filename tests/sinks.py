"""Sinks of every kind, and how to read what they got."""

from __future__ import annotations

import hashlib
import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyrage

from reconciler.service.build import open_sqlite


@dataclass(frozen=True)
class Sink:
    """A sink of some kind: its address, and how to read what it got, by client id."""

    address: str
    read: Callable[[], dict[str, str]]


def a_file_sink(folder: Path) -> Sink:
    """Return a folder of files, mode 0600 each."""

    def read() -> dict[str, str]:
        found = [path for path in (folder / "kept").glob("*.json") if not path.is_symlink()]
        files = {path: content for path in found if "client_id" in (content := path.read_text())}
        assert {path.stat().st_mode & 0o777 for path in files} <= {0o600}
        return _contents(list(files.values()))

    return Sink("file:kept", read)


def an_age_sink(folder: Path) -> Sink:
    """Return a folder of files that two people can open."""
    mine, yours = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()

    def read() -> dict[str, str]:
        sealed = [path.read_bytes() for path in (folder / "kept").glob("*.json.age")]
        opened = [pyrage.decrypt(content, [mine]) for content in sealed]
        assert opened == [pyrage.decrypt(content, [yours]) for content in sealed]
        return _contents(opened)

    recipients = f"recipient={mine.to_public()}&recipient={yours.to_public()}"
    return Sink(f"age:kept?{recipients}", read)


# A command that is told so ends the run that called it, once it has taken so many secrets.
KILLS_AFTER = "TAKER_KILLS_AFTER"
_KILL = (
    f"if os.environ.get({KILLS_AFTER!r}) == str(len(open(TAKEN).readlines())):\n"
    "    os.kill(os.getppid(), 9)\n"
)  # it is started by the run itself, without a shell


def an_exec_sink(folder: Path) -> Sink:
    """Return a command that writes down what it is given."""
    taker = folder / "taker.py"
    taker.write_text(
        "import json, os, sys\n"
        "said = {'client_id': os.environ['RECONCILER_SECRET_CLIENT_ID'],\n"
        "        'client_secret': sys.stdin.read()}\n"
        "assert 'RECONCILER_TOKEN' not in os.environ\n"
        f"TAKEN = {str(folder / 'taken')!r}\n"
        "with open(TAKEN, 'a') as taken:\n"
        "    taken.write(json.dumps(said) + '\\n')\n" + _KILL,
        encoding="utf-8",
    )

    def read() -> dict[str, str]:
        taken = folder / "taken"
        return _contents(taken.read_bytes().splitlines() if taken.exists() else [])

    return Sink(f"exec:{sys.executable} {taker}", read)


def an_exec_batch_sink(folder: Path) -> Sink:
    """Return a command that takes many secrets in one process."""
    taker = folder / "batch_taker.py"
    taker.write_text(
        "import json, os, sys\n"
        "assert 'RECONCILER_TOKEN' not in os.environ\n"
        f"TAKEN = {str(folder / 'taken')!r}\n"
        "taken = open(TAKEN, 'a+')\n"
        "for line in sys.stdin:\n"
        "    client_id = json.loads(line)['client_id']\n"
        "    if sys.argv[1] == 'put':\n"
        "        taken.write(line)\n"
        "        taken.flush()\n"
        f"{textwrap.indent(_KILL, ' ' * 8)}"
        "        print(json.dumps({'client_id': client_id, 'kept': True}), flush=True)\n"
        "    else:\n"
        "        taken.seek(0)\n"
        "        print(json.dumps({'client_id': client_id, 'has': client_id in taken.read()}))\n",
        encoding="utf-8",
    )

    def read() -> dict[str, str]:
        taken = folder / "taken"
        return _contents(taken.read_bytes().splitlines() if taken.exists() else [])

    return Sink(f"exec-batch:{sys.executable} {taker}", read)


def _contents(files: Sequence[bytes | str]) -> dict[str, str]:
    read = [json.loads(content) for content in files]
    return {one["client_id"]: one["client_secret"] for one in read}


SINKS = [a_file_sink, an_age_sink, an_exec_sink]


def counted(store: Path) -> dict[str, str]:
    """Return the hash of the secret that counts now, by client id."""
    with (
        closing(open_sqlite(store, read_only=True)) as service,
        service.store.snapshot() as view,
    ):
        return {row.client_id: row.secret_hash for row in view.all_objects() if row.secret_hash}


def hashes(secrets: dict[str, str]) -> dict[str, str]:
    """Return secrets as the store knows them."""
    return {
        client: hashlib.sha256(secret.encode()).hexdigest() for client, secret in secrets.items()
    }
