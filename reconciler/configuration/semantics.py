"""Rules of ``reconciler.yaml`` that no schema can state, and differences from a trusted one.

A pull request can write the file, so it never directs a credential and never leads out of the
repository. It may give variables other values, which the plan shows. It may not choose the service,
the tree or the protection of an environment by which it is judged itself: those count once they
are in the trusted file, that of the target branch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.configuration.model import OWN_STORE, SQLITE, Configuration, Environment
from reconciler.configuration.values import undeclared, value_problem
from reconciler.diagnostics import Diagnostic, SourceLocation, cut, error
from reconciler.manifests.files import leads_out
from reconciler.manifests.manifest import Manifest
from reconciler.manifests.placeholders import VariableValue
from reconciler.resources.installation import SECRETS, STATE_FOLDER
from reconciler.resources.nearest import nearest
from reconciler.resources.origin import as_localhost, parse_origin
from reconciler.resources.ref import DEFAULT_TREE
from reconciler.resources.schemas import RECOMMENDED
from reconciler.validation.schema import PatternError, matcher

_ADDRESS = (
    "Write https://HOST[:PORT][/PATH] without a user, http:// for this machine alone, or "
    "sqlite:PATH beneath the repository. PostgreSQL is named outside, with --service: its password "
    "comes from elsewhere."
)

_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~-]+)*/?", re.ASCII)


def semantic_findings(configuration: Configuration, document: Manifest) -> Iterator[Diagnostic]:
    """Yield what is wrong with a configuration that fits its schema.

    Args:
        configuration: What was read.
        document: The document that it was read from, for places.
    """
    yield from _variable_findings(configuration)
    yield from _nested_overlays(configuration)
    manifests = _Folder(configuration, configuration.manifests)
    if not manifests.is_inside:
        yield _outside("manifests", document.place("manifests"))
    yield from _policy_findings(configuration, document, manifests)
    for environment in configuration.environments.values():
        if environment.service:
            yield from _service_findings(configuration, environment)
        yield from _state_findings(configuration, environment)
        if environment.overlay:
            yield from _overlay_findings(configuration, environment, manifests)
    yield from _twins(configuration)
    yield from _order_findings(configuration)


def _variable_findings(configuration: Configuration) -> Iterator[Diagnostic]:
    for variable in configuration.variables.values():
        try:
            if variable.pattern:
                matcher(variable.pattern)
        except PatternError:
            yield error(
                "CONFIG-PATTERN",
                f"the pattern of {variable.name} cannot be used",
                "Write a regular expression without looking around or back, such as ^[a-z.]+$.",
                variable.location,
            )
        if variable.default is not None:
            yield from _value_findings(configuration, variable.name, variable.default)
    for environment in configuration.environments.values():
        for name, value in environment.variables.items():
            yield from _value_findings(configuration, name, value)


def _value_findings(
    configuration: Configuration, name: str, value: VariableValue
) -> Iterator[Diagnostic]:
    variable = configuration.variables.get(name)
    if variable is None:
        yield undeclared(name, configuration.variables).at(value.origin)
    elif problem := value_problem(variable, value.value):
        yield problem.at(value.origin)


class _Folder:
    """A folder or file that the configuration names, with links followed."""

    def __init__(self, configuration: Configuration, written: str) -> None:
        # What is used later is the normal form, too: it must be the path that is checked here.
        self.path = Path(os.path.realpath(os.path.normpath(configuration.folder / written)))
        is_absolute = Path(written).is_absolute()
        self.is_inside = not (is_absolute or leads_out(self.path, configuration.repository))

    def overlaps(self, other: Path) -> bool:
        """Return whether one of two folders is in the other, or both are the same."""
        return self.path.is_relative_to(other) or other.is_relative_to(self.path)


def _outside(name: str, place: SourceLocation) -> Diagnostic:
    return error(
        "CONFIG-OUTSIDE",
        f"{name} leads out of the repository",
        "Write a path from the folder of this file to one in the same repository.",
        place,
    )


def _service_findings(
    configuration: Configuration, environment: Environment
) -> Iterator[Diagnostic]:
    service, place = environment.service, environment.place("service")
    if service.startswith(SQLITE):
        store = service.removeprefix(SQLITE)
        if store.startswith("~"):
            yield error(
                "CONFIG-SERVICE",
                "~ is not the home folder here",
                "Write a path from the folder of this file; sqlite:./ and the name where it begins "
                "with ~.",
                place,
            )
        elif not store or not _Folder(configuration, store).is_inside:
            yield _outside("service", place)
    elif not _is_address(service):
        yield error("CONFIG-SERVICE", "this cannot be the service here", _ADDRESS, place)


def _state_findings(configuration: Configuration, environment: Environment) -> Iterator[Diagnostic]:
    """Yield an error if an environment's own state leads out of the repository through a link."""
    state = f"{STATE_FOLDER}/{environment.name}"
    paths = (state, f"{state}/{OWN_STORE}", f"{state}/{SECRETS}")
    if not all(_Folder(configuration, path).is_inside for path in paths):
        yield error(
            "CONFIG-OUTSIDE",
            f"{state} leads out of the repository",
            "Remove the link: the store, the journals and the secrets of the environment are kept "
            "there.",
            environment.location,
        )


def _is_address(service: str) -> bool:
    """Return whether an address is https, or http to this machine, and holds nothing secret."""
    scheme, _, rest = service.partition("://")
    host, slash, path = rest.partition("/")
    try:
        origin = parse_origin(f"{scheme}://{host}")
    except ValueError:
        return False
    is_safe = scheme == "https" or (scheme == "http" and origin.is_loopback)
    return is_safe and _PATH.fullmatch(slash + path) is not None


def _overlay_findings(
    configuration: Configuration, environment: Environment, manifests: _Folder
) -> Iterator[Diagnostic]:
    overlay, place = _Folder(configuration, environment.overlay), environment.place("overlay")
    if not overlay.is_inside:
        yield _outside("overlay", place)
    elif overlay.overlaps(manifests.path):
        yield error(
            "CONFIG-OVERLAY",
            "the overlay overlaps the folder of the manifests",
            f"Put it beside {configuration.manifests}: every file is then read once.",
            place,
        )


def _policy_findings(
    configuration: Configuration, document: Manifest, manifests: _Folder
) -> Iterator[Diagnostic]:
    for at, written in enumerate(configuration.policies):
        folder, place = _Folder(configuration, written), document.place("policies", at)
        if written == RECOMMENDED:
            continue
        if not folder.is_inside:
            yield _outside("policies", place)
        elif folder.overlaps(manifests.path):
            yield error(
                "CONFIG-POLICIES",
                "the policies overlap the folder of the manifests",
                f"Put them into a folder beside {configuration.manifests}: what is in there is "
                "applied, and policies are not.",
                place,
            )


def _nested_overlays(configuration: Configuration) -> Iterator[Diagnostic]:
    """Yield an error for each overlay folder that is in, or around, one of an earlier environment.

    Several environments can have the same folder.
    """
    seen: dict[Path, Environment] = {}
    for environment in configuration.environments.values():
        if not environment.overlay:
            continue
        overlay = _Folder(configuration, environment.overlay)
        for other, first in seen.items():
            if other != overlay.path and overlay.overlaps(other):
                yield error(
                    "CONFIG-OVERLAY",
                    f"the overlay overlaps that of environment {first.name}",
                    "Put one beside the other: each file is then of one overlay.",
                    environment.place("overlay"),
                )
                break
        seen.setdefault(overlay.path, environment)


def _twins(configuration: Configuration) -> Iterator[Diagnostic]:
    """Yield an error for each environment that has service and tree of an earlier one."""
    seen: dict[tuple[str, str], Environment] = {}
    for environment in configuration.environments.values():
        service = configuration.service_of(environment)
        if service.startswith(SQLITE):
            service = os.path.realpath(service.removeprefix(SQLITE))
        key = (as_localhost(service.rstrip("/")), environment.tree or DEFAULT_TREE)
        first = seen.setdefault(key, environment)
        if first is not environment:
            yield error(
                "CONFIG-TWINS",
                f"environments {first.name} and {environment.name} have the same service and tree",
                "Give one of them another service or tree: each would delete what the other "
                "declares.",
                environment.place("service"),
            )


def _order_findings(configuration: Configuration) -> Iterator[Diagnostic]:
    """Yield an error for each ``after`` that names no environment, or closes a cycle."""
    known = configuration.environments
    for environment in known.values():
        if environment.after and environment.after not in known:
            meant = nearest(environment.after, [name for name in known if name != environment.name])
            hint = f"Did you mean {meant}?" if meant else f"Write one of {', '.join(known)}."
            yield error(
                "CONFIG-AFTER",
                f"there is no environment {cut(environment.after)} to come after",
                hint,
                environment.place("after"),
            )
        elif cycle := _cycle_of(configuration, environment):
            yield error(
                "CONFIG-AFTER",
                f"environment {environment.name} comes after itself: {' after '.join(cycle)}",
                "Take one after out: none of them would ever be applied.",
                environment.place("after"),
            )


def _cycle_of(configuration: Configuration, environment: Environment) -> Sequence[str]:
    """Return the names from an environment back to itself by ``after``; empty where it is first.

    A cycle is reported at the first of its environments only.
    """
    names, name = [environment.name], environment.after
    while name in configuration.environments and name not in names:
        names.append(name)
        name = configuration.environments[name].after
    is_first = min(names, key=list(configuration.environments).index) == environment.name
    return [*names, name] if name == environment.name and is_first else ()


class Difference(NamedTuple):
    """One difference between a configuration and the trusted one.

    Attributes:
        environment: Its name; empty for what holds in all of them, or where there are none.
        name: ``service``, ``tree``, ``protected``, ``allowPartial`` or ``policies``; empty where
            the whole environment is new or gone.
        trusted: The value that counts, in words.
        proposed: The value in its place, in words.
        place: Where the proposed value is written, or its environment if it is not.
    """

    environment: str
    name: str
    trusted: str
    proposed: str
    place: SourceLocation

    @property
    def what(self) -> str:
        """Return what differs, in words."""
        environment, name = self.environment, self.name
        if not environment:
            return "the tree" if name == "tree" else f"the list of {name}"
        return f"{name} of environment {environment}" if name else f"environment {environment}"


def differences(trusted: Configuration, proposed: Configuration) -> Iterator[Difference]:
    """Yield what a configuration says differently from the trusted one, by environment."""
    yield from _of_the_whole(trusted, proposed)
    for name, environment in proposed.environments.items():
        known = trusted.environments.get(name)
        if known is None:
            yield Difference(name, "", "missing", "there", environment.location)
            continue
        values, wanted = _deciding(known), _deciding(environment)
        for field, value in wanted.items():
            if value != values[field]:
                place = environment.place(field)
                yield Difference(name, field, values[field], value, place)
    for name in trusted.environments.keys() - proposed.environments.keys():
        yield Difference(name, "", "there", "missing", SourceLocation(proposed.file))


def _of_the_whole(trusted: Configuration, proposed: Configuration) -> Iterator[Difference]:
    if trusted.policies != proposed.policies:
        before, after = (", ".join(each.policies) or "none" for each in (trusted, proposed))
        yield Difference("", "policies", before, after, proposed.place("policies"))
    if not (trusted.environments or proposed.environments):
        before, after = (each.tree or DEFAULT_TREE for each in (trusted, proposed))
        if before != after:
            yield Difference("", "tree", before, after, proposed.place("tree"))


def _deciding(environment: Environment) -> Mapping[str, str]:
    """Return the values that decide where a plan goes and who approves it, as text."""
    return {
        "service": environment.service or "a store of its own",
        "tree": environment.tree or DEFAULT_TREE,
        "protected": "true" if environment.protected else "false",
        "allowPartial": "true" if environment.allow_partial else "false",
    }
