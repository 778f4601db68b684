"""The kinds of sinks, by the scheme of their address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from reconciler.apply.folder_sinks import AgeSink, FileSink
from reconciler.apply.sink import SecretSink
from reconciler.errors import UsageError

KINDS = "file:DIR, 'age:DIR?recipient=age1...', exec:COMMAND or exec-batch:COMMAND"
MOST_AT_ONCE = 64


def open_sink(address: str, environment: Mapping[str, str]) -> SecretSink:
    """Return the sink at an address; a command gets the environment, less what is ours.

    Raises:
        UsageError: there is no such kind of sink, or the address says too little.
    """
    scheme, _, rest = address.partition(":")
    kind, has_settings, settings = scheme.partition("?")
    if kind not in _OPENERS or not rest:
        raise UsageError(
            f"{kind}: is not a destination for secrets", remedy=f"Write one of {KINDS}."
        )
    if has_settings and kind not in _COMMANDS:
        raise UsageError(
            f"{kind}: takes no settings before the colon", remedy=f"Write one of {KINDS}."
        )
    return _OPENERS[kind](rest, settings, environment)


def _file(rest: str, settings: str, environment: Mapping[str, str]) -> SecretSink:
    return FileSink(_folder("file", rest, environment))


def _age(rest: str, settings: str, environment: Mapping[str, str]) -> SecretSink:
    folder, _, query = rest.partition("?")
    pairs = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    unknown = [name for name, _ in pairs if name != "recipient"]
    if unknown or not folder:
        raise UsageError(
            f"age: does not know {unknown[0]}" if unknown else "age: needs a folder",
            remedy="Write 'age:DIR?recipient=age1...', with &recipient=... for each one more.",
        )
    return AgeSink(_folder("age", folder, environment), [value for _, value in pairs])


def _exec(rest: str, settings: str, environment: Mapping[str, str]) -> SecretSink:
    from reconciler.apply.command import Command
    from reconciler.apply.exec_sinks import ExecSink

    return ExecSink(Command(rest, environment), _parallel("exec", settings))


def _exec_batch(rest: str, settings: str, environment: Mapping[str, str]) -> SecretSink:
    from reconciler.apply.command import Command
    from reconciler.apply.exec_sinks import ExecBatchSink

    return ExecBatchSink(Command(rest, environment), _parallel("exec-batch", settings))


def _folder(kind: str, written: str, environment: Mapping[str, str]) -> Path:
    """Return a folder; ``~`` in front is the home folder, which no shell has put there yet."""
    first, _, rest = written.partition("/")
    if not first.startswith("~"):
        return Path(written)
    if first != "~":
        raise UsageError(
            f"{kind}:{written}: only ~/ is the home folder",
            remedy=f"Write the path in full, or {kind}:./{written} for a folder of that name.",
        )
    home = environment.get("HOME", "")
    if not home.startswith("/"):
        raise UsageError(
            f"{kind}:{written} is in the home folder, and HOME does not say where that is",
            remedy="Set HOME to an absolute path, or write the path in full.",
        )
    return Path(home) / rest


def _parallel(kind: str, settings: str) -> int:
    """Return how many processes may run at once; 1 where nothing is said."""
    if not settings:
        return 1
    found = re.fullmatch(r"parallel=([1-9][0-9]?)", settings, re.ASCII)
    if found is None or int(found[1]) > MOST_AT_ONCE:
        raise UsageError(
            f"{kind}: does not know {settings}",
            remedy=f"Write '{kind}?parallel=N:COMMAND', N being 1 to {MOST_AT_ONCE}.",
        )
    return int(found[1])


_OPENERS: Mapping[str, Callable[[str, str, Mapping[str, str]], SecretSink]] = {
    "file": _file,
    "age": _age,
    "exec": _exec,
    "exec-batch": _exec_batch,
}
_COMMANDS = frozenset({"exec", "exec-batch"})
