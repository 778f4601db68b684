"""The files of a release: the same bytes from each build, and a core that runs without extras."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from functools import partial
from pathlib import Path

import pytest
import yaml

from reconciler import __version__
from reconciler.resources.installation import EXTRAS
from tests.acceptance.conftest import ROOT, Run, write
from tests.architecture.test_house_rules import FILES
from tests.program import program
from tests.running import running_server

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WHEEL = f"identity_reconciler-{__version__}-py3-none-any.whl"
SDIST = f"identity_reconciler-{__version__}.tar.gz"
LOCKS = {"requirements.txt": ".ci/runtime.txt", "requirements-extras.txt": ".ci/extras.txt"}


def git(folder: Path, *arguments: str) -> None:
    told = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *told, *arguments], cwd=folder, check=True, capture_output=True)


def build(clone: Path, umask: int) -> Path:
    """Build the files of a release as ``make dist`` does; return their folder."""
    subprocess.run(
        [clone / ".ci" / "build-dist"],
        env={**os.environ, "PYTHON": sys.executable},
        umask=umask,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return clone / "dist"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two builds of these files, from two clones that differ in all but their content."""
    top = tmp_path_factory.mktemp("dist")
    source = top / "source"
    for path in FILES:
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    git(top, "init", "--quiet", "source")
    git(source, "add", "--all", "--force")
    git(source, "commit", "--quiet", "--message", "All")
    git(top, "clone", "--quiet", "source", "a")
    git(top, "clone", "--quiet", "source", "a folder/with a longer name")
    second = top / "a folder" / "with a longer name"
    write(second / "reconciler" / "not-committed.txt", "left out")
    os.utime(second / "pyproject.toml", (1, 1))
    (second / ".ci" / "build-dist").chmod(0o700)
    return build(top / "a", 0o022), build(second, 0o077)


@pytest.fixture(scope="module")
def wheel(builds: tuple[Path, Path]) -> Path:
    return builds[0] / WHEEL


def test_two_builds_give_the_same_bytes(builds: tuple[Path, Path]) -> None:
    """A release can be made again by another person, and compared."""
    first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in builds)

    assert set(first) == {WHEEL, SDIST, "SHA256SUMS", *LOCKS}
    assert {name for name in first if first[name] != second.get(name)} == set()
    assert set(second) == set(first)


def test_the_sums_are_those_of_the_files(builds: tuple[Path, Path]) -> None:
    """In the form that ``sha256sum --check`` reads."""
    folder = builds[0]
    lines = (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    told = {name: digest for digest, name in (line.split("  ") for line in lines)}

    assert told == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }


def test_the_source_archive_holds_what_is_in_git(builds: tuple[Path, Path]) -> None:
    """Somebody who has the archive alone can build and test."""
    with tarfile.open(builds[0] / SDIST) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers()}

    assert {path.relative_to(ROOT).as_posix() for path in FILES} <= names


def test_every_hash_of_the_requirements_is_locked(builds: tuple[Path, Path]) -> None:
    """Each line that names a package has hashes, and no address."""
    for name, source in LOCKS.items():
        text = (builds[0] / name).read_text(encoding="utf-8")
        assert text == (ROOT / source).read_text(encoding="utf-8")
        pins = [line for line in text.splitlines() if re.match(r"[a-z]", line)]
        assert pins
        assert [line for line in pins if "==" not in line or not line.endswith(" \\")] == []
        assert "://" not in text


def test_the_wheel_has_the_name_and_three_extras(wheel: Path) -> None:
    """What serves, a database and signing are asked for by extra only."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (file,) = [name for name in names if name.endswith("dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(file).decode())
    needed = metadata.get_all("Requires-Dist", [])

    assert (metadata["Name"], metadata["Version"]) == ("identity-reconciler", __version__)
    assert set(metadata.get_all("Provides-Extra", [])) == set(EXTRAS)
    always = {re.split(r"[^\w-]", line)[0] for line in needed if "extra ==" not in line}
    assert not always & {"grpcio", "protobuf", "uvicorn", "starlette", "psycopg", "cryptography"}
    assert "reconciler/schemas/manifest.schema.json" in names
    assert not [name for name in names if "not-committed" in name]


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_are_looked_for(extra: str) -> None:
    """A module that no distribution of the extra brings would be missing for ever."""
    asked = PROJECT["optional-dependencies"][extra]
    brought = {re.split(r"[^\w-]", line)[0] for line in asked} | {"psycopg-pool"}
    of_module = importlib.metadata.packages_distributions()

    assert {m for m in EXTRAS[extra] if not brought & set(of_module.get(m, []))} == set()


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the distributions of the core's lock, and nothing else."""
    folder = tmp_path_factory.mktemp("core")
    shutil.unpack_archive(wheel, folder, "zip")
    lock = (ROOT / ".ci" / "runtime.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE):
        files = importlib.metadata.files(name) or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            link = folder / top
            if not link.exists():
                link.symlink_to(Path(str(files[0].locate())).parents[len(files[0].parts) - 1] / top)
    return folder


@pytest.fixture
def run_core(core: Path, tmp_path: Path) -> Run:
    """Run the program from the wheel with no site-packages but those of the core."""
    return partial(program(tmp_path, "-S"), PYTHONPATH=str(core))


def test_the_core_does_the_main_job_without_any_extra(run_core: Run, small: Path) -> None:
    """Validate, plan and apply on the embedded store need nothing that serves."""
    service = {"RECONCILER_SERVICE": "sqlite:.reconciler/identity.db"}

    for command in (["validate"], ["plan"], ["apply", "--auto-approve"], ["outputs"], ["drift"],
                    ["export", "--out", "exported"]):  # fmt: skip
        ran = run_core(*command, **service)
        assert ran.code == 0, (command, ran.all)


def test_the_core_plans_and_applies_on_a_server(run_core: Run, tmp_path: Path, small: Path) -> None:
    """The client speaks JSON, for which the core is enough."""
    server_folder = tmp_path / "server"
    server_folder.mkdir()
    with running_server(server_folder) as server:
        service = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("admin")}
        assert run_core("plan", **service).code == 0
        applied = run_core("apply", "--auto-approve", "--secrets-to", "file:kept", **service)

    assert applied.code == 0, applied.all
    assert "Apply complete!" in applied.out


def test_an_installed_tool_writes_a_wheel_of_itself_for_ci(
    run_core: Run, core: Path, wheel: Path, tmp_path: Path
) -> None:
    """The same files as the wheel it came from, though that is long gone."""
    assert run_core("init", "--github").code == 0

    with (
        zipfile.ZipFile(wheel) as came_from,
        zipfile.ZipFile(tmp_path / ".github" / "reconciler" / WHEEL) as made,
    ):
        assert sorted(made.namelist()) == sorted(came_from.namelist())
        for name in made.namelist():
            if not name.endswith("/RECORD"):
                assert made.read(name) == came_from.read(name), name


def test_a_changed_installation_writes_no_wheel(core: Path, tmp_path: Path) -> None:
    """CI would run something that no release has; the message says what to do instead."""
    changed = tmp_path / "changed"
    shutil.copytree(core, changed, symlinks=True)
    file = changed / "reconciler" / "py.typed"
    file.write_text("changed", encoding="utf-8")
    folder = tmp_path / "repository"
    folder.mkdir()
    run = partial(program(folder, "-S"), PYTHONPATH=str(changed))

    refused = run("init", "--github")
    assert refused.code == 1
    assert "reconciler/py.typed is not as it was installed" in refused.err
    assert f"--from https://.../{WHEEL}#sha256=..." in refused.err
    (changed / f"identity_reconciler-{__version__}.dist-info" / "RECORD").unlink()
    assert "no list of files (RECORD)" in run("init", "--gitlab").err
    assert list(folder.iterdir()) == []
    release = f"https://example.com/{WHEEL}#sha256={'0' * 64}"
    assert run("init", "--github", "--from", release).code == 0


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("serve", ["serve", "--listen", "127.0.0.1:0"]),
        ("key-file", ["drift", "--service", "https://id.example.com", "--key-file", "key.json"]),
        ("postgres", ["plan", "--service", "postgresql://database/identity"]),
        ("postgres", ["token", "list", "--service", "postgresql://database/identity"]),
    ],
)
def test_a_command_that_needs_an_extra_says_which_and_how(
    run_core: Run, tmp_path: Path, small: Path, extra: str, command: list[str]
) -> None:
    """One error, the way that fits an installed wheel, and nothing made on the way."""
    ran = run_core(*command)

    assert ran.code == 1
    assert f"needs the extra {extra}, which is not installed" in ran.err
    assert f"pip install './{WHEEL}[{extra}]'" in ran.err
    assert len(ran.err.splitlines()) == 2
    assert not (tmp_path / ".reconciler").exists()


INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def shown(command: str) -> str:
    """Return what docs/install.md shows under a command."""
    (block,) = re.findall(rf"```console\n\$ {re.escape(command)}\n(.*?)```", INSTALL, re.DOTALL)
    return str(block)


def test_the_page_shows_what_a_missing_extra_says(run_core: Run) -> None:
    """A reader finds the page by the words of the error."""
    assert run_core("serve").err == shown("reconciler serve")


def test_the_page_shows_how_the_files_are_verified(builds: tuple[Path, Path]) -> None:
    """The command reads the sums, in every folder that holds the files."""
    command = "sha256sum --check SHA256SUMS"
    checked = subprocess.run(
        command.split(), cwd=builds[1], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stdout) == (0, shown(command))


RELEASE = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))


def a_release(folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the workflow that compares a tag with the version and takes its notes."""
    (step,) = [step for step in RELEASE["jobs"]["build"]["steps"] if "notes" in step.get("run", "")]
    write(folder / "dist" / WHEEL, "")
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_release_has_the_notes_of_its_version(tmp_path: Path) -> None:
    """What the changelog says of the version, without its heading and without other versions."""
    made = a_release(tmp_path, f"v{__version__}")
    notes = (tmp_path / "notes" / "notes.md").read_text(encoding="utf-8")

    assert made.returncode == 0, made.stdout + made.stderr
    assert "### Added" in notes
    assert "\n## " not in notes


def test_a_tag_of_another_version_makes_no_release(tmp_path: Path) -> None:
    """A tag on the wrong commit is noticed before anything is attested."""
    refused = a_release(tmp_path, "v9.9.9")

    assert refused.returncode == 1
    assert "::error::the tag v9.9.9 is not the version" in refused.stdout


def test_each_job_of_a_release_may_do_one_thing() -> None:
    """What builds cannot sign, what signs cannot write, and publishing waits for an approval."""
    writes = {
        name: {right for right, level in job["permissions"].items() if level == "write"}
        for name, job in RELEASE["jobs"].items()
    }

    assert RELEASE["permissions"] == {}
    assert writes == {
        "build": set(),
        "attest": {"id-token", "attestations"},
        "release": {"contents"},
        "publish": {"id-token"},
    }
    assert RELEASE["jobs"]["publish"]["environment"] == "publish"
    uses = [step["uses"] for job in RELEASE["jobs"].values() for step in job["steps"]
            if "uses" in step]  # fmt: skip
    assert [used for used in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used)] == []
