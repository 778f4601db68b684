"""Types of arguments and options: environments, refs, reasons, durations, shards and trees.

A shell asks for completion after each Tab, so nothing there speaks to a service, prints, or fails.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from reconciler.errors import UsageError
from reconciler.kinds.fields import KINDS
from reconciler.report.visible import visible
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.ref import (
    ESCAPES_IN_WORDS,
    Kind,
    RefError,
    ResourceRef,
    Shard,
    parse_pattern,
    parse_ref,
    read_shard,
)
from reconciler.state import COMMIT

if TYPE_CHECKING:
    from reconciler.configuration.model import Configuration

T = TypeVar("T")
_PLAIN = re.compile(r"[A-Za-z0-9._/%@+-]+", re.ASCII)
"""Texts that a shell takes as one word without quotes; others are not offered."""
_DURATION = re.compile(r"(0|[1-9][0-9]{0,4})([dhms])", re.ASCII)
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
MICROS = 1_000_000  # in a second
CLOCKS_APART = 300  # seconds that the service's clock may be ahead of this one
_RUN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
MAX_LIST = 1024 * 1024  # bytes
_DECIMAL = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,3})?", re.ASCII)

(CLIENT,) = (kind for kind, row in KINDS.items() if row.secrets)
"""The kind of objects with client ids: refs of commands that are about these may leave it out."""


def _flag_of(parameter: click.Parameter | None) -> str:
    """Return the flag of an option, for an error; an argument has none."""
    return parameter.opts[0] if isinstance(parameter, click.Option) else ""


class Filled(click.ParamType[str]):
    """A text that is not empty."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not value:
            raise UsageError(
                f"{param.opts[0] if param else 'the value'} is empty",
                remedy="Give it a value, or leave it out. A variable that CI did not set is empty.",
            )
        return value


def declared_environments(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the environments of this folder that begin with these letters."""
    with suppress(Exception):
        found = _configuration()
        return [name for name in found.environments if name.startswith(incomplete)] if found else []
    return []


# The shell completes them, as it does for programs without a completion of their own.
complete_files = click.Path().shell_complete
complete_folders = click.Path(file_okay=False).shell_complete


def complete_refs_or_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the refs of the manifests that begin so; without any, the shell completes files."""
    found = RefType().shell_complete(context, parameter, incomplete) if incomplete else []
    return found or complete_files(context, parameter, incomplete)


class _OfRefs(click.ParamType[T]):
    """An argument or flag that names objects of the manifests.

    Attributes:
        kind: The only kind that is meant; a text may then leave it out.
        beyond: What stands after a ref.
    """

    kind: Kind | None = None
    beyond = ""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the refs of the manifests that begin so."""
        found = declared_refs(self.kind, incomplete)
        return [CompletionItem(f"{text}{self.beyond}") for text in found]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Return the value that a text names; one that was read already stays."""
        return self.read(value, _flag_of(param)) if isinstance(value, str) else cast("T", value)

    @abstractmethod
    def read(self, text: str, flag: str) -> T:
        """Return the value that a text names; the message of an error names ``flag``."""


class RefType(_OfRefs["ResourceRef"]):
    """An argument or flag that names one object: ``Kind/organization[/project]/name``."""

    name = "ref"

    def __init__(self, kind: Kind | None = None) -> None:
        self.kind = kind

    def read(self, text: str, flag: str) -> ResourceRef:
        return ref_named(text, flag, self.kind)


@dataclass(frozen=True, slots=True)
class Refs:
    """Addresses of objects, ``*`` in them, and the text that gave them: a REF or @FILE."""

    text: str
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as the command line reads it."""
        return self.text


class RefsType(_OfRefs["Refs"]):
    """A flag that names objects; in the environment, one on each line."""

    name = "refs"
    envvar_list_splitter = "\n"

    def read(self, text: str, flag: str) -> Refs:
        if text.startswith("@"):
            return Refs(text, tuple(_listed_in(text.removeprefix("@"), flag)))
        return Refs(text, (_address(text, flag),))


def _address(text: str, flag: str) -> str:
    try:
        return parse_pattern(text)
    except RefError as fault:
        raise UsageError(f"{flag} {fault}".lstrip(), remedy=fault.remedy) from None


def _listed_in(path: str, flag: str) -> list[str]:
    """Return the addresses in a file: one on each line, without empty lines and those with #.

    Raises:
        UsageError: the file cannot be read, or a line names nothing; or it has none, which would
            select the whole tree.
    """
    from reconciler.manifests.files import OpeningError, read_path

    remedy = "Write one REF on each line; a line that begins with # is a comment."
    try:
        lines = read_path(path, MAX_LIST).decode("utf-8-sig").splitlines()
    except OpeningError as fault:
        raise UsageError(f"{flag} @{path} {fault}", remedy=remedy) from None
    except UnicodeDecodeError:
        raise UsageError(f"{flag} @{path} is not valid UTF-8", remedy=remedy) from None
    stripped = enumerate(map(str.strip, lines), start=1)
    found = [
        _address(line, f"{flag} @{path} line {number}:")
        for number, line in stripped
        if line and not line.startswith("#")
    ]
    if not found:
        raise UsageError(f"{flag} @{path} lists nothing", remedy=remedy)
    return found


@dataclass(frozen=True, slots=True)
class BreakGlass:
    """An object that a plan may lock people out of, and why."""

    ref: ResourceRef
    reason: str

    def __str__(self) -> str:
        """Return it as the command line reads it."""
        return f"{self.ref.address}={self.reason}"


class BreakGlassType(_OfRefs["BreakGlass"]):
    """A flag of the form REF=REASON; in the environment, one on each line."""

    name = "glass"
    envvar_list_splitter = "\n"
    beyond = "="  # the reason is for a person to write

    def read(self, text: str, flag: str) -> BreakGlass:
        address, _, said = text.partition("=")
        ref, reason = ref_named(address, "--break-glass"), said.strip()
        if not reason:
            problem = "gives no reason"
        elif len(reason) > MAX_TEXTS["reason"]:
            problem = f"gives a reason of {len(reason)} characters"
        elif not reason.isprintable():
            problem = "gives a reason with characters that cannot be printed"
        else:
            return BreakGlass(ref, reason)
        raise UsageError(
            f"--break-glass {ref.address} {problem}",
            remedy=f"Write --break-glass '{ref.address}=REASON': why this may be done, in 1 to "
            f"{MAX_TEXTS['reason']} printable characters. `reconciler history` shows it. In REF, "
            f"{ESCAPES_IN_WORDS}.",
        )


def ref_named(text: str, flag: str = "", kind: Kind | None = None) -> ResourceRef:
    """Return the ref that a text names; the message of an error names ``flag``.

    Raises:
        UsageError: it names none, or could name several: they are listed.
    """
    try:
        return parse_ref(text, kind)
    except RefError as fault:
        raise UsageError(f"{flag} {fault}".lstrip(), remedy=fault.remedy) from None


def declared_refs(kind: Kind | None, incomplete: str) -> list[str]:
    """Return the refs that begin so, of those that the manifests of this folder declare.

    Of one ``kind`` they leave the kind out, unless it stands there.
    """
    short = kind is not None and not incomplete.startswith(kind.value)
    texts = sorted(
        ref.path if short else ref.address for ref in _declared() if kind in {None, ref.kind}
    )
    return [text for text in texts if text.startswith(incomplete) and _PLAIN.fullmatch(text)]


def _configuration() -> Configuration | None:
    """Return the configuration of this folder; None without one that can be used."""
    from reconciler.configuration.reading import read_configuration
    from reconciler.manifests.files import configuration_here

    path = configuration_here()
    return read_configuration(path).configuration if path else None


def _declared() -> Iterator[ResourceRef]:
    with suppress(Exception):
        from reconciler.manifests.files import DEFAULT_PATHS
        from reconciler.manifests.loader import load
        from reconciler.manifests.manifest import declared_ref

        found = _configuration()
        paths = (found.path(found.manifests),) if found else DEFAULT_PATHS
        for manifest in load(paths).manifests:
            if ref := declared_ref(manifest.document):
                yield ref


def duration_seconds(text: str) -> int:
    """Return the seconds in a duration such as ``90d``, ``24h``, ``30m`` or ``10s``; else -1."""
    found = _DURATION.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else -1


@dataclass(frozen=True)
class Duration(click.ParamType[int]):
    """A duration within limits, such as ``1h`` and ``30d``; its value is in seconds.

    Attributes:
        usual: A value that a person may write.
    """

    least: str
    most: str
    usual: str
    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds of a duration."""
        seconds, least, most = map(duration_seconds, (value, self.least, self.most))
        if least <= seconds <= most:
            return seconds
        flag = _flag_of(param)
        raise UsageError(
            f"{flag} {visible(value)!r} is not a duration from {self.least} to {self.most}",
            remedy=f"Write a whole number and its unit, d, h, m or s: {flag} {self.usual}.",
        )


@dataclass(frozen=True)
class Number(click.ParamType[float]):
    """A number from 0 on in plain digits: ``nan`` and ``inf`` would be no limit at all.

    Attributes:
        usual: A value that a person may write.
        counts: What it is, in the message of an error.
    """

    most: int
    usual: int
    counts: str = "number"
    name = "number"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        if _DECIMAL.fullmatch(value) and float(value) <= self.most:
            return float(value)
        flag = _flag_of(param)
        raise UsageError(
            f"{flag} {visible(value)!r} is not a {self.counts} from 0 to {self.most}",
            remedy=f"Write digits: {flag} {self.usual}, {flag} 0.5.",
        )


class At(NamedTuple):
    """A moment as it was given.

    Attributes:
        text: As reports show it: a time in UTC, or the id of a run.
        sequence: Of a time, in microseconds since the epoch.
        run: The id of a run; empty for a time.
    """

    text: str
    sequence: int = 0
    run: str = ""


def is_run(text: str) -> bool:
    """Return whether a text is the id of a run."""
    return _RUN.fullmatch(text) is not None


def past_moment(text: str) -> At:
    """Return the moment of a text: RFC 3339, a duration such as ``2h`` (ago), or the id of a run.

    Raises:
        UsageError: it is none of these, or a time in the future.
    """
    if is_run(text):
        return At(text, run=text)
    now = time.time()
    seconds = duration_seconds(text)
    sequence = max(0, int((now - seconds) * MICROS)) if seconds > 0 else _micros(text)
    if sequence is None:
        raise UsageError(
            f"invalid moment {visible(text)!r}",
            remedy="Write a time with its zone, such as 2026-11-22T14:30:00Z; how long ago, such "
            "as 30m, 2h or 7d; or the id of a run, which `reconciler history` shows.",
        )
    if sequence > (now + CLOCKS_APART) * MICROS:
        raise UsageError(
            f"{visible(text)} is in the future",
            remedy="Write a time that has passed. Without a zone offset, Z is UTC.",
        )
    return At(_shown(sequence), sequence)


def _micros(text: str) -> int | None:
    """Return a time of RFC 3339 in microseconds since the epoch; what is more exact is cut."""
    if not _TIME.fullmatch(text):
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text.upper())
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return max(0, (since.days * 86_400 + since.seconds) * MICROS + since.microseconds)


def _shown(sequence: int) -> str:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(sequence // MICROS, UTC).replace(microsecond=sequence % MICROS)
    return moment.isoformat().replace("+00:00", "Z")


def commit_id(text: str) -> str:
    """Return the id of a commit in full.

    Raises:
        UsageError: it is short, or no id of a commit.
    """
    if not COMMIT.fullmatch(text):
        raise UsageError(
            f"{visible(text)} is not the id of a commit in full",
            remedy="Write all of its 40 hexadecimal digits (64 with SHA-256), in small letters.",
        )
    return text


def shard_named(text: str) -> Shard:
    """Return the shard of the text of ``--shard``.

    Raises:
        UsageError: the text is not I/N.
    """
    try:
        return read_shard(text)
    except ValueError as fault:
        raise UsageError(
            f"--shard {text!r} {fault}",
            remedy="Write I/N, the first of four being 1/4. Where jobs count from 0, add 1: "
            '--shard "$((JOB_COMPLETION_INDEX + 1))/4".',
        ) from None


@dataclass(frozen=True)
class Kept(click.ParamType[str]):
    """A text that a service keeps with each write: valid UTF-8, and not longer than it takes.

    Attributes:
        flag: Its flag without dashes, and its name in the table of lengths.
        what: What it is, in the message of an error.
        if_empty: What to do about an empty one; nothing where it may be empty.
    """

    flag: str
    what: str
    if_empty: str = ""
    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if self.if_empty and not value.strip():
            raise UsageError(f"--{self.flag} is empty", remedy=self.if_empty)
        try:
            value.encode()
        except UnicodeEncodeError:
            shown = value.encode(errors="backslashreplace").decode()
            raise UsageError(
                f"--{self.flag} {shown} is not valid UTF-8",
                remedy=f"Write {self.what} in UTF-8, as the manifests are.",
            ) from None
        if len(value) > MAX_TEXTS[self.flag]:
            raise UsageError(
                f"--{self.flag} has {len(value)} characters",
                remedy=f"Write {self.what} in at most {MAX_TEXTS[self.flag]} characters.",
            )
        return value


TREE = Kept(
    "tree",
    "the name of the tree",
    "Write the name of the tree, or leave --tree out for the tree default. A variable that CI did "
    "not set is empty.",
)
REVISION = Kept("revision", "the revision")
UNDO_REASON = Kept("reason", "the reason")
PAUSE_REASON = Kept(
    "reason",
    "the reason",
    f"Say why the tree is paused, in 1 to {MAX_TEXTS['reason']} characters.",
)


def link_base(text: str) -> str:
    """Return the address of the documents, if it can stand in a link.

    Raises:
        UsageError: it cannot.
    """
    if text:
        from reconciler.report.plan_document import DOCS

        if not DOCS.fullmatch(text):
            raise UsageError(
                f"--docs {text} is not an address for links",
                remedy="Write https://HOST/PATH of letters, digits and . _ ~ : / - alone.",
            )
    return text
