"""CI set-ups without a secret of the service: each job signs in with a signed token of its own."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.cli.ci_jobs import files_of
from reconciler.cli.ci_place import Place
from reconciler.configuration.model import Configuration

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


def trust_lines(name: str, place: Place, configuration: Configuration | None) -> Iterator[str]:
    """Yield the commands that make the rules for the jobs of a set-up."""
    yield from _VALUES[name]
    rules = []
    for file in files_of("reconciler-apply", place, configuration):
        claims = _EDITORS[name].format(file=file.file, branch=place.branch)
        for each in file.environments:
            rules.append((f"{place.ours}-plan{each.dash}", "viewer", ""))
            rules.append((f"{place.ours}-apply{each.dash}", "editor", f" {claims}"))
    for environment, role, more in sorted(rules):
        yield (
            f"reconciler trust add {name}-{environment} --preset {name} --role {role} "
            f"--organization NAME $ids --claim environment={environment}{more}"
        )
