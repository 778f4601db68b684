"""What a server needs for gRPC, and what it says where it cannot have it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport import grpc_front_end
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.connections import ListenError
from reconciler.service.transport.grpc_front_end import (
    LOCK,
    PREFIX,
    SOCKET,
    grpc_front_ends,
    private_folder,
)
from reconciler.service.transport.http_messages import Bodies
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.protobuf import SERVICES


def who_may(address: str) -> int:
    """Return the permissions of the folder of a socket; there must be one."""
    assert Path(address).is_socket()
    return Path(address).parent.stat().st_mode & 0o777


async def nothing(_: Incoming) -> Received:
    """Answer nothing."""
    return Received("", {})


def test_the_socket_is_private_and_goes_with_the_server() -> None:
    """Whoever reached it would reach gRPC past all limits of the port."""

    async def main() -> None:
        limits = Limits()
        bodies = Bodies(nothing, Budget.of(limits))
        async with grpc_front_ends(nothing, Observer(), bodies, limits) as front_ends:
            assert who_may(front_ends.inside.address) == 0o700
            assert set(front_ends.web_routes) == set(SERVICES)
            addresses.append(front_ends.inside.address)

    addresses: list[str] = []
    asyncio.run(main())

    assert [address for address in addresses if Path(address).parent.exists()] == []


KILLED = """
import os, signal, socket
from reconciler.service.transport.grpc_front_end import private_folder
with private_folder() as folder:
    os.chdir(folder)  # the path of a socket must be short
    socket.socket(socket.AF_UNIX).bind("grpc")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for temporary files."""
    top = tmp_path / "top"
    top.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(top))
    return top


def killed(top: Path) -> Path:
    """Return the folder that a server left which was killed."""
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(top)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    left = Path(ended.stdout.strip())
    assert sorted(path.name for path in left.iterdir()) == [SOCKET, LOCK]
    return left


def left_over(top: Path, name: str = "reconciler-old") -> Path:
    """Make a folder such as a killed server leaves."""
    folder = top / name
    folder.mkdir(mode=0o700)
    (folder / SOCKET).write_text("")
    (folder / LOCK).write_text("")
    return folder


def make_socket(name: str) -> None:
    """Make the file of a socket in the working folder: the path of a socket must be short."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(name)


@pytest.mark.slow
def test_the_next_start_clears_what_a_killed_server_left(top: Path) -> None:
    """And nothing of a server that lives."""
    left = killed(top)
    with private_folder() as living:
        assert not left.exists()
        assert living.stat().st_mode & 0o777 == 0o700
        with private_folder() as other:
            assert living.exists()
            assert other.exists()
        assert [path.name for path in top.iterdir()] == [living.name]
    assert list(top.iterdir()) == []


def test_a_connection_that_a_killed_server_was_making_goes_with_its_folder(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket of a connection has a file with a number for its name, for a moment."""
    left = left_over(top)
    monkeypatch.chdir(left)
    make_socket("17")

    with private_folder():
        assert not left.exists()


@pytest.mark.parametrize(("name", "is_socket"), [("17", False), ("a7", True), ("\u0661", True)])
def test_a_name_that_is_no_connection_of_a_server_stays(
    top: Path, name: str, *, is_socket: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all that is beside it, also a connection."""
    left = left_over(top)
    monkeypatch.chdir(left)
    make_socket("16")
    if is_socket:
        make_socket(name)
    else:
        (left / name).write_text("mine")

    with private_folder():
        assert {path.name for path in left.iterdir()} == {SOCKET, LOCK, "16", name}


def test_what_no_server_left_stays(top: Path) -> None:
    """Other files and names, links that lead elsewhere, a pipe that would block."""
    elsewhere = top.with_name("elsewhere")
    elsewhere.mkdir()
    target = left_over(elsewhere, "target")
    (top / "reconciler-link").symlink_to(target)
    links = top / "reconciler-links"
    links.mkdir()
    (links / LOCK).symlink_to(target / LOCK)
    pipe = top / "reconciler-pipe"
    pipe.mkdir()
    os.mkfifo(pipe / LOCK)
    full = left_over(top, "reconciler-full")
    (full / "notes.txt").write_text("mine")
    (top / "reconciler-file").write_text("mine")
    (top / "reconciler-empty").mkdir()
    other = left_over(top, "another-program")
    gone = left_over(top)

    with private_folder() as folder:
        names = {path.name for path in top.iterdir()}

    assert names == {
        "reconciler-link", "reconciler-links", "reconciler-pipe", "reconciler-full",
        "reconciler-file", "reconciler-empty", "another-program", folder.name,
    }  # fmt: skip
    assert not gone.exists()
    assert sorted(path.name for path in target.iterdir()) == [SOCKET, LOCK]
    assert sorted(path.name for path in other.iterdir()) == [SOCKET, LOCK]
    assert len(list(full.iterdir())) == 3


def test_a_folder_of_another_user_stays(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write to the same place may make a folder of any name in it."""
    foreign = left_over(top)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with private_folder():
        assert foreign.exists()

    assert sorted(path.name for path in foreign.iterdir()) == [SOCKET, LOCK]


def test_a_server_without_room_for_the_socket_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Containers often have a file system that cannot be written to."""

    def no_room(**_: str) -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", no_room)
    with pytest.raises(ListenError, match="no folder for temporary files") as caught:
        private_folder().__enter__()

    assert "TMPDIR" in caught.value.remedy


@pytest.mark.parametrize("over", [0, 1])
def test_a_folder_whose_path_is_too_long_for_a_socket_is_refused(
    monkeypatch: pytest.MonkeyPatch, over: int
) -> None:
    """A system that names a folder for each user and job has such paths."""
    with tempfile.TemporaryDirectory() as folder:
        needed = len(os.fsencode(folder)) + len(f"/{PREFIX}12345678/{SOCKET}")
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setattr(grpc_front_end, "MAX_SOCKET", needed - over)
        if not over:
            with private_folder():
                return
        with pytest.raises(ListenError, match="too long a path") as caught:
            private_folder().__enter__()
        assert "at least 1 bytes shorter" in caught.value.remedy
        assert not any(Path(folder).iterdir())
