"""The folder that CI installs the tool from."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile

import pytest

from reconciler.cli.own_wheel import REQUIREMENTS, install_files, packed
from reconciler.errors import UsageError
from reconciler.resources.installation import WHEEL
from tests.architecture.test_distribution_name import asked_of_an_index
from tests.program import ROOT
from tests.rows import each_row

HASH = "0123456789abcdef" * 4
RELEASE = f"https://files.example.com/v1/{WHEEL}#sha256={HASH}"
FILES = {
    "reconciler/__init__.py": b"",
    "reconciler/cli/main.py": b"print()\n",
    "identity_reconciler-1.dist-info/METADATA": b"Name: identity-reconciler\n",
}


def lines_of(requirements: bytes) -> list[str]:
    return requirements.decode().replace(" \\\n", " ").splitlines()


@pytest.mark.parametrize("release", [pytest.param(None, marks=pytest.mark.slow), RELEASE])
def test_every_line_has_its_hash_and_only_the_tool_a_place(release: str | None) -> None:
    """No index is asked for the tool, and none is named."""
    files = install_files(release)
    requirements = files[REQUIREMENTS]
    tool, *libraries = [line for line in lines_of(requirements) if not line.startswith("#")]

    assert set(files) == ({REQUIREMENTS} if release else {REQUIREMENTS, WHEEL})
    assert [line for line in libraries if not re.match(r"[\w.-]+==.* --hash=sha256:", line)] == []
    assert "://" not in "".join(libraries)
    assert len(libraries) > 20
    assert list(asked_of_an_index(REQUIREMENTS, requirements.decode())) == []
    if release:
        assert tool == f"identity-reconciler @ {release}"
    else:
        digest = hashlib.sha256(files[WHEEL]).hexdigest()
        assert tool.split() == [f"./{WHEEL}", f"--hash=sha256:{digest}"]


def test_the_libraries_are_those_of_the_core() -> None:
    """The lock that a release has, and that the tests ran with."""
    lock = (ROOT / ".ci" / "runtime.txt").read_text(encoding="utf-8")
    written = install_files(RELEASE)[REQUIREMENTS].decode()

    assert written.endswith(lock.partition("make lock\n")[2])


@pytest.mark.slow
def test_a_wheel_of_this_tool_is_the_same_each_time() -> None:
    """Another init of the same tool changes nothing in the repository."""
    first, second = install_files(None), install_files(None)

    assert first == second
    with zipfile.ZipFile(io.BytesIO(first[WHEEL])) as archive:
        assert "reconciler/requirements.txt" in archive.namelist()


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
        ("", "has characters"),
    ],
)
def test_an_address_that_is_not_that_of_the_wheel_is_refused(release: str, problem: str) -> None:
    """It would be written into a file that CI trusts. A password in it is not repeated."""
    with pytest.raises(UsageError) as refused:
        install_files(release)

    assert problem in refused.value.problem
    assert f"{WHEEL}#sha256=HASH" in refused.value.remedy
    assert "pw" not in refused.value.problem + refused.value.remedy


def test_a_packed_wheel_records_every_file() -> None:
    """An installer compares each with the hash that RECORD has of it."""
    wheel = packed(FILES)

    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    record = held.pop("identity_reconciler-1.dist-info/RECORD").decode().splitlines()
    assert held == FILES
    assert {line.split(",")[0] for line in record} == {
        *FILES,
        "identity_reconciler-1.dist-info/RECORD",
    }
    assert "reconciler/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0" in record
    assert wheel == packed(dict(reversed(FILES.items())))
