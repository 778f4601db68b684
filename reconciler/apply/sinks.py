"""The kinds of sinks, by the scheme of their address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from reconciler.apply.file_sink import FileSink
from reconciler.apply.sink import SecretSink
from reconciler.errors import UsageError

KINDS = "file:DIR, 'age:DIR?recipient=age1...' or exec:COMMAND"


def open_sink(address: str, environment: Mapping[str, str]) -> SecretSink:
    """Return the sink at an address; a command gets the environment, less what is ours.

    Raises:
        UsageError: there is no such kind of sink, or the address says too little.
    """
    scheme, _, rest = address.partition(":")
    if scheme not in _OPENERS or not rest:
        raise UsageError(f"{scheme}: is no place for secrets", remedy=f"Write one of {KINDS}.")
    return _OPENERS[scheme](rest, environment)


def _file(rest: str, environment: Mapping[str, str]) -> SecretSink:
    return FileSink(Path(rest))


def _age(rest: str, environment: Mapping[str, str]) -> SecretSink:
    from reconciler.apply.age_sink import AgeSink

    folder, _, query = rest.partition("?")
    settings = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    unknown = [name for name, _ in settings if name != "recipient"]
    if unknown or not folder:
        raise UsageError(
            f"age: does not know {unknown[0]}" if unknown else "age: needs a folder",
            remedy="Write 'age:DIR?recipient=age1...', with &recipient=... for each one more.",
        )
    return AgeSink(Path(folder), [value for _, value in settings])


def _exec(rest: str, environment: Mapping[str, str]) -> SecretSink:
    from reconciler.apply.exec_sink import ExecSink

    return ExecSink(rest, environment)


_OPENERS: Mapping[str, Callable[[str, Mapping[str, str]], SecretSink]] = {
    "file": _file,
    "age": _age,
    "exec": _exec,
}
