"""Be a copy of the program that has loaded it: for scripts, which start programs by a command.

Run as ``python -I -S warm_client.py ADDRESS ARGUMENTS...``. The copy gets the folder, environment
and streams of this process, and its exit code or signal is that of this process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

NUMBER = 4  # bytes of a process id or an exit code


def warm_program() -> str:
    """Return a script that is the program, for tests to put where a command is looked for."""
    from tests.warm import warm_address

    address = warm_address(is_server=False)
    return f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} {address} "$@"\n'


def ask(
    call: socket.socket,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    streams: Sequence[int],
) -> None:
    """Ask for a copy that runs with these arguments, folder, environment and streams."""
    asked = {"arguments": [*arguments], "folder": str(folder), "environment": {**environment}}
    socket.send_fds(call, [json.dumps(asked).encode()], streams)
    call.shutdown(socket.SHUT_WR)


def tell(call: socket.socket, value: int) -> None:
    """Send a process id or an exit code to who asked for a copy."""
    call.sendall(value.to_bytes(NUMBER, "big", signed=True))


def number(call: socket.socket) -> int:
    """Receive the process id of a copy or, once it has ended, its exit code or minus a signal."""
    return int.from_bytes(call.recv(NUMBER, socket.MSG_WAITALL), "big", signed=True)


def main() -> int:
    """Ask for a copy, and end as it ends."""
    address, *arguments = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as call:
        call.connect(address)
        ask(call, arguments, Path.cwd(), os.environ, [0, 1, 2])
        number(call)
        code = number(call)
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
