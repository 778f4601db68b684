"""The content of a configuration, which ``schemas/configuration.schema.json`` judges.

Paths in it start from the folder of its file; ``Configuration.path`` gives them from the current
folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.placeholders import Layers, VariableValue
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.schemas import RECOMMENDED

SQLITE = "sqlite:"
OWN_STORE = "identity.db"
"""File of the store of an environment that names no service, in the folder of its state."""


class VariableType(StrEnum):
    """Types that a variable can be declared with."""

    STRING = "string"
    BOOLEAN = "boolean"
    NUMBER = "number"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable, and its place. The schema says what its fields mean."""

    name: str
    type: VariableType
    location: SourceLocation
    description: str = ""
    pattern: str = ""
    default: VariableValue | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """One service with its values. The schema says what its fields mean.

    Attributes:
        location: Where it is declared.
        tree: Its own, else that of the configuration; empty for the default.
        places: Where its fields are written, by name.
    """

    name: str
    location: SourceLocation
    service: str = ""
    tree: str = ""
    protected: bool = False
    allow_partial: bool = True
    overlay: str = ""
    after: str = ""
    capabilities: str = ""
    variables: Mapping[str, VariableValue] = field(default_factory=dict)
    places: Mapping[str, SourceLocation] = field(default_factory=dict)

    def place(self, name: str) -> SourceLocation:
        """Return where a field is written, or the environment if the field is not."""
        return self.places.get(name, self.location)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of one ``reconciler.yaml``.

    Attributes:
        file: Its path as it is shown, from the current folder.
        repository: The resolved Git root that it is in, else its own folder. No path in it leads
            out of there.
        folder: The resolved folder that it is in. Its paths start there, also when it was named
            through a link.
        manifests: Folder of the manifests as it is written.
        tree: Name of the tree of environments that name none; empty for the default.
        policies: Folders of policies as they are written; ``recommended`` is no folder.
        places: Where its fields are written, by name.
    """

    file: str
    repository: Path
    folder: Path
    manifests: str = "manifests"
    tree: str = ""
    policies: tuple[str, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    environments: Mapping[str, Environment] = field(default_factory=dict)
    places: Mapping[str, SourceLocation] = field(default_factory=dict)

    def place(self, name: str) -> SourceLocation:
        """Return where a field is written, or the file if the field is not."""
        return self.places.get(name, SourceLocation(self.file))

    def path(self, written: str) -> str:
        """Return a path of the file as a path from the current folder.

        It is absolute if the file was named by an absolute path.
        """
        path = os.path.normpath(self.folder / written)
        return path if Path(self.file).is_absolute() else os.path.relpath(path)

    @property
    def policy_folders(self) -> tuple[str, ...]:
        """Return the folders of policies from the current folder; ``recommended`` as it is."""
        return tuple(
            written if written == RECOMMENDED else self.path(written) for written in self.policies
        )

    def state_of(self, environment: Environment) -> str:
        """Return the folder of an environment's own state: store, journals, secrets."""
        return self.path(f"{STATE_FOLDER}/{environment.name}")

    def service_of(self, environment: Environment) -> str:
        """Return the address of an environment's service; a store's path is from here."""
        if not environment.service:
            return f"{SQLITE}{self.state_of(environment)}/{OWN_STORE}"
        if environment.service.startswith(SQLITE):
            return SQLITE + self.path(environment.service.removeprefix(SQLITE))
        return environment.service

    def layers_of(
        self, environment: Environment | None, values: Mapping[str, VariableValue | None]
    ) -> Layers:
        """Return what is laid over the manifests in an environment, or without one."""
        overlays = {each.name: each.overlay for each in self.environments.values() if each.overlay}
        own = overlays.pop(environment.name, "") if environment else ""
        return Layers(
            environment=environment.name if environment else "",
            variables=values,
            declarations={name: each.location for name, each in self.variables.items()},
            overlay=self.path(own) if own else "",
            other_overlays=tuple(sorted({*map(self.path, overlays.values())})),
            root=self.path(self.manifests),
            overlay_place=environment.place("overlay") if environment else None,
        )
