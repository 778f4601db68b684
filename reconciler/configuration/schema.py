"""The JSON Schema of ``reconciler.yaml``, which judges it and which editors show."""

from __future__ import annotations

from reconciler.configuration.model import VariableType
from reconciler.manifests.extent import CONFIGURATION
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.fields import NO_NUL
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.schemas import DIALECT, Schema, closed
from reconciler.resources.shard import DEFAULT_TREE

ENVIRONMENT_NAME = r"^[a-z][a-z0-9-]{0,39}$"
VARIABLE_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
LONGEST = 1000  # characters of a path, an address or a pattern
MAX_NAMES = 100  # environments, each of which validate judges, or variables


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
                    "Name of the tree of environments that name none.", default=DEFAULT_TREE
                ),
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
            "tree": _text("Name of its tree, where it differs."),
            "protected": {
                "description": "Apply only an approved plan: a plan file or a digest.",
                "type": "boolean",
                "default": False,
            },
            "overlay": _text(
                "Folder of documents that are laid over the manifests, from the folder of this "
                "file.",
                "environments/staging",
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


def _text(about: str, *examples: str, default: str = "") -> Schema:
    return {
        "description": about,
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST,
        "pattern": NO_NUL,
        **({"default": default} if default else {}),
        **({"examples": [*examples]} if examples else {}),
    }
