"""CI set-ups without a secret of the service, made from those that have one.

Each job that had a token may ask for a signed token of its own instead. The rules that the service
needs for these jobs are read from the jobs themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_GITHUB_LINE = "RECONCILER_TOKEN: ${{ secrets.RECONCILER_TOKEN }}"
_GITHUB_JOB = re.compile(r"^(?=  [\w-]+:$)", re.MULTILINE)
_GITHUB_WORDS = re.compile(
    r",? and the secret(?:\n#)? RECONCILER_TOKEN \(an? (?:editor|viewer)'s(?:\n#)? token\)"
)
_GITHUB_ENVIRONMENT = re.compile(r"^    environment: (\S+)$", re.MULTILINE)
_GITHUB_APPLIES = '/reconciler" apply '
_RIGHTS = "    permissions:\n"
_RIGHT = "      id-token: write # to sign in at the service without a secret\n"
_GITLAB_TOKEN = re.compile(r'    - export RECONCILER_TOKEN="\$RECONCILER_\w+"\n')
_GITLAB_JOB = re.compile(r"^(?=\.?reconciler [\w .-]+:$)", re.MULTILINE)
_GITLAB_WORDS = re.compile(
    r"^#   RECONCILER_(?:READ|WRITE)_TOKEN .*\n(?:^#      +.*\n)*", re.MULTILINE
)
_GITLAB_ENVIRONMENT = re.compile(r"^  environment:\n    name: (\S+)$", re.MULTILINE)
_GITLAB_SIGNED = (
    "  id_tokens:\n"
    "    RECONCILER_ID_TOKEN:\n"
    "      aud: $RECONCILER_SERVICE # as `serve --origin` has it, without a slash at its end\n"
    "  script:\n"
)
_EDITORS = {
    "github": "--claim ref=refs/heads/{branch} --claim event_name=push "
    "--claim event_name=workflow_dispatch "
    "--claim job_workflow_ref=$repository/.github/workflows/{file}@refs/heads/{branch}",
    "gitlab": "--claim ref={branch} --claim ref_protected=true --claim pipeline_source=push",
}
_VALUES = {
    "github": (
        "repository=OWNER/NAME",
        (
            'ids="--claim repository_id=$(gh api repos/$repository --jq .id)'
            ' --claim repository_owner_id=$(gh api repos/$repository --jq .owner.id)"'
        ),
    ),
    "gitlab": ('ids="--claim project_id=NUMBER"  # Settings > General shows it',),
}


def without_secrets(name: str, files: Mapping[Path, str]) -> dict[Path, str]:
    """Return the files of a set-up, ``github`` or ``gitlab``, for keyless login."""
    change = _github if name == "github" else _gitlab
    return {path: change(text) if path.suffix == ".yml" else text for path, text in files.items()}


def _github(text: str) -> str:
    text = _GITHUB_WORDS.sub(", and no secret of the service", text)
    parts = _GITHUB_JOB.split(text.replace(_GITHUB_LINE, 'RECONCILER_KEYLESS: "1"'))
    return "".join(
        part.replace(_RIGHTS, _RIGHTS + _RIGHT, 1) if "RECONCILER_KEYLESS" in part else part
        for part in parts
    )


def _gitlab(text: str) -> str:
    text = _GITLAB_WORDS.sub("", text)
    parts = _GITLAB_JOB.split(_GITLAB_TOKEN.sub("    - export RECONCILER_KEYLESS=1\n", text))
    return "".join(
        part.replace("  script:\n", _GITLAB_SIGNED, 1) if "RECONCILER_KEYLESS" in part else part
        for part in parts
    )


def trust_lines(name: str, files: Mapping[Path, bytes], branch: str) -> Iterator[str]:
    """Yield the commands that make the rules for the jobs of a set-up, which apply a branch."""
    yield from _VALUES[name]
    for environment, file in sorted(_jobs(name, files)):
        role = "editor" if file else "viewer"
        more = f" {_EDITORS[name].format(file=file, branch=branch)}" if file else ""
        yield (
            f"reconciler trust add {name}-{environment} --preset {name} --role {role} "
            f"--organization NAME $ids --claim environment={environment}{more}"
        )


def _jobs(name: str, files: Mapping[Path, bytes]) -> set[tuple[str, str]]:
    """Return environments of jobs that sign in, with the file of those that apply, else empty."""
    job, environment, applies = (
        (_GITHUB_JOB, _GITHUB_ENVIRONMENT, _GITHUB_APPLIES)
        if name == "github"
        else (_GITLAB_JOB, _GITLAB_ENVIRONMENT, "- reconciler apply ")
    )
    found = set()
    for path, content in files.items():
        for part in job.split(content.decode()) if path.suffix == ".yml" else ():
            named = environment.search(part)
            if named and "RECONCILER_KEYLESS" in part:
                found.add((named[1], path.name if applies in part else ""))
    return found
