"""A script that is accepted must be the same after a checkout, whatever Git does to line ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, write
from tests.acceptance.test_accept import accept, commit

LF = "function greet(ctx, api) {\n  api.log(1)\n}\n"
CRLF = LF.replace("\n", "\r\n")
MANIFEST = """\
apiVersion: reconciler/v1
kind: Action
metadata:
  organization: acme
  name: greet
spec:
  scriptFile: js/greet.js
"""


def checked_out(place: Place) -> None:
    """Commit everything, and check all files out again."""
    commit(place.folder)
    (place.manifests / "js" / "greet.js").unlink()
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    words = ["git", "checkout", "--quiet", "--", "."]
    subprocess.run(words, cwd=place.folder, check=True, env={**os.environ, **own})


@pytest.mark.parametrize(
    ("attributes", "script", "held", "instead"),
    [
        pytest.param("*.js eol=crlf", CRLF, LF, "eol=lf", id="checked out as CRLF"),
        pytest.param("*.js text=auto eol=crlf", CRLF, LF, "eol=lf", id="text=auto, as CRLF"),
        pytest.param("*.js eol=crlf", CRLF, CRLF, "", id="CRLF, and held so"),
        pytest.param("*.js eol=crlf", CRLF, CRLF + "\n", "-text", id="both, checked out as CRLF"),
        pytest.param("*.js eol=lf", LF, CRLF, "-text", id="checked out as LF"),
        pytest.param("*.js text", LF, CRLF, "-text", id="kept as LF"),
        pytest.param("*.js text=auto", LF, CRLF, "-text", id="text=auto, kept as LF"),
        pytest.param("*.js eol=lf", LF, LF, "", id="LF, and held so"),
        pytest.param("*.js -text", CRLF, LF, "", id="left as it is"),
        pytest.param("", LF, CRLF, "", id="nothing said"),
    ],
)
def test_an_accepted_script_is_the_same_after_a_checkout_or_is_refused(
    here: Place, attributes: str, script: str, held: str, instead: str
) -> None:
    write(here.folder / ".gitignore", ".reconciler\n")
    write(here.folder / ".gitattributes", f"{attributes}\n")
    write(here.manifests / "greet.yaml", MANIFEST)
    write_bytes(here.manifests / "js" / "greet.js", script)
    checked_out(here)
    assert here.run("apply", "--auto-approve", "--secrets-to", "file:.reconciler/s").code == 0
    held = held.replace("log(1)", "log(2)")
    here.direct.change("greet", script=held)

    ran = accept(here)

    if instead:
        assert ran.code == 1, ran.all
        assert "ACCEPT-LINE-ENDS" in ran.err
        assert instead in ran.err
        assert (here.manifests / "js" / "greet.js").read_bytes() == script.encode()
        write(here.folder / ".gitattributes", f"*.js {instead}\n")
        if instead == "-text":
            commit(here.folder)  # what is checked out counts as edited until then
        ran = accept(here)
    assert ran.code == 0, ran.all
    checked_out(here)
    again = here.run("plan", "--detailed-exitcode")
    assert again.code == 0, again.all


def write_bytes(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    assert shutil.which("git")
