"""``reconciler doctor``: what is set up, where each value came from, and what is wrong with it.

Each check is a line: what was found, or what is wrong and what to do. A check that fails keeps no
other from being made, except those that need what it looked for. Nothing is written, but for the
probe of a sink, which is removed.
"""

from __future__ import annotations

import os
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from reconciler import __version__
from reconciler.apply.sinks import open_sink
from reconciler.cli.clients import STATE, holds_anything, http_wire, remote_service, sink_address
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection, is_embedded, is_file, is_remote, store_path
from reconciler.cli.git import branch_of, commit_of
from reconciler.cli.options import (
    CONFIGURING,
    command,
    places_of_variables,
    settled,
    shown_sink,
    wrong_options,
)
from reconciler.cli.output import draw, time_in_words
from reconciler.cli.process import ExitCode
from reconciler.cli.settings import INTERNAL, KNOWN, PREFIX, hint_at, misspelt
from reconciler.diagnostics import listed
from reconciler.errors import InvalidConfigurationError, LocalFileError, ReconcilerError, UsageError
from reconciler.manifests.files import git_root
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.layout import Forms, Layout, in_json, wrapped
from reconciler.report.visible import shown_address, visible
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.installation import WHEEL
from reconciler.resources.ref import fold
from reconciler.service_client.locks import LocalLock, holder_in_words, this_process
from reconciler.service_client.read_only import OperationsReader, ReadOnlyWire
from reconciler.service_client.wire import Wire, WireRefusal, answers_of, service_error

if TYPE_CHECKING:
    from reconciler.service.build import IdentityService
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.http_wire import Reached


class Status(StrEnum):
    """The result of a check, the worst one last."""

    OK = "ok"
    NOT_CHECKED = "not checked"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check.

    Attributes:
        facts: The same for programs; None for what the service does not report.
        remedy: What to do, where the status is not ok.
    """

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.OK
    remedy: str = ""


class Check(NamedTuple):
    """A check.

    Attributes:
        look: Returns what it found, or raises what is wrong.
        needs: Names of the checks before it without which it cannot be made.
    """

    name: str
    look: Callable[[Any], Result]
    needs: tuple[str, ...] = ()


def not_checked(why: str, **facts: Any) -> Result:
    """Return that there is nothing to look at, and why."""
    return Result(why, facts, Status.NOT_CHECKED)


_LACKING = (Status.FAILED, Status.NOT_CHECKED)


def examine(checks: Sequence[Check], about: object) -> Mapping[str, Result]:
    """Make every check, and return by its name what each found, in their order."""
    done: dict[str, Result] = {}
    for check in checks:
        missing = next((name for name in check.needs if done[name].status in _LACKING), None)
        if missing is None:
            done[check.name] = _look(check, about)
        else:
            has_failed = done[missing].status is Status.FAILED
            done[check.name] = not_checked(f"see {missing}" if has_failed else done[missing].text)
    return done


def _look(check: Check, about: object) -> Result:
    """Return what a check found. It failed where it raised, with its problem as the text."""
    try:
        return check.look(about)
    except (ReconcilerError, click.UsageError) as failure:
        problem, remedy = in_words(failure)
    except OSError as failure:
        if failure.filename is None and isinstance(failure, FileNotFoundError):  # of getcwd
            problem, remedy = "the current folder is gone", "Change to a folder that exists."
        else:
            problem = f"cannot look at {failure.filename}: {failure.strerror}"
            remedy = "Let this user read it."
    return Result(problem, status=Status.FAILED, remedy=remedy)


def in_words(failure: ReconcilerError | click.UsageError) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    if isinstance(failure, ReconcilerError):
        return failure.problem, failure.remedy
    return failure.format_message().rstrip("."), _CORRECT


_CORRECT = "Correct the option, or the variable that it was read from."


DAY = 24 * 60 * 60  # seconds
ENDS_SOON = 14 * DAY
CLOCKS_AGREE = 30  # seconds; a signed statement or an approval is not judged more exactly
UNKNOWN_SERVICE = "it is not known which service is meant"
NOT_REPORTED = "not reported by the service"


@dataclass
class Setup:
    """All that is examined, each part opened once and when it is first needed.

    Attributes:
        wrong: What is wrong with options, by the names of their values.
        opened: Closes what was opened.
    """

    context: click.Context
    connection: Connection
    secrets_to: str | None
    wrong: Mapping[str, ReconcilerError | click.UsageError]
    opened: ExitStack

    @property
    def knows_service(self) -> bool:
        """Return whether the address is the one that another command would use."""
        is_configured = not any(name in self.wrong for name in CONFIGURING)
        source = self.context.get_parameter_source("service")
        return "service" not in self.wrong and (
            is_configured or source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
        )

    @cached_property
    def reached(self) -> Reached:
        """Look at the service over HTTP, without a token."""
        from reconciler.service_client.credentials import NoToken

        with closing(http_wire(self.connection, NoToken())) as wire:
            return wire.reach()

    @cached_property
    def remote(self) -> RemoteService:
        """Open the service over HTTP."""
        return self.opened.enter_context(remote_service(self.connection))

    @cached_property
    def store(self) -> IdentityService:
        """Open the service of an embedded store."""
        from reconciler.cli.embedded import open_service

        return self.opened.enter_context(open_service(self.connection, read_only=True))

    @cached_property
    def wire(self) -> Wire:
        """Return the wire to the service, on which nothing is written."""
        if is_remote(self.connection.service):
            return ReadOnlyWire(self.remote.wire)
        from reconciler.cli.embedded import InProcessWire

        return ReadOnlyWire(InProcessWire(self.store))

    @cached_property
    def is_ours(self) -> bool:
        """Return whether it is a service of ours."""
        if not is_remote(self.connection.service):
            return True
        from reconciler.service_client.client import is_ours

        return is_ours(self.remote)

    @cached_property
    def info(self) -> dict[str, Any]:
        """Return what a service of ours reports of itself and of its caller."""
        return dict(answers_of(self.wire, [Call("GetServiceInfo")])[0])


def look_at_address(setup: Setup) -> Result:
    """Check that something answers at the address, or that its store is there."""
    service = setup.connection.service
    if not setup.knows_service:
        return not_checked(UNKNOWN_SERVICE)
    shown = shown_address(service)
    facts = {"address": shown}
    if not is_remote(service):
        place = str(store_path(service)) if is_file(service) else shown
        holds = "a store" if holds_anything(service) else "no store yet: apply makes it"
        if is_file(service) or setup.connection.seal_key_file:
            return Result(f"{place} holds {holds}", facts)
        remedy = "To apply, give --seal-key-file FILE: all that write to a database share one key."
        return Result(f"{place} holds {holds}", facts, Status.WARNING, remedy)
    if setup.reached.failure and not setup.reached.is_untrusted:
        raise setup.reached.failure
    return Result(f"{shown} answers", facts)


def look_at_certificate(setup: Setup) -> Result:
    """Check the certificate of the service."""
    service = setup.connection.service
    if not service.startswith("https:"):
        where = (
            "http is for this machine alone" if is_remote(service) else "the store is opened here"
        )
        return Result(f"none is needed: {where}", {"ends": None})
    if setup.reached.failure:
        raise setup.reached.failure
    ends = ssl.cert_time_to_seconds(setup.reached.certificate_ends)
    left = int(ends - time.time())
    text, facts = f"valid until {time_in_words(ends)}, {_days(left)}", {"ends": time_in_words(ends)}
    if left < ENDS_SOON:
        return Result(text, facts, Status.WARNING, "Renew it on the server.")
    return Result(text, facts)


def _days(seconds: int) -> str:
    days = seconds // DAY
    return "less than a day from now" if days < 1 else f"{days} day{'s' * (days > 1)} from now"


def look_at_clock(setup: Setup) -> Result:
    """Compare this machine's clock with that of the service."""
    if not is_remote(setup.connection.service):
        return Result("none is compared: the store is opened here", {"ahead_seconds": None})
    try:
        theirs = parsedate_to_datetime(setup.reached.date)
    except (TypeError, ValueError):
        return not_checked(NOT_REPORTED, ahead_seconds=None)
    # A date that names no zone is in UTC (RFC 9110).
    at = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    ahead = round((datetime.now(UTC) - at).total_seconds())
    facts = {"ahead_seconds": ahead}
    if abs(ahead) <= CLOCKS_AGREE:
        return Result("as the service's, to a few seconds", facts)
    how = f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} the service's"
    return Result(f"this machine's clock is {how}", facts, Status.FAILED, _SET_CLOCK)


_SET_CLOCK = (
    "Set the clock that is wrong: tokens, approvals and certificates are judged by the time."
)


def look_at_token(setup: Setup) -> Result:
    """Check that there is a token that may be sent to the service, and say where it is from."""
    connection = setup.connection
    for name in {"token_file", "key_file"} & setup.wrong.keys():
        raise setup.wrong[name]
    if not setup.knows_service:
        return not_checked(UNKNOWN_SERVICE)
    if is_embedded(connection.service):
        return Result("none is needed: who may write the store may do everything", {"from": None})
    from reconciler.cli.login import credentials_of
    from reconciler.service_client.credentials import NoToken
    from reconciler.service_client.endpoint import parse_endpoint

    credentials, way = credentials_of(connection, parse_endpoint(connection.service))
    if isinstance(credentials, NoToken):
        raise credentials.refusal()
    return Result(f"from {way}", {"from": way})


def look_at_service(setup: Setup) -> Result:
    """Check what kind of service it is, and its version."""
    service = setup.connection.service
    if is_embedded(service) and not holds_anything(service):
        return not_checked("there is no store yet")
    if not setup.is_ours:
        return _zitadel(setup)
    version, instance = str(setup.info.get("version")), str(setup.info.get("instance"))
    facts = {"kind": "reconciler", "version": version, "instance": instance}
    other = "" if version == __version__ else f", this program {__version__}"
    return Result(f"reconciler {version}{other}; its id is {instance}", facts)


def _zitadel(setup: Setup) -> Result:
    from reconciler.service_client.zitadel.client import ask_generation

    client = _zitadel_client(setup)
    generation = ask_generation(setup.wire)
    if not generation:
        (reply,) = setup.wire.send([Call("GetIAM")])
        if isinstance(reply, WireRefusal):
            raise service_error(reply)
    words = {4: "from 4.0 on", 3: "before 4.0"}.get(generation, "of an unknown generation")
    instance = client.instance()
    facts = {"kind": "zitadel", "version": None, "generation": generation, "instance": instance}
    return Result(f"a ZITADEL {words}, its version is {NOT_REPORTED}; its id is {instance}", facts)


def _zitadel_client(setup: Setup) -> Any:
    from reconciler.service_client.client import read_only_client

    return read_only_client(setup.remote)


def look_at_rights(setup: Setup) -> Result:
    """Find out the role of the token, the organizations that it sees, and its end."""
    if is_embedded(setup.connection.service):
        return Result(
            "every right, without an end", {"role": None, "organizations": None, "ends": None}
        )
    if not setup.is_ours:
        return _rights_at_zitadel(setup)
    role, expires = setup.info.get("role"), setup.info.get("expires")
    sees_all = setup.info.get("allOrganizations") is True
    names = None if sees_all else OperationsReader(setup.wire).organizations()
    facts = {"role": role, "organizations": names, "ends": expires or None}
    return Result(f"role {role}, {_organizations(names)}, end {expires or 'never'}", facts)


def _rights_at_zitadel(setup: Setup) -> Result:
    from reconciler.service_client.zitadel.roles import roles_of_user

    names = _zitadel_client(setup).organizations()
    roles = roles_of_user(setup.wire)
    shown = NOT_REPORTED if roles is None else ", ".join(roles) or "none"
    facts = {"role": roles, "organizations": names, "ends": None}
    return Result(f"roles {shown}; {_organizations(names)}; end {NOT_REPORTED}", facts)


_SHOWN = 10  # names


def _organizations(names: Sequence[str] | None) -> str:
    if names is None:
        return "all organizations"
    if not names:
        return "no organization"
    return f"organization{'s' * (len(names) > 1)} {listed(names, _SHOWN)}"


def look_at_lock(setup: Setup) -> Result:
    """Find out who holds the lock, where that can be seen without taking it."""
    if is_embedded(setup.connection.service):
        held = _held_leases(setup)
    elif setup.is_ours:
        return not_checked(f"{NOT_REPORTED}; apply says who holds it", held_by=None)
    else:
        locks = LocalLock(STATE, this_process())
        holder = locks.holder(_zitadel_client(setup).instance())
        held = [f"by {holder}"] if holder else []
    if not held:
        return Result("free", {"held_by": []})
    wait = "Wait until it is done, or give apply --lock-timeout."
    return Result(f"held {'; '.join(held)}", {"held_by": held}, Status.WARNING, wait)


def _held_leases(setup: Setup) -> Sequence[str]:
    """Return which organizations of a store are locked, and by whom."""
    names = OperationsReader(setup.wire).organizations()
    now, here = time.time_ns() // 1000, this_process()
    with setup.store.store.snapshot() as view:
        leases = [(name, view.lease(fold(name))) for name in names]
    return [
        f"for {name} by {holder_in_words(lease.holder)} since "
        f"{time_in_words(lease.acquired_at // 1_000_000)}"
        for name, lease in leases
        if lease and lease.token and lease.expires_at > now and not here.knows_dead(lease.holder)
    ]


def look_at_configuration(setup: Setup) -> Result:
    """Check the configuration, and say which environment and which values were chosen."""
    for name in CONFIGURING:
        if name in setup.wrong:
            raise _first_finding(setup.wrong[name])
    chosen = configured()
    if chosen.configuration is None:
        return Result("no reconciler.yaml, which one service alone does not need", {"file": None})
    environments, file = [*chosen.configuration.environments], chosen.configuration.file
    facts = {
        "file": file,
        "environments": environments,
        "environment": chosen.name or None,
        "protected": chosen.is_protected,
        "variables": places_of_variables(),
    }
    if not environments:
        text = f"{file}, without environments"
    elif chosen.name:
        protected = ", protected" if chosen.is_protected else ""
        place = settled(setup.context)["env"].origin
        text = f"{file}; environment {chosen.name} from {place}{protected}"
    else:
        text = f"{file}; no environment is chosen of {', '.join(environments)}"
    values = "".join(f"; {name} from {place}" for name, place in places_of_variables().items())
    return Result(text + values, facts)


def _first_finding(failure: ReconcilerError | click.UsageError) -> Exception:
    """Return what is wrong with the configuration: its first finding, and how many follow."""
    if not isinstance(failure, InvalidConfigurationError):
        return failure
    first, *more = [each for each in failure.diagnostics if each.is_error]
    also = f" (and {len(more)} more: reconciler validate)" if more else ""
    place = f"{first.location}: " if first.location else ""
    return UsageError(f"{place}{first.summary}{also}", remedy=first.remedy)


def look_at_settings(setup: Setup) -> Result:
    """Say the value of each option that is set, and where it is from."""
    wrong = [in_words(failure) for name, failure in setup.wrong.items() if name not in CONFIGURING]
    if wrong:
        raise _all_of(wrong)
    facts = {
        name: {"value": each.shown, "from": each.origin}
        for name, each in settled(setup.context).items()
        if name not in {*CONFIGURING, "format"}
    }
    shown = (f"{name} {each['value']} from {each['from']}" for name, each in facts.items())
    return Result("; ".join(shown), facts)


def _all_of(wrong: Sequence[tuple[str, str]]) -> UsageError:
    """Return one error for several: each problem, and each remedy once."""
    problems, remedies = zip(*wrong, strict=True)
    return UsageError("; ".join(problems), remedy=" ".join(dict.fromkeys(remedies)))


def look_at_environment(setup: Setup) -> Result:
    """Check the variables of the process whose names begin with ``RECONCILER_``."""
    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    wrong = [(f"{name} is set and empty", _EMPTY) for name in names if not os.environ[name]]
    wrong += [(f"no option reads {name}", hint_at(meant)) for name, meant in misspelt(os.environ)]
    if wrong:
        raise _all_of(wrong)
    facts = {"variables": names}
    unread = [name for name in names if name not in KNOWN and not name.startswith(INTERNAL)]
    if unread:
        text = f"no command reads {', '.join(unread)}"
        return Result(text, facts, Status.WARNING, "Unset it, unless another program reads it.")
    return Result(f"{', '.join(names)} set" if names else f"no {PREFIX}* variable is set", facts)


_EMPTY = "Give it a value, or unset it. In CI: check that its secret or variable exists."


def look_at_sink(setup: Setup) -> Result:
    """Prove that client secrets can be delivered."""
    if not setup.knows_service:
        return not_checked(UNKNOWN_SERVICE)
    address = sink_address(setup.connection, setup.secrets_to)
    if not address:
        why = "none is chosen: a plan that makes client secrets needs --secrets-to"
        return not_checked(why, address=None)
    sink, shown = open_sink(address, os.environ), shown_sink(address)
    folder: Path | None = getattr(sink, "folder", None)
    if folder is not None and not folder.exists():
        _require_writable(folder)
        return Result(f"{shown} can be made", {"address": shown})
    sink.prove()
    return Result(f"{shown} takes secrets", {"address": shown})


def _require_writable(folder: Path) -> None:
    """Check that a folder can be made. It is not: nothing is left behind."""
    above = next(path for path in folder.absolute().parents if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise LocalFileError(
            f"cannot make the folder {folder}: {above} cannot be written to",
            remedy="Name a folder that this user may make: --secrets-to file:DIR.",
        )


def look_at_git(_: Setup) -> Result:
    """Find the Git root and the branch."""
    root = git_root(Path.cwd())
    if root is None:
        return not_checked(
            "no Git root here or above: plans name no commit", root=None, branch=None, commit=None
        )
    branch, commit = branch_of(root), commit_of(root)
    facts = {"root": str(root), "branch": branch or None, "commit": commit or None}
    if not branch and not commit:
        text = f"{root / '.git'} names neither a branch nor a commit"
        return Result(text, facts, Status.WARNING, "Run `git status` there to see what it lacks.")
    where = f"branch {branch}" if branch else "no branch"
    return Result(
        f"{root}, {where}, {f'commit {commit[:12]}' if commit else 'no commit yet'}", facts
    )


def look_at_ci_files(_: Setup) -> Result:
    """Compare the CI files that ``init`` wrote with those that this version writes."""
    from reconciler.cli.ci_jobs import set_ups
    from reconciler.cli.own_wheel import REQUIREMENTS, TOOL

    used: list[str] = []
    other: list[str] = []
    try:
        known = list(set_ups())
    except UsageError as failure:  # init would refuse to write any
        return not_checked(failure.problem)
    for name, target, forms in known:
        own = [path for path in forms[0] if path.parent.name != TOOL]
        if not any(path.is_file() for path in own):  # other trees share the tool's folder
            continue
        used.append(name)
        least = min(map(_differing, forms), key=len)
        other += least
        requirements = target / TOOL / REQUIREMENTS
        if requirements.is_file() and WHEEL.encode() not in requirements.read_bytes():
            other.append(str(requirements))
    facts = {"used": used, "other": other}
    if not used:
        return not_checked("none: reconciler init --github, --gitlab or --git-hooks", **facts)
    if not other:
        return Result(f"{', '.join(used)}: as this version writes them", facts)
    text = f"{', '.join(other)}: not as this version writes it"
    return Result(text, facts, Status.WARNING, _COMPARE)


def _differing(files: Mapping[Path, bytes]) -> Sequence[str]:
    """Return the files that are not there as they would be written."""
    return [
        str(path)
        for path, content in files.items()
        if not path.is_file() or path.read_bytes() != content
    ]


_COMPARE = (
    "In a copy of the repository, remove what `reconciler init` wrote for CI and Git hooks, run it "
    "there with the same flags, and take over what differs and is not your own change."
)

CHECKS = (
    Check("configuration", look_at_configuration),
    Check("settings", look_at_settings),
    Check("variables", look_at_environment),
    Check("address", look_at_address),
    Check("certificate", look_at_certificate, ("address",)),
    Check("clock", look_at_clock, ("certificate",)),
    Check("token", look_at_token),
    Check("service", look_at_service, ("certificate", "token")),
    Check("rights", look_at_rights, ("service",)),
    Check("lock", look_at_lock, ("service",)),
    Check("sink", look_at_sink),
    Check("git", look_at_git),
    Check("ci", look_at_ci_files, ("configuration",)),
)


_COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.FAILED: "red",
    Status.NOT_CHECKED: "dim",
}
_STATUS_WIDTH = max(len(status) for status in Status) + 2
_NAME_WIDTH = max(len(check.name) for check in CHECKS) + 2


def _as_text(found: Mapping[str, Result], layout: Layout) -> str:
    counts = Counter(result.status for result in found.values())
    counted = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    return "\n".join([*(_line(name, result, layout) for name, result in found.items()), counted])


def _line(name: str, result: Result, layout: Layout) -> str:
    remedy = f". {result.remedy}" if result.remedy else ""
    head = f"{result.status:<{_STATUS_WIDTH}}{name:<{_NAME_WIDTH}}"
    text = wrapped(visible(f"{head}{result.text}{remedy}"), layout.width, " " * len(head))
    return (
        layout.style(text[: len(result.status)], _COLOURS[result.status])
        + text[len(result.status) :]
    )


def _has_failed(found: Iterable[Result]) -> bool:
    return any(result.status is Status.FAILED for result in found)


def _as_json(found: Mapping[str, Result]) -> JsonObject:
    return {
        "format_version": FORMAT_VERSION,
        "healthy": not _has_failed(found.values()),
        "checks": [
            {
                "name": name,
                "status": result.status.value.replace(" ", "_"),
                "text": result.text,
                "remedy": result.remedy,
                "facts": result.facts,
            }
            for name, result in found.items()
        ],
    }


_FORMS: Forms[Mapping[str, Result]] = {"text": _as_text, "json": in_json(_as_json)}


@command("doctor", example="--env production", formats=(*_FORMS,), is_tolerant=True)
def doctor_command(connection: Connection, tree: str, secrets_to: str | None, form: str) -> int:
    """Check what is set up: configuration, service, token, sink, clock, Git and CI files.

    One line each: ok, or what to do. Nothing is written but a probe of the sink, which is removed.
    """
    context = click.get_current_context()
    with ExitStack() as opened:
        setup = Setup(context, connection, secrets_to, wrong_options(context), opened)
        found = examine(CHECKS, setup)
    draw(_FORMS[form], found)
    return ExitCode.ERROR if _has_failed(found.values()) else ExitCode.DONE
