"""A configuration held against a trusted one: what decides over credentials and approval.

A pull request can write ``reconciler.yaml``. It may give variables other values, which the plan
shows. It may not choose the service, the tree or the protection of an environment by which it is
judged itself: those count once they are in the trusted file, that of the target branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.resources.shard import DEFAULT_TREE


class Difference(NamedTuple):
    """One difference between a configuration and the trusted one.

    Attributes:
        name: ``service``, ``tree`` or ``protected``; empty where the whole environment is new or
            gone.
        trusted: The value that counts, in words.
        proposed: The value in its place, in words.
        place: Where the proposed value is written, or its environment if it is not.
    """

    environment: str
    name: str
    trusted: str
    proposed: str
    place: SourceLocation


def differences(trusted: Configuration, proposed: Configuration) -> Iterator[Difference]:
    """Yield what a configuration says differently from the trusted one, by environment."""
    for name, environment in proposed.environments.items():
        before = trusted.environments.get(name)
        if before is None:
            yield Difference(name, "", "missing", "there", environment.location)
            continue
        values, wanted = _deciding(before), _deciding(environment)
        for field, value in wanted.items():
            if value != values[field]:
                place = environment.place(field)
                yield Difference(name, field, values[field], value, place)
    for name in trusted.environments.keys() - proposed.environments.keys():
        yield Difference(name, "", "there", "missing", SourceLocation(proposed.file))


def _deciding(environment: Environment) -> Mapping[str, str]:
    """Return the values that decide where a plan goes and who approves it, as text."""
    return {
        "service": environment.service or "a store of its own",
        "tree": environment.tree or DEFAULT_TREE,
        "protected": "true" if environment.protected else "false",
    }
