"""``reconciler init``: an organization to begin from, and CI set-ups.

In a repository with environments each has jobs of its own. They are made from the same templates
as those for one service, so that every step is stated once; ``environments.toml`` has the words
that differ. An environment without protection is applied once it is merged. A protected one waits
for approval, which GitHub asks for by the reviewers of its environment, and GitLab by a manual job.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import click

from reconciler.cli.options import option
from reconciler.cli.own_wheel import install_files
from reconciler.configuration.model import Configuration, Environment
from reconciler.errors import InvalidConfigurationError, LocalFileError, UsageError
from reconciler.manifests.files import CONFIGURATION_FILE
from reconciler.report.visible import visible
from reconciler.resources.installation import (
    SCHEMAS,
    schema_folder,
)

_HERE = Path(__file__).parent
ONE = _HERE / "starter"
"""An organization for one service."""

TWO = _HERE / "starter-environments"
"""An organization in two environments, with its ``reconciler.yaml``."""

TEMPLATES = _HERE / "templates"
GITHUB = Path(".github", "workflows")
GITLAB = Path(".gitlab", "reconciler.gitlab-ci.yml")
_FOLDER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]*", re.ASCII)
_GITHUB_JOB = re.compile(r"^(?=  [a-z]+:$)", re.MULTILINE)
_GITLAB_JOB = re.compile(r"(?<=\n\n)(?=(?:# [^\n]*\n)*reconciler [a-z]+:$)", re.MULTILINE)
_GITLAB_NAME = re.compile(r"^reconciler ([a-z]+):$", re.MULTILINE)
HOOKS = "githooks"
TOOL = "reconciler"
"""The folder, beside what a CI set-up reads, that its jobs install the tool from."""


@click.command("init")
@click.argument("directory", default="manifests", metavar="[DIR]")
@option("--github", is_flag=True, help="Write GitHub workflows instead: plan, apply, drift.")
@option("--gitlab", is_flag=True, help="Write a GitLab pipeline instead.")
@option(
    "--environments",
    is_flag=True,
    help="Write an organization in two environments instead, with reconciler.yaml, here.",
)
@option("--git-hooks", is_flag=True, help="Write Git hooks instead, for git push and nothing else.")
@click.option(
    "--from",
    "release",
    metavar="URL#sha256=HASH",
    help="With --github or --gitlab: the wheel of a release, for the jobs to install. Otherwise a "
    "wheel of this installation is written beside them.",
)
def init_command(
    directory: str,
    github: bool,
    gitlab: bool,
    environments: bool,
    git_hooks: bool,
    release: str | None,
) -> None:
    """Write a small organization into DIR, to begin from.

    With --environments: write one in two environments into the current folder.

    With --github, --gitlab or --git-hooks: write those into the current folder, and no manifests.
    Where reconciler.yaml has environments, each has jobs of its own.
    """
    if release is not None and not (github or gitlab):
        raise UsageError(
            "--from is for --github and --gitlab: it says where their jobs install the tool from",
            remedy="Add one of the two, or leave --from out.",
        )
    wanted = [
        (github, "github", Path(".github")),
        (gitlab, "gitlab", Path(".gitlab")),
        (git_hooks, "git-hooks", Path(HOOKS)),
    ]
    chosen = [(name, target) for asked, name, target in wanted if asked]
    try:
        if environments:
            _write_new(_files_of(TWO, Path()) | _files_of(schema_folder(), Path(SCHEMAS)))
        if chosen:
            _write_new(_files_for(chosen, release))
        if not (chosen or environments):
            _write_starter(Path(directory))
    except OSError as failure:
        raise LocalFileError(
            f"cannot write {failure.filename or directory}: {failure.strerror}",
            remedy="Name a folder this user may write to.",
        ) from failure
    if environments:
        click.echo("Next: reconciler validate, then plan --env staging, then apply --env staging.")
    elif chosen:
        click.echo("Next: the comments at the top of these files say what to set up once.")
    else:
        shown = "" if directory == "manifests" else f" {visible(directory)}"
        click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")


def _files_of(folder: Path, target: Path) -> dict[Path, bytes]:
    """Return the files of a folder by where they are to be beneath another one."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {target / path.relative_to(folder): path.read_bytes() for path in paths}


def _files_for(chosen: Sequence[tuple[str, Path]], release: str | None) -> Mapping[Path, bytes]:
    """Return each file that the chosen set-ups need, by path."""
    files: dict[Path, bytes] = {}
    for name, target in chosen:
        files |= _files_of(TEMPLATES / name, target)
    if (configuration := _environments()) is not None:
        files = for_environments(files, configuration)
    for name, target in chosen:
        if name != "git-hooks":
            files |= {target / TOOL / file: text for file, text in install_files(release).items()}
    return files


def _environments() -> Configuration | None:
    """Return the configuration in this folder, if it has environments."""
    if not Path(CONFIGURATION_FILE).exists():
        return None
    from reconciler.configuration.reading import read_configuration

    configuration, findings = read_configuration(CONFIGURATION_FILE)
    if configuration is None:
        raise InvalidConfigurationError(findings)
    return configuration if configuration.environments else None


def _write_starter(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LocalFileError(
            f"{target} is there already and is not an empty folder",
            remedy="Name a folder that does not exist yet: reconciler init DIR.",
        )
    shutil.copytree(ONE, target, dirs_exist_ok=True)
    shutil.copytree(schema_folder(), target / SCHEMAS)
    _show_written(path for path in sorted(target.rglob("*")) if SCHEMAS not in path.parts)


def _write_new(files: Mapping[Path, bytes]) -> None:
    """Write files, if none of them is there yet."""
    for path in files:
        if path.exists():
            raise LocalFileError(
                f"{path} is there already",
                remedy="Move it away first; nothing was written.",
            )
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.parts[0] == HOOKS:
            path.chmod(0o755)
    _show_written(path for path in files if SCHEMAS not in path.parts)


def _show_written(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file():
            click.echo(f"wrote {visible(str(path))}")


def for_environments(
    files: Mapping[Path, bytes], configuration: Configuration
) -> dict[Path, bytes]:
    """Return set-ups with jobs for each environment, made from the files for one service."""
    made = dict(files)
    workflows = {path.name: made.pop(path).decode() for path in files if path.parent == GITHUB}
    if workflows:
        written = _github(workflows, configuration)
        made |= {GITHUB / name: text.encode() for name, text in written.items()}
    if GITLAB in made:
        made[GITLAB] = _gitlab(made[GITLAB].decode(), configuration).encode()
    return made


def _github(texts: Mapping[str, str], configuration: Configuration) -> dict[str, str]:
    """Return workflows by the names of their files.

    Pull requests have one workflow, so that they are validated once. Each environment has workflows
    of its own to apply and to look for drift: one that waits for approval holds up no other.
    """
    named = configuration.environments.values()
    files = {"reconciler-plan.yml": _github_plan(texts["reconciler-plan.yml"], configuration)}
    for each in named:
        words = _words(configuration, [each])
        apply = _replaced(texts["reconciler-apply.yml"], "github-apply", words)
        if not each.protected:
            apply = _replaced(apply, "github-apply-unprotected", words)
        files[f"reconciler-apply-{each.name}.yml"] = apply
        drift = _replaced(texts["reconciler-drift.yml"], "github-drift", words)
        files[f"reconciler-drift-{each.name}.yml"] = drift
    return files


def _github_plan(text: str, configuration: Configuration) -> str:
    named = configuration.environments.values()
    shared = _replaced(text, "github-plan-shared", _words(configuration, named))
    head, validate, *jobs = _GITHUB_JOB.split(shared[(at := shared.index("\njobs:\n")) :])
    made = [
        _replaced("".join(jobs), "github-plan", _words(configuration, [each])) for each in named
    ]
    return "\n".join([shared[:at] + head + validate.rstrip("\n") + "\n", *made])


def _gitlab(text: str, configuration: Configuration) -> str:
    named = configuration.environments.values()
    shared = _replaced(text, "gitlab-shared", _words(configuration, named))
    head, validate, *jobs = _GITLAB_JOB.split(shared)
    made = [
        _gitlab_job(job.rstrip("\n") + "\n", configuration, each) for each in named for job in jobs
    ]
    return "\n".join([head + validate.rstrip("\n") + "\n", *made])


def _gitlab_job(job: str, configuration: Configuration, environment: Environment) -> str:
    words = _words(configuration, [environment])
    found = _GITLAB_NAME.search(job)
    kind = found[1] if found else ""
    made = _replaced(job, f"gitlab-{kind}", words)
    is_manual = kind == "apply" and not environment.protected
    return _replaced(made, "gitlab-apply-unprotected", words) if is_manual else made


def _words(configuration: Configuration, named: Iterable[Environment]) -> Mapping[str, str]:
    """Return what the names in ``environments.toml`` stand for in some environments."""
    chosen = list(named)
    overlays = [each.overlay for each in chosen if each.overlay]
    folders: Sequence[str] = list(
        dict.fromkeys(posixpath.normpath(each) for each in (configuration.manifests, *overlays))
    )
    for folder in folders:
        if not _FOLDER.fullmatch(folder) or folder.split("/")[0] == "..":
            raise UsageError(
                f"no jobs can be written for the folder {visible(folder)}",
                remedy="Give it a name of letters, digits and . _ - /: it stands in their scripts.",
            )
    tops = sorted({CONFIGURATION_FILE, *(each.split("/")[0] for each in folders)})
    return {
        "@NAME@": chosen[0].name if len(chosen) == 1 else "NAME",
        "@TOPS@": " ".join(tops),
        "@IS_TOP@": " or ".join(f'.path == "{each}"' for each in tops),
        "@GITHUB_PATHS@": "".join(f'      - "{each}/**"\n' for each in folders),
        "@GITLAB_PATHS@": "".join(f"        - {each}/**/*\n" for each in folders),
    }


@cache
def _sections() -> Mapping[str, Sequence[Mapping[str, str]]]:
    text = (TEMPLATES / "environments.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _replaced(text: str, section: str, words: Mapping[str, str]) -> str:
    """Return a template with the words that a section has in place of its own.

    Raises:
        ValueError: the template lacks some of them: it was changed, and the section was not.
    """
    for pair in _sections()[section]:
        if pair["of"] not in text:
            raise ValueError(f"the template has no {pair['of']!r}, which {section} replaces")
        new = pair["by"]
        for name, word in words.items():
            new = new.replace(name, word)
        text = text.replace(pair["of"], new)
    return text
