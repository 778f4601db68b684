"""The checks of ``reconciler doctor``, in the order of their lines; those of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from reconciler.apply.sinks import open_sink
from reconciler.cli.clients import sink_address
from reconciler.cli.configured import configured
from reconciler.cli.doctor_line import Check, Status, Told, in_words, not_checked
from reconciler.cli.doctor_service import (
    UNKNOWN_SERVICE,
    Setup,
    look_at_address,
    look_at_certificate,
    look_at_clock,
    look_at_lock,
    look_at_rights,
    look_at_service,
    look_at_token,
)
from reconciler.cli.manifests import branch_of, commit_of
from reconciler.cli.options import CONFIGURING, places_of_variables, settled, shown_sink
from reconciler.cli.settings import INTERNAL, KNOWN, PREFIX, hint_at, misspelt
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidConfigurationError, LocalFileError, ReconcilerError, UsageError
from reconciler.manifests.files import git_root
from reconciler.resources.installation import WHEEL


def look_at_configuration(setup: Setup) -> Told:
    """Check the configuration, and say which environment and which values were chosen."""
    for name in CONFIGURING:
        if name in setup.wrong:
            raise _first_finding(setup.wrong[name])
    chosen = configured()
    if chosen.configuration is None:
        return Told("no reconciler.yaml, which one service alone does not need", {"file": None})
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
        place = next(each.origin for each in settled(setup.context) if each.name == "env")
        text = f"{file}; environment {chosen.name} from {place}{protected}"
    else:
        text = f"{file}; no environment is chosen of {', '.join(environments)}"
    values = "".join(f"; {name} from {place}" for name, place in places_of_variables().items())
    return Told(text + values, facts)


def _first_finding(failure: ReconcilerError | click.UsageError) -> Exception:
    """Return what is wrong with the configuration: its first finding, and how many follow."""
    if not isinstance(failure, InvalidConfigurationError):
        return failure
    first, *more = [each for each in failure.diagnostics if each.is_error]
    also = f" (and {len(more)} more: reconciler validate)" if more else ""
    return UsageError(f"{_placed(first)}{also}", remedy=first.remedy)


def _placed(finding: Diagnostic) -> str:
    return f"{finding.location}: {finding.summary}" if finding.location else finding.summary


def look_at_settings(setup: Setup) -> Told:
    """Say the value of each option that is set, and where it is from."""
    wrong = [in_words(failure) for name, failure in setup.wrong.items() if name not in CONFIGURING]
    if wrong:
        raise _all_of(wrong)
    found = [each for each in settled(setup.context) if each.name not in {*CONFIGURING, "format"}]
    facts = {each.name: {"value": each.shown, "from": each.origin} for each in found}
    return Told("; ".join(map(str, found)), facts)


def _all_of(wrong: Sequence[tuple[str, str]]) -> UsageError:
    """Return one error for several: each problem, and each remedy once."""
    problems, remedies = zip(*wrong, strict=True)
    return UsageError("; ".join(problems), remedy=" ".join(dict.fromkeys(remedies)))


def look_at_environment(setup: Setup) -> Told:
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
        return Told(text, facts, Status.WARNING, "Unset it, unless another program reads it.")
    return Told(f"{', '.join(names)} set" if names else f"no {PREFIX}* variable is set", facts)


_EMPTY = "Give it a value, or unset it. In CI: check that its secret or variable exists."


def look_at_sink(setup: Setup) -> Told:
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
        return Told(f"{shown} can be made", {"address": shown})
    sink.prove()
    return Told(f"{shown} takes secrets", {"address": shown})


def _require_writable(folder: Path) -> None:
    """Check that a folder can be made. It is not: nothing is left behind.

    Raises:
        LocalFileError: it cannot.
    """
    above = next(path for path in folder.absolute().parents if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise LocalFileError(
            f"cannot make the folder {folder}: {above} cannot be written to",
            remedy="Name a folder that this user may make: --secrets-to file:DIR.",
        )


def look_at_git(_: Setup) -> Told:
    """Find the Git root and the branch."""
    root = git_root(_here())
    if root is None:
        return not_checked(
            "no Git root here or above: plans name no commit", root=None, branch=None, commit=None
        )
    branch, commit = branch_of(root), commit_of(root)
    facts = {"root": str(root), "branch": branch or None, "commit": commit or None}
    if not branch and not commit:
        text = f"{root / '.git'} names neither a branch nor a commit"
        return Told(text, facts, Status.WARNING, "Run `git status` there to see what it lacks.")
    where = f"branch {branch}" if branch else "no branch"
    return Told(f"{root}, {where}, {f'commit {commit[:12]}' if commit else 'no commit yet'}", facts)


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as failure:
        raise LocalFileError(
            "the current folder is gone", remedy="Change to a folder that exists."
        ) from failure


def look_at_ci_files(_: Setup) -> Told:
    """Compare the CI files that ``init`` wrote with those that this version writes."""
    from reconciler.cli.init import TOOL, set_ups
    from reconciler.cli.own_wheel import REQUIREMENTS

    used: list[str] = []
    other: list[str] = []
    for name, target, forms in set_ups():
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
        return Told(f"{', '.join(used)}: as this version writes them", facts)
    text = f"{', '.join(other)}: not as this version writes it"
    return Told(text, facts, Status.WARNING, _COMPARE)


def _differing(files: Mapping[Path, bytes]) -> Sequence[str]:
    """Return the files that are not there as they would be written."""
    return [
        str(path)
        for path, content in files.items()
        if not path.is_file() or path.read_bytes() != content
    ]


_COMPARE = (
    "Run `reconciler init` with the same flags in an empty folder, and take over what differs and "
    "is not your own change."
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
