"""Be a copy of the program that has loaded it: for scripts, which start programs by a command.

Run as ``python -I -S warm_client.py ADDRESS ARGUMENTS...``. The copy gets the folder, environment
and streams of this process, and its exit code or signal is that of this process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

_NUMBER = 4


def warm_program() -> str:
    """Return a script that is the program, for tests to put where a command is looked for."""
    from tests.warm import warm_address

    return f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} {warm_address()} "$@"\n'


def main() -> int:
    """Ask for a copy, and end as it ends."""
    address, *arguments = sys.argv[1:]
    asked = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as call:
        call.connect(address)
        socket.send_fds(call, [json.dumps(asked).encode()], [0, 1, 2])
        call.shutdown(socket.SHUT_WR)
        code = int.from_bytes(call.recv(_NUMBER, socket.MSG_WAITALL), "big", signed=True)
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
