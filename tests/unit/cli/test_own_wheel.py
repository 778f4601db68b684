"""The folder that CI installs the tool from."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.cli.own_wheel import REQUIREMENTS, install_files
from reconciler.errors import UsageError
from reconciler.resources.installation import WHEEL
from tests.architecture.test_distribution_name import asked_of_an_index
from tests.program import ROOT
from tests.rows import each_row

HASH = "0123456789abcdef" * 4
RELEASE = f"https://files.example.com/v1/{WHEEL}#sha256={HASH}"


def lines_of(requirements: bytes) -> list[str]:
    return requirements.decode().replace(" \\\n", " ").splitlines()


def a_wheel(folder: Path) -> Path:
    """Write a file that is whole enough to be the wheel."""
    path = folder / WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("reconciler/__init__.py", "")
    return path


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "address"])
def test_every_line_has_its_hash_and_only_the_tool_a_place(
    tmp_path: Path, *, is_file: bool
) -> None:
    """No index is asked for the tool, and none is named."""
    files = install_files(str(a_wheel(tmp_path)) if is_file else RELEASE)
    requirements = files[REQUIREMENTS]
    tool, *libraries = [line for line in lines_of(requirements) if not line.startswith("#")]

    assert set(files) == ({REQUIREMENTS, WHEEL} if is_file else {REQUIREMENTS})
    assert [line for line in libraries if not re.match(r"[\w.-]+==.* --hash=sha256:", line)] == []
    assert "://" not in "".join(libraries)
    assert len(libraries) > 20
    assert list(asked_of_an_index(REQUIREMENTS, requirements.decode())) == []
    if not is_file:
        assert tool == f"identity-reconciler @ {RELEASE}"
    else:
        digest = hashlib.sha256(files[WHEEL]).hexdigest()
        assert tool.split() == [f"./{WHEEL}", f"--hash=sha256:{digest}"]


def test_the_libraries_are_those_of_the_core() -> None:
    """The lock that a release has, and that the tests ran with."""
    lock = (ROOT / ".ci" / "runtime.txt").read_text(encoding="utf-8")
    written = install_files(RELEASE)[REQUIREMENTS].decode()

    assert written.endswith(lock.partition("make lock\n")[2])


def test_a_published_tool_is_named_with_the_hash_of_its_wheel() -> None:
    """An index that has other bytes under the name is refused by pip."""
    files = install_files(RELEASE, is_published=True)
    first, *_ = [line for line in lines_of(files[REQUIREMENTS]) if not line.startswith("#")]

    assert set(files) == {REQUIREMENTS}
    assert first.split() == [f"identity-reconciler=={__version__}", f"--hash=sha256:{HASH}"]


@each_row(
    ("release", "problem"),
    [
        (f"https://a.example/{WHEEL}", "has no #sha256="),
        (f"https://a.example/{WHEEL}#sha256=abc", "has no #sha256="),
        (f"https://a.example/{WHEEL}#sha256={HASH}&egg=x", "has no #sha256="),
        (f"https://a.example/{WHEEL}#md5={HASH}", "has no #sha256="),
        (f"https://me:pw@a.example/{WHEEL}#sha256={HASH}", "has a user, a password or a query"),
        (f"https://a.example/{WHEEL}?token=pw#sha256={HASH}", "has a user, a password or a query"),
        (f"http://a.example/{WHEEL}#sha256={HASH}", "is not an https:// address"),
        (f"file:///{WHEEL}#sha256={HASH}", "is not an https:// address"),
        (f"https:///{WHEEL}#sha256={HASH}", "names no host"),
        (f"https://a.example/reconciler-1.0.tar.gz#sha256={HASH}", f"does not end in {WHEEL}"),
        (f"https://a.example/{WHEEL}#sha256={HASH}\n--index-url x", "has characters"),
        ("", f"is not {WHEEL}"),
    ],
)
def test_an_address_that_is_not_that_of_the_wheel_is_refused(release: str, problem: str) -> None:
    """It would be written into a file that CI trusts. A password in it is not repeated."""
    with pytest.raises(UsageError) as refused:
        install_files(release)

    assert problem in refused.value.problem
    assert f"{WHEEL}#sha256=HASH" in refused.value.remedy
    assert "pw" not in refused.value.problem + refused.value.remedy
