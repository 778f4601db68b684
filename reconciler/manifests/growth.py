"""The limit to what variables and Defaults put into the manifests of one run."""

from __future__ import annotations

from reconciler.diagnostics import Diagnostic, error
from reconciler.manifests.manifest import Manifest, Path

MAX_PUT_IN = 32 * 1024 * 1024
"""Characters, about."""


class Growth:
    """Counts what is put in. A few characters of a manifest can stand for many."""

    def __init__(self, most: int = MAX_PUT_IN) -> None:
        self.findings: list[Diagnostic] = []
        self.without_room: set[tuple[str, int, int]] = set()
        self._most = self._left = most

    def is_room_for(self, size: int) -> bool:
        """Return whether there is room for so many more characters."""
        return self._left >= size

    def take(self, size: int) -> None:
        """Count characters for which there is room."""
        self._left -= size

    def has_room(self, size: int, manifest: Manifest, path: Path) -> bool:
        """Count what is put in at a place; the first for which there is no room is told.

        The places of all of them are kept: findings there only follow from this one.
        """
        self._left -= size
        if self._left >= 0:
            return True
        place = manifest.place(*path)
        self.without_room.add(place[:3])
        if not self.findings:
            self.findings.append(
                error(
                    "VARIABLE-SIZE",
                    f"variables and Defaults put in more than {self._most} characters",
                    "Write shorter values, or use them in fewer places.",
                    place,
                )
            )
        return False
