"""The kinds of sinks, by the scheme of their address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from reconciler.apply.sink import FileSink, SecretSink
from reconciler.errors import UsageError

KINDS = "file:DIR, 'age:DIR?recipient=age1...' or exec:COMMAND"


def open_sink(address: str) -> SecretSink:
    """Return the sink at an address.

    Raises:
        UsageError: there is no such kind of sink, or the address says too little.
    """
    scheme, _, rest = address.partition(":")
    if scheme not in _OPENERS or not rest:
        raise UsageError(f"{scheme}: is no place for secrets", remedy=f"Write one of {KINDS}.")
    return _OPENERS[scheme](rest)


def _age(rest: str) -> SecretSink:
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


def _exec(rest: str) -> SecretSink:
    from reconciler.apply.exec_sink import ExecSink

    return ExecSink(rest)


_OPENERS: Mapping[str, Callable[[str], SecretSink]] = {
    "file": lambda rest: FileSink(Path(rest)),
    "age": _age,
    "exec": _exec,
}
