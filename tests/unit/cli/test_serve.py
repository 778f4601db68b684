"""Addresses to listen on."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli import serve
from reconciler.errors import UsageError
from tests.rows import each_row


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:0", ("::1", 0)),
        ("id.example.com:65535", ("id.example.com", 65535)),
    ],
)
def test_an_address_is_host_and_port(text: str, place: tuple[str, int]) -> None:
    assert serve.address_to_listen("--listen", text) == place


@each_row(
    "text",
    [
        *("8080", ":8080", "host:", "host:65536", "host:\u0661", "host:-1", "ho st:1"),
        *(f"host:{'1' * 5000}", "h\u00f6st:1", "h\udcffst:1"),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--listen .* is not an address to listen on"):
        serve.address_to_listen("--listen", text)


def test_only_a_store_on_this_machine_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "identity.db").write_bytes(b"12345")
    (tmp_path / "identity.db-wal").write_bytes(b"67")
    (tmp_path / "link.db").symlink_to("identity.db")

    assert serve._size_of(f"sqlite:{tmp_path}/identity.db") == 7
    assert serve._size_of(f"sqlite:{tmp_path}/link.db") == 7
    assert serve._size_of("postgresql://host/name") is None


def test_plain_text_beyond_this_machine_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    serve._warn_of_plain(("127.0.0.1", 80), "text")
    assert capsys.readouterr().err == ""

    serve._warn_of_plain(("id.example.com", 80), "text")
    assert "SERVE-PLAIN: calls to id.example.com:80" in capsys.readouterr().err
