"""The normal form of answers, by which those of several transports and servers are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconciler.resources.fields import normal_duration


class Normal:
    """Gives ids, times and secrets the names of their first appearance, per server."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        """Return a value in normal form."""
        if isinstance(value, Mapping):
            # A message cannot tell a secret that was not made from an empty one.
            kept = {
                key: inner for key, inner in value.items() if (key, inner) != ("clientSecret", "")
            }
            return {key: self.of(kept[key], key) for key in sorted(kept)}
        if isinstance(value, (list, tuple)):
            return [self.of(inner, name) for inner in value]
        return self._of_text(value, name) if isinstance(value, str) else value

    def _of_text(self, text: str, name: str) -> str:
        if name in {"clockSkew", "timeout"}:
            return normal_duration(text)
        if name in {"creationDate", "changeDate", "viewTimestamp"}:
            moment = datetime.fromisoformat(text).timestamp()
            return self._named(str(round(moment * 1_000_000)))
        if name in {"clientSecret", "secret_hash", "iamProjectId"}:
            return self._named(text) if text else ""
        return re.sub(r"[0-9]{15,20}", lambda found: self._named(found[0]), text)

    def _named(self, text: str) -> str:
        return self._seen.setdefault(text, f"#{len(self._seen)}")
