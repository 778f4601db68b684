"""What the actions of the workflows do, done here: checkout, Python, artifacts.

Git and the environments of Python are real. Artifacts go over HTTP to the site. The first
installation of a set of packages is a real one; a job that asks for the very same files with the
very same command gets a copy of it, because it would take seconds in each job.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.runner.gh import asked
from tests.runner.site import Site

QUICK = ("-c", "core.compression=0")  # compressing our wheel is most of what Git would do
PIP = Path(__file__).with_name("pip_stand_in.py")
GH = Path(__file__).with_name("gh.py")


def a_program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@dataclass
class Place:
    """The machine of one job.

    Attributes:
        installs: Where installations are kept between jobs.
        run: Number of the run, to which artifacts belong.
        sha: What is checked out unless a step says otherwise.
        token: The token of the job.
    """

    site: Site
    folder: Path
    installs: Path
    run: int
    sha: str
    token: str = ""

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.workspace = self.folder / "workspace"
        self.temp = self.folder / "temp"
        self.programs = self.folder / "programs"
        for each in (self.home, self.workspace, self.temp, self.programs):
            each.mkdir(parents=True)
        a_program(self.programs / "gh", f"#!/bin/sh\nexec '{sys.executable}' -I -S '{GH}' \"$@\"\n")

    def ask(self, method: str, name: str, body: Any = None) -> tuple[int, Any]:
        """Ask the site for an artifact; return the status and the answer."""
        return asked(self.site.address, self.token, method, f"artifacts/{self.run}/{name}", body)


def check_out(site: Site, folder: Path, ref: str, sparse: str = "") -> None:
    """Check out a commit, without its history; of ``sparse`` the folders in its lines alone."""
    folder.mkdir(parents=True, exist_ok=True)

    def git(*arguments: str) -> None:
        subprocess.run(["git", *QUICK, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "--quiet")
    if sparse:
        git("sparse-checkout", "set", *sparse.split())
    git("fetch", "--quiet", "--depth=1", str(site.bare), ref)
    git("checkout", "--quiet", "FETCH_HEAD")


def _check_out(place: Place, given: Mapping[str, Any]) -> str:
    assert given["persist-credentials"] is False
    folder = place.workspace / given.get("path", ".")
    check_out(place.site, folder, given.get("ref", place.sha), given.get("sparse-checkout", ""))
    return ""


def _set_up_python(place: Place, given: Mapping[str, Any]) -> str:
    """Put ``python`` and ``python3`` on the path.

    Their ``-m venv`` leaves pip to a stand-in. After the first one it makes copies of that:
    Python finds itself by the folder that it is in.
    """
    pip = place.installs / "stand-in" / "pip"
    pip.mkdir(parents=True, exist_ok=True)
    (pip / "__init__.py").touch()
    shutil.copy(PIP, pip / "__main__.py")
    python, empty = sys.executable, place.installs / "empty-environment"
    for name in ("python", "python3"):
        a_program(
            place.programs / name,
            f"""#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    shift 2
    for folder; do :; done
    if [ ! -e "$folder" ] && [ -e '{empty}' ]; then exec cp -R '{empty}' "$folder"; fi
    '{python}' -I -m venv --without-pip "$@"
    for packages in "$folder"/lib/python*/site-packages; do
        echo '{pip.parent}' > "$packages/pip_of_the_runner.pth"
    done
    cp -R "$folder" '{empty}'.$$
    mv -T '{empty}'.$$ '{empty}' 2>/dev/null || rm -r '{empty}'.$$ # another job was first
else
    exec '{python}' "$@"
fi
""",
        )
    return ""


def _upload(place: Place, given: Mapping[str, Any]) -> str:
    path = Path(str(given["path"]).replace("~", str(place.home), 1))
    found = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else []
    found += [path] if path.is_file() else []
    if not found:
        return "" if given["if-no-files-found"] == "ignore" else f"no files at {path}"
    top = path if path.is_dir() else path.parent
    files = {
        file.relative_to(top).as_posix(): base64.b64encode(file.read_bytes()).decode()
        for file in found
        if not any(part.startswith(".") for part in file.relative_to(top).parts)
    }
    body = {"files": files, "overwrite": given.get("overwrite", False)}
    status, _ = place.ask("PUT", given["name"], body)
    return "" if status == 200 else f"the artifact {given['name']} was refused: {status}"


def _download(place: Place, given: Mapping[str, Any]) -> str:
    status, files = place.ask("GET", given["name"])
    if status != 200:
        return f"no artifact {given['name']}: {status}"
    folder = Path(given["path"])
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))
    return ""


ACTIONS: dict[str, Callable[[Place, Mapping[str, Any]], str]] = {
    "actions/checkout": _check_out,
    "actions/setup-python": _set_up_python,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
}
"""What each does with its inputs; it returns what went wrong, or nothing."""
