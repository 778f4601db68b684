"""Layers over manifests: values of variables and the overlay of one environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.scalars import YamlValue


class VariableValue(NamedTuple):
    """The value of one variable in one environment.

    Attributes:
        value: A plain JSON value, which is of the declared type and fits the declared pattern.
        origin: Where the value is written: a place in the configuration, or a location whose
            ``file`` is the option or environment variable, such as ``--var shopHost``.
    """

    value: YamlValue
    origin: SourceLocation


@dataclass(frozen=True)
class Layers:
    """What is laid over the manifests of a run.

    Attributes:
        environment: Name of the environment; empty where none was chosen.
        variables: Every declared variable; None for one without a value in this environment.
        declarations: Places where variables are declared, for the warning about unused ones.
        overlay: Folder of the overlay as it is shown; empty for none.
        other_overlays: Overlay folders of the other environments. They belong to other services:
            a variable that only they use is used.
        root: The configured folder of manifests. Defaults of the folders between it and the PATHS
            count too. Empty without a configuration.
    """

    environment: str = ""
    variables: Mapping[str, VariableValue | None] = field(default_factory=dict)
    declarations: Mapping[str, SourceLocation] = field(default_factory=dict)
    overlay: str = ""
    other_overlays: tuple[str, ...] = ()
    root: str = ""

    @property
    def overlays(self) -> tuple[str, ...]:
        """Return the overlay folders of all environments."""
        return (*([self.overlay] if self.overlay else []), *self.other_overlays)


NO_LAYERS = Layers()
