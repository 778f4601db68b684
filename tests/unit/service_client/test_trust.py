"""Files that TLS depends on."""

from __future__ import annotations

import ssl
from pathlib import Path
from unittest.mock import Mock

import pytest

from reconciler.errors import LocalFileError
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.trust import trust_for


def test_a_key_log_that_cannot_be_written_is_an_error_of_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library raises the error of the system, from which nobody could tell the variable."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))

    with pytest.raises(LocalFileError) as refused:
        trust_for(parse_endpoint("https://id.example.com"))

    assert refused.value.problem == (
        "the file in SSLKEYLOGFILE cannot be written: No such file or directory"
    )


def test_the_key_log_is_not_blamed_for_an_error_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the error of the key log names a file."""
    monkeypatch.setattr(ssl, "create_default_context", Mock(side_effect=ssl.SSLError("no room")))

    with pytest.raises(ssl.SSLError, match="no room"):
        trust_for(parse_endpoint("https://id.example.com"))
