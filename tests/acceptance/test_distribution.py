"""The files of a release: the same bytes from each build, and a core that runs without extras."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
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
from tests.release import build, commit_files, git
from tests.running import running_server

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WHEEL = f"identity_reconciler-{__version__}-py3-none-any.whl"
SDIST = f"identity_reconciler-{__version__}.tar.gz"
LOCKS = {
    "requirements.txt": ".ci/runtime.txt",
    "requirements-extras.txt": ".ci/extras.txt",
    "requirements-policy.txt": ".ci/policy.txt",
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two builds of these files, from two clones that differ in all but their content."""
    top = tmp_path_factory.mktemp("dist")
    (source := top / "source").mkdir()
    commit_files(source)
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
    told = {name: digest for digest, name in (line.split("  ") for line in sums_of(folder))}

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
    assert not always & {"h2", "protobuf", "uvicorn", "starlette", "psycopg", "cryptography"}
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


@pytest.mark.parametrize("is_published", [False, True], ids=["vendored", "published"])
def test_an_installed_tool_writes_the_wheel_of_the_sums(
    run_core: Run, wheel: Path, tmp_path: Path, *, is_published: bool
) -> None:
    """Byte for byte; once it is published, its name and hash are enough."""
    flags = ["--published"] if is_published else []
    written = run_core("init", "--github", "--gitlab", "--from", str(wheel), *flags)
    assert written.code == 0, written.all

    (line,) = [one for one in sums_of(wheel.parent) if one.endswith(WHEEL)]
    for place in (".github", ".gitlab"):
        folder = tmp_path / place / "reconciler"
        told = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
        assert f"    --hash=sha256:{line.split()[0]}" in told
        tool = f"identity-reconciler=={__version__}" if is_published else f"./{WHEEL}"
        assert f"{tool} \\" in told
        assert (folder / WHEEL).exists() is not is_published
        assert is_published or (folder / WHEEL).read_bytes() == wheel.read_bytes()


def test_without_a_wheel_nothing_is_written(run_core: Run, wheel: Path, tmp_path: Path) -> None:
    """An installed tool has none. A file is that of its sums, or it is refused."""
    changed = tmp_path.parent / f"{tmp_path.name}-changed"
    shutil.copytree(wheel.parent, changed)
    (changed / WHEEL).write_bytes(wheel.read_bytes() + b"x")
    cut = tmp_path.parent / f"{tmp_path.name}-cut"
    cut.mkdir()
    (cut / WHEEL).write_bytes(wheel.read_bytes()[:-1000])
    fifo = tmp_path.parent / f"{tmp_path.name}-fifo"
    fifo.mkdir()
    os.mkfifo(fifo / WHEEL)
    for given, said in (
        ([], "the jobs install the tool from a wheel, and none is named"),
        (["--from", f"nowhere/{WHEEL}"], f"there is no wheel to read at nowhere/{WHEEL}"),
        (["--from", str(fifo / WHEEL)], "there is no wheel to read at"),
        (["--from", str(changed / SDIST)], f"is not {WHEEL}, the wheel of the version"),
        (["--from", str(changed / WHEEL)], "is not the wheel that SHA256SUMS beside it names"),
        (["--from", str(cut / WHEEL)], "is not a whole wheel"),
    ):
        refused = run_core("init", "--github", *given)
        assert refused.code == 1, given
        assert said in refused.err
        assert f"--from FOLDER/{WHEEL}" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_checkout_has_the_wheel_of_make_dist(tmp_path: Path) -> None:
    """From a fresh clone: what is missing is said, and then it is made."""
    clone, folder = tmp_path / "clone", tmp_path / "identity"
    clone.mkdir()
    folder.mkdir()
    commit_files(clone)
    run = partial(program(folder, "-P"), PYTHONPATH=str(clone))

    refused = run("init", "--gitlab")
    assert refused.code == 1
    assert f"Run make dist in the checkout, {clone}." in refused.err
    assert "Nothing was written." in refused.err
    assert list(folder.iterdir()) == []
    made = build(clone)

    assert run("init", "--gitlab").code == 0
    assert (folder / ".gitlab" / "reconciler" / WHEEL).read_bytes() == (made / WHEEL).read_bytes()


def sums_of(folder: Path) -> list[str]:
    return (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()


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
    assert "### The loop" in notes
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
