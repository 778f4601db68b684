"""Sinks by their address."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.apply.folder_sinks import FileSink
from reconciler.apply.sinks import KINDS, open_sink
from reconciler.errors import UsageError


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        pytest.param("vault:x", "vault", id="of a kind there is not"),
        pytest.param("file:", "file", id="without a folder"),
        pytest.param("secrets", "secrets", id="a bare folder"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_an_address_that_is_no_sink_is_refused(address: str, scheme: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError) as refused:
        open_sink(address, {})

    assert (refused.value.problem, refused.value.remedy) == (
        f"{scheme}: is not a destination for secrets",
        f"Write one of {KINDS}.",
    )


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        pytest.param("file:~/kept", "/base/ada/kept", id="below the home folder"),
        pytest.param("file:~", "/base/ada", id="the home folder"),
        pytest.param("file:~/", "/base/ada", id="the home folder with a slash"),
        pytest.param("file:./~x/kept", "~x/kept", id="a folder named so"),
        pytest.param("file:a/~/kept", "a/~/kept", id="in the middle"),
    ],
)
def test_a_tilde_in_front_is_the_home_folder(address: str, folder: str) -> None:
    """It stands behind a colon, where no shell replaces it."""
    sink = open_sink(address, {"HOME": "/base/ada"})

    assert isinstance(sink, FileSink)
    assert sink.folder == Path(folder)


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "relative"}])
@pytest.mark.parametrize("address", ["file:~/kept", "age:~/kept?recipient=x"])
def test_a_home_folder_that_is_not_known_is_told(address: str, home: dict[str, str]) -> None:
    """A folder named ~ helps nobody."""
    with pytest.raises(UsageError, match="HOME does not say where that is"):
        open_sink(address, home)
