"""The CI set-ups of ``init`` for a repository with environments: jobs for each of them.

They are made from the same templates as those for one service, so that every step is stated once;
``environments.toml`` has the words that differ. An environment without protection is applied once
it is merged. A protected one waits for approval, which GitHub asks for by the reviewers of its
environment, and GitLab by a manual job.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from reconciler.configuration.model import Configuration, Environment
from reconciler.errors import UsageError
from reconciler.manifests.files import CONFIGURATION_FILE
from reconciler.report.visible import visible

TEMPLATES = Path(__file__).parent / "templates"
GITHUB = Path(".github", "workflows")
GITLAB = Path(".gitlab", "reconciler.gitlab-ci.yml")
_FOLDER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]*", re.ASCII)
_GITHUB_JOB = re.compile(r"^(?=  [a-z]+:$)", re.MULTILINE)
_GITLAB_JOB = re.compile(r"(?<=\n\n)(?=(?:# [^\n]*\n)*reconciler [a-z]+:$)", re.MULTILINE)
_GITLAB_NAME = re.compile(r"^reconciler ([a-z]+):$", re.MULTILINE)


def for_environments(
    files: Mapping[Path, bytes], configuration: Configuration
) -> dict[Path, bytes]:
    """Return the files of set-ups with jobs for each environment of a configuration.

    Args:
        files: Those for one service, by path.
        configuration: The one in the folder that the files are for.
    """
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
    """Return what the names in ``environments.toml`` stand for in some environments.

    Raises:
        UsageError: a folder has a name that cannot stand in a script.
    """
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
