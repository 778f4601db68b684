"""CI set-ups: files made from templates, for one service or for the environments of a tree.

In a template (Jinja) ``@{word}`` stands for a word, and lines that begin with ``#%`` say which
lines a set-up has. Each environment has jobs of its own. One without protection is applied once it
is merged, if its plan is the one that was reviewed. A protected one waits for approval, which
GitHub asks for by the reviewers of its environment, and GitLab by a manual job.

Jobs judge by the policies of the target branch. A tree has policies where ``reconciler.yaml`` names
some, or, in a tree without one, where a folder ``policies`` stands beside the manifests.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from reconciler.cli.ci_place import Place, check_safe, place_here
from reconciler.cli.configured import environment_named
from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.errors import InvalidConfigurationError, UsageError
from reconciler.manifests.files import CONFIGURATION_FILE
from reconciler.resources.schemas import POLICIES, RECOMMENDED

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
HOOKS = "githooks"
HOOKS_NAME = "git-hooks"
TARGETS = {"github": Path(".github"), "gitlab": Path(".gitlab"), HOOKS_NAME: Path(HOOKS)}
"""The folder of each set-up, by its flag."""
ANSWERS = ("stop", "apply")
"""The answers to ``--on-unreviewed``; the first is the default."""

# Of rules for jobs that sign in without a secret: the claims of an editor, and values they need.
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


class Jobs(NamedTuple):
    """The jobs of one environment, or of the only service.

    Attributes:
        name: The environment; empty for the only service.
        dash: The end of names, such as ``-live``.
        blank: The end of titles, such as `` live``.
        note: The end of sentences, such as `` (live)``.
        tree: The arguments that name the tree, with a blank before them.
        tops: First parts of the paths of its manifests, and ``reconciler.yaml``.
        before: Names of the environments that are applied before it, the nearest first.
    """

    name: str
    dash: str
    blank: str
    note: str
    tree: str
    is_protected: bool
    tops: Sequence[str]
    before: Sequence[str]


class File(NamedTuple):
    """A file of jobs.

    Attributes:
        folders: The folders of the manifests of its environments.
    """

    file: str
    environments: Sequence[Jobs]
    folders: Sequence[str]


def set_up(
    name: str,
    answer: str | None,
    place: Place,
    configuration: Configuration | None,
    *,
    is_keyless: bool,
) -> dict[Path, bytes]:
    """Return the files of a set-up, paths from the current folder.

    ``answer`` is the environment of Git hooks, or what jobs do with a push that was not reviewed.

    Raises:
        UsageError: a name would not be safe in a script, or Git hooks are for no environment.
    """
    is_hooks = name == HOOKS_NAME
    if is_hooks:
        words = _words_of_hooks(configuration, answer, place.folder or ".")
    else:
        words = _words(place, configuration)
        words |= {"keyless": is_keyless, "on_unreviewed": answer}
    folder = TARGETS[name] if is_hooks else place.top / TARGETS[name]
    made = {}
    for path in sorted(each for each in (TEMPLATES / name).rglob("*") if each.is_file()):
        inside = path.relative_to(TEMPLATES / name)
        template = _templates().get_template(f"{name}/{inside}")
        if path.suffix != ".yml":
            made[folder / inside] = template.render(words).encode()
            continue
        for each in files_of(path.stem, place, configuration):
            text = template.render(words | each._asdict())
            made[folder / inside.with_name(each.file)] = text.encode()
    return made


def set_ups() -> Iterator[tuple[str, Path, Sequence[Mapping[Path, bytes]]]]:
    """Yield each set-up as this version writes it: its name, its folder, and its files by path.

    The files come once for each answer to what its flags ask, with a secret of the service and
    without. What the jobs install the tool from is not among them.
    """
    place = place_here()
    configuration = configuration_of(place)
    environments = configuration.environments if configuration else [None]
    for name, target in TARGETS.items():
        is_hooks = name == HOOKS_NAME
        forms = [
            set_up(name, answer, place, configuration, is_keyless=is_keyless)
            for is_keyless in ([False] if is_hooks else [False, True])
            for answer in (environments if is_hooks else ANSWERS)
        ]
        if forms:  # hooks are for environments, where there is a configuration
            yield name, target if is_hooks else place.top / target, forms


def configuration_of(place: Place) -> Configuration | None:
    """Return the configuration of the tree, if it has one."""
    file = place.tree / CONFIGURATION_FILE
    if not file.exists():
        return None
    from reconciler.configuration.reading import read_configuration

    configuration, findings = read_configuration(str(file))
    if configuration is None:
        raise InvalidConfigurationError(findings)
    return configuration


def policies_of(place: Place, configuration: Configuration | None) -> tuple[Sequence[str], bool]:
    """Return the folders of a tree's policies, and whether those of the package judge as well.

    Raises:
        UsageError: a folder has a name that would not be safe in a script.
    """
    if configuration is None:
        return [POLICIES] if (place.tree / POLICIES).is_dir() else [], False
    own = [each for each in configuration.policies if each != RECOMMENDED]
    folders = [each.removeprefix("./").rstrip("/") for each in own]
    for folder in folders:
        do = "Put them into a folder beneath that of reconciler.yaml, with a name"
        check_safe("policies in", folder, do)
    return folders, RECOMMENDED in configuration.policies


@cache
def _templates() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(),  # in HTML only, and no file is that
        variable_start_string="@{",
        variable_end_string="}",
        line_statement_prefix="#%",
        # Not in any file: scripts and workflows have the usual ones in them.
        block_start_string="@%",
        comment_start_string="@#",
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )


def _words_of_hooks(
    configuration: Configuration | None, name: str | None, folder: str
) -> dict[str, object]:
    """Return the words of Git hooks, which are for one environment if there is a configuration."""
    if configuration is None and name is None:
        return {"environment": "", "folder": ".", "approval": ""}
    if configuration is None:
        raise UsageError(
            "there is no reconciler.yaml for --env",
            remedy="Run it in the folder of reconciler.yaml, or leave --env out.",
        )
    if name is None:
        names = ", ".join(configuration.environments)
        known = f"The environments are {names}." if names else "Declare an environment first."
        raise UsageError(
            f"hooks are for one environment, and {configuration.file} has a say in it",
            remedy=f"Give --env NAME: hooks without it would apply the tree default, without "
            f"variables and overlays. {known}",
        )
    is_protected = environment_named(configuration, name).protected
    return {
        "environment": name,
        "folder": folder,
        "approval": "digest" if is_protected else "",
    }


def _words(place: Place, configuration: Configuration | None) -> dict[str, object]:
    """Return the words of jobs that are the same in all files of a set-up."""
    check_safe("branch", place.branch)
    folders, has_recommended = policies_of(place, configuration)
    beneath = f"{place.folder}/" if place.folder else ""
    has_environments = configuration is not None and bool(configuration.environments)
    branch = quote(place.branch, safe="")
    in_folder = f"contents/{place.folder}?ref={branch}", ".[] | {path: .name, sha}"
    contents, entries = in_folder if place.folder else (f"git/trees/{branch}", ".tree[]")
    return {
        "ours": place.ours,
        "title": f"reconciler {place.name}" if place.folder else "reconciler",
        "folder": place.folder,
        "beneath": beneath,
        "branch": place.branch,
        "contents": contents,
        "entries": entries,
        "has_environments": has_environments,
        "policies": f" --policies {POLICIES}" if folders and configuration is None else "",
        "policy_folders": folders,
        "has_recommended": has_recommended,
        # Of the target branch, beside the tool: with policies comes reconciler.yaml above them.
        "trusted_folders": [beneath + each for each in folders]
        or ([place.folder] if has_environments and place.folder else []),
    }


def files_of(stem: str, place: Place, configuration: Configuration | None) -> Iterator[File]:
    """Yield the files that the template of a name makes.

    Pull requests have one workflow, so that they are validated once. Each environment has workflows
    of its own to apply and to look for drift: one that waits for approval holds up no other. Those
    that come ``after`` each other are applied by one workflow: a job can wait for jobs of its own
    workflow only.
    """
    known = configuration or Configuration(CONFIGURATION_FILE, Path(), Path())
    only = Environment("", SourceLocation(CONFIGURATION_FILE))
    named = list(known.environments.values()) or [only]
    groups: dict[str, Sequence[Sequence[Environment]]] = {
        "reconciler-apply": [_with_later(known, each) for each in named if not each.after],
        "reconciler-drift": [[each] for each in named],
    }
    for group in groups.get(stem, [named]):
        jobs = [_jobs(known, each) for each in group]
        end = jobs[0].dash if stem in groups else ""
        file = f"{stem.replace('reconciler', place.ours, 1)}{end}.yml"
        yield File(file, jobs, _folders(known, group))


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


def _jobs(configuration: Configuration, environment: Environment) -> Jobs:
    known = configuration.environments
    before, earlier = [], environment.after
    while earlier:
        before.append(earlier)
        earlier = known[earlier].after
    # A job that stops because the branch has moved on stops those that come after it, too.
    judged = _folders(configuration, [environment, *(known[name] for name in before)])
    tops = sorted({CONFIGURATION_FILE, *(folder.split("/")[0] for folder in judged)})
    name = environment.name
    tree = f" --env {name}" if name else f" {judged[0]}"
    ends = (f"-{name}", f" {name}", f" ({name})") if name else ("", "", "")
    return Jobs(name, *ends, tree, environment.protected, tops, before)


def _with_later(configuration: Configuration, first: Environment) -> Sequence[Environment]:
    """Return an environment and all that come after it, each behind the one it waits for."""
    named = [first]
    for each in named:  # grows while it is read
        named += [one for one in configuration.environments.values() if one.after == each.name]
    return named


def _folders(configuration: Configuration, named: Iterable[Environment]) -> Sequence[str]:
    """Return the folders of the manifests of some environments."""
    overlays = [each.overlay for each in named if each.overlay]
    written = map(posixpath.normpath, (configuration.manifests, *overlays))
    folders = list(dict.fromkeys(written))
    for folder in folders:
        check_safe("folder", folder)
    return folders
