"""The service in memory that operations are tried on."""

from __future__ import annotations

from tests.unit.service.operations.conftest import ask

__all__ = ["ask"]
