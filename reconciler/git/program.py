"""The ``git`` program, started so that neither this machine nor a repository decides anything.

It reads no system or global configuration, runs no hook, filter or prompt, follows no redirect,
and gets no variable of this process but ``PATH``. A limit holds for its time, its memory, and the
size of every file that it writes. Its output goes to a file first, so that the same limit holds.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from reconciler.errors import InterruptedRunError, RepositoryError, writing
from reconciler.git.address import Access

MIB = 1024 * 1024
SECONDS = 60.0  # of a command that asks the mirror
NETWORK_SECONDS = 600.0  # of one that asks the repository itself
LARGEST = 1024 * MIB  # of a file that Git writes: a pack of the whole history, above all
_MEMORY_KIB = 4 * 1024 * 1024
_BLOCK = 512  # bytes that `ulimit -f` counts
_POLL_SECONDS = 0.1
_SHOWN = 400  # characters of what Git says
_LIMITED = 'ulimit -f "$0" 2>/dev/null; ulimit -v "$1" 2>/dev/null; shift; exec git "$@"'

_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.askPass=",
    f"core.attributesFile={os.devnull}",
    "core.bigFileThreshold=16m",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "credential.interactive=false",
    "protocol.version=2",
    "http.followRedirects=false",
    "http.sslVerify=true",
    "http.lowSpeedLimit=100",
    "http.lowSpeedTime=60",
    "transfer.fsckObjects=true",
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
)


class Limits(NamedTuple):
    """Limits of one command: its time, and the bytes of each file that it writes."""

    seconds: float = SECONDS
    file_bytes: int = LARGEST


ASKING = Limits()
FETCHING = Limits(NETWORK_SECONDS)


class Git:
    """The program over one bare repository of ours."""

    def __init__(
        self, folder: Path, access: Access, path: str, stops: Callable[[], int] = lambda: 0
    ) -> None:
        """Take the folder of the repository, and the ``PATH`` to find programs with.

        ``stops`` returns the signal that ends a command early, or 0.
        """
        self.folder = folder
        self._stops = stops
        scratch = folder.parent
        self._scratch = scratch
        self._settings = [each for setting in _settings_of(access) for each in ("-c", setting)]
        self._environment = {
            "PATH": path,
            "HOME": os.devnull,  # no folder, so that nothing is found in it
            "TMPDIR": str(scratch),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_SSH_COMMAND": _ssh_command(access),
            "GIT_SSH_VARIANT": "ssh",
        }

    def ask(self, *words: str, given: bytes = b"", limits: Limits = ASKING) -> bytes:
        """Return what a command prints.

        Raises:
            RepositoryError: it failed, or went over a limit.
            InterruptedRunError: the run was asked to stop meanwhile.
        """
        done = self.run(*words, given=given, limits=limits)
        if done.returncode == -signal.SIGXFSZ:
            raise too_large(words[0], limits)
        if done.returncode:
            raise failed(words[0], done)
        return done.stdout

    def ask_whether(self, *words: str) -> bytes | None:
        """Return what a command prints, or None where it says no: it ends with 1.

        Raises as ``ask``: a full disk must not look like a missing commit.
        """
        done = self.run(*words)
        if done.returncode not in (0, 1):
            raise failed(words[0], done)
        return None if done.returncode else done.stdout

    def run(
        self, *words: str, given: bytes = b"", limits: Limits = ASKING
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command, also one that fails.

        Raises:
            RepositoryError: it cannot be started, or took too long.
            InterruptedRunError: the run was asked to stop meanwhile.
        """
        remedy = f"Install git, and let {self._scratch} have room that this user may write to."
        with (
            writing("run git", remedy),
            tempfile.TemporaryFile(dir=self._scratch) as stdin,
            tempfile.TemporaryFile(dir=self._scratch) as output,
            tempfile.TemporaryFile(dir=self._scratch) as errors,
        ):
            stdin.write(given)
            stdin.seek(0)
            code = self._wait(words, (stdin, output, errors), limits)
            output.seek(0)
            errors.seek(0)
            said = errors.read(64 * 1024)
            if code and not said:
                _require_room(self._scratch)  # its message may have had none either
            return subprocess.CompletedProcess(words, code, output.read(), said)

    def _wait(
        self, words: Sequence[str], streams: tuple[IO[bytes], IO[bytes], IO[bytes]], limits: Limits
    ) -> int:
        blocks = max(1, limits.file_bytes // _BLOCK)
        limited = ["/bin/sh", "-c", _LIMITED, str(blocks), str(_MEMORY_KIB)]
        process = subprocess.Popen(
            [*limited, f"--git-dir={self.folder}", *self._settings, *words],
            cwd=self._scratch,
            env=self._environment,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            process_group=0,  # it is ended with all that it started
        )
        deadline = time.monotonic() + limits.seconds
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_SECONDS)
                if number := self._stops():
                    raise InterruptedRunError(number)
                if time.monotonic() > deadline:
                    raise RepositoryError(
                        f"git {words[0]} took more than {limits.seconds:.0f} s",
                        remedy="Check the connection to the repository, and its size.",
                    )
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def failed(command: str, done: subprocess.CompletedProcess[bytes]) -> RepositoryError:
    """Return the error that a command failed, with what Git says of it."""
    printed = done.stderr.decode("utf-8", "replace").splitlines()
    lines = [each.rstrip(".") for each in printed if each.startswith(("fatal:", "error:"))]
    said = "; ".join(lines)[:_SHOWN] or f"exit code {done.returncode}"
    return RepositoryError(
        f"git {command} failed: {said}",
        remedy="Check --repository, --ref and the files that give access to them.",
    )


def too_large(command: str, limits: Limits) -> RepositoryError:
    """Return the error that a command wrote more than it may."""
    return RepositoryError(
        f"git {command} went over the limit of {limits.file_bytes // MIB} MiB for a file",
        remedy="Keep large files out of the repository of the manifests.",
    )


def _settings_of(access: Access) -> Sequence[str]:
    found = [*_SETTINGS]
    if access.credentials_file is not None:
        # Git asks a helper to forget what was refused. This one only reads.
        file = shlex.quote(str(access.credentials_file))
        read = f'test "$1" = get || exit 0; exec git credential-store --file={file} get'
        found.append(f"credential.helper=!f() {{ {read}; }}; f")
    if access.ca_file is not None:
        found += [f"http.sslCAInfo={access.ca_file}", "http.sslCAPath="]
    found.append(f"http.proxy={access.proxy}")
    return found


def _ssh_command(access: Access) -> str:
    if access.ssh_key_file is None or access.known_hosts is None:
        return "false"
    settings = (
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        f"IdentityFile={access.ssh_key_file}",
        f"UserKnownHostsFile={access.known_hosts}",
        f"GlobalKnownHostsFile={os.devnull}",
        "StrictHostKeyChecking=yes",
        "UpdateHostKeys=no",
        "PreferredAuthentications=publickey",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
        "PermitLocalCommand=no",
        "ConnectTimeout=30",
        "ServerAliveInterval=15",
    )
    words = ["ssh", "-F", os.devnull, *(each for one in settings for each in ("-o", one))]
    return shlex.join(words)


def _require_room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < _BLOCK:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
