"""The content of a configuration, and the JSON Schema that judges it and that editors show.

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
from reconciler.manifests.extent import CONFIGURATION
from reconciler.manifests.placeholders import Layers, VariableValue
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.fields import NO_NUL
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.ref import DEFAULT_TREE
from reconciler.resources.schemas import DIALECT, RECOMMENDED, Schema, closed

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
    """A declared variable. The schema below says what its fields mean.

    Attributes:
        location: Where it is declared.
    """

    name: str
    type: VariableType
    location: SourceLocation
    description: str = ""
    pattern: str = ""
    default: VariableValue | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """One service with its values. The schema below says what its fields mean.

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


ENVIRONMENT_NAME = r"^[a-z][a-z0-9-]{0,39}$"
VARIABLE_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
LONGEST = 1000  # characters of a path, an address or a pattern
MAX_NAMES = 100  # environments, all judged by validate; or variables


def configuration_schema() -> Schema:
    """Return the schema, complete in itself."""
    return {
        "$schema": DIALECT,
        "title": "Configuration",
        "description": "The configuration of a repository: its manifests, their variables, and the "
        "environments that they are applied to.",
        **closed(
            {
                "apiVersion": {
                    "description": "Version of the manifest format.",
                    "const": API_VERSION,
                },
                "kind": {"description": "What the document is.", "const": CONFIGURATION},
                "manifests": _text(
                    "Folder of the manifests, from the folder of this file.", default="manifests"
                ),
                "tree": _text(
                    "Name of the tree of environments that name none.",
                    default=DEFAULT_TREE,
                    longest=MAX_TEXTS["tree"],
                ),
                "policies": {
                    "description": "Folders of policies that judge every plan, from the folder of "
                    f"this file; {RECOMMENDED} stands for those in the package.",
                    "type": "array",
                    "items": _text("A folder of policies.", "policies"),
                    "maxItems": MAX_NAMES,
                },
                "variables": _named(
                    "Variables that manifests may use as ${name}.", VARIABLE_NAME, _variable()
                ),
                "environments": _named(
                    "Environments by name: each is one service with its values.",
                    ENVIRONMENT_NAME,
                    _environment(),
                ),
            },
            required=("apiVersion", "kind"),
        ),
    }


def _variable() -> Schema:
    return closed(
        {
            "type": {
                "description": "Type of its values.",
                "enum": [each.value for each in VariableType],
                "type": "string",
            },
            "description": _text("What it is for; explain --env shows it."),
            "pattern": _text(
                "Regular expression that every value matches, without looking around or back. "
                "For a list, every item."
            ),
            "default": {
                "description": "Value of environments that give none.",
                **_VALUE,
            },
        },
        required=("type",),
    )


def _environment() -> Schema:
    return closed(
        {
            "service": _text(
                "Address of the service: https://HOST, http to this machine, or sqlite:PATH "
                "beneath the repository. Without it, a store of the environment's own in "
                ".reconciler.",
                "https://id.staging.example.com",
            ),
            "tree": _text("Name of its tree, where it differs.", longest=MAX_TEXTS["tree"]),
            "protected": {
                "description": "Apply only an approved plan: a plan file or a digest.",
                "type": "boolean",
                "default": False,
            },
            "allowPartial": {
                "description": "Whether a part of the tree may be planned and applied: --target "
                "and --exclude.",
                "type": "boolean",
                "default": True,
            },
            "overlay": _text(
                "Folder of documents that are laid over the manifests, from the folder of this "
                "file.",
                "environments/staging",
            ),
            "after": _text(
                "Name of the environment that is applied before it: the apply job in CI waits for "
                "that one's.",
                "staging",
            ),
            "capabilities": {
                "description": "What its service takes: source for this project's own, or the "
                "release of a ZITADEL. Manifests are judged by it where no service is asked.",
                "enum": [*CAPABILITIES],
                "type": "string",
                "default": SOURCE,
            },
            "variables": _named("Values of variables by name.", VARIABLE_NAME, _VALUE),
        },
    )


_ITEM: Schema = {"type": ["string", "number", "boolean"]}
_VALUE: Schema = {"type": ["string", "number", "boolean", "array"], "items": _ITEM}


def _named(about: str, pattern: str, each: Schema) -> Schema:
    return {
        "description": about,
        "type": "object",
        "maxProperties": MAX_NAMES,
        "propertyNames": {"pattern": pattern},
        "additionalProperties": each,
    }


def _text(about: str, *examples: str, default: str = "", longest: int = LONGEST) -> Schema:
    return {
        "description": about,
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
        "pattern": NO_NUL,
        **({"default": default} if default else {}),
        **({"examples": [*examples]} if examples else {}),
    }
