"""``reconciler init``: an organization to begin from, and CI set-ups.

In a repository with environments each has jobs of its own. They are made from the same templates
as those for one service, so that every step is stated once; ``environments.toml`` has the words
that differ. An environment without protection is applied once it is merged, if its plan is the one
that was reviewed. A protected one waits for approval, which GitHub asks for by the reviewers of its
environment, and GitLab by a manual job.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import click

from reconciler.cli.ci_place import Place, at_place, check_safe, for_branch, place_here
from reconciler.cli.ci_policies import policies_of, with_policies
from reconciler.cli.configured import environment_named
from reconciler.cli.keyless_jobs import trust_lines, without_secrets
from reconciler.cli.options import command
from reconciler.cli.own_wheel import install_files
from reconciler.cli.parameter_types import complete_folders
from reconciler.configuration.model import Configuration, Environment
from reconciler.errors import InvalidConfigurationError, LocalFileError, UsageError, cannot_write
from reconciler.manifests.files import CONFIGURATION_FILE
from reconciler.report.visible import visible
from reconciler.resources.installation import SCHEMAS, schema_folder

_HERE = Path(__file__).parent
ONE = _HERE / "starter"
"""An organization for one service."""

TWO = _HERE / "starter-environments"
"""An organization in two environments, with its ``reconciler.yaml``."""

TEMPLATES = _HERE / "templates"
GITHUB = Path(".github", "workflows")
GITLAB = Path(".gitlab", "reconciler.gitlab-ci.yml")
_GITHUB_JOB = re.compile(r"^(?=  [a-z]+:$)", re.MULTILINE)
_GITLAB_JOB = re.compile(r"(?<=\n\n)(?=(?:# [^\n]*\n)*reconciler [a-z]+:$)", re.MULTILINE)
_GITLAB_NAME = re.compile(r"^reconciler ([a-z]+):$", re.MULTILINE)
_JOBS = "\njobs:\n"
_PUT_IN = re.compile("<([^>]*)>")
HOOKS = "githooks"
HOOKS_NAME = "git-hooks"
TARGETS = {"github": GITHUB.parent, "gitlab": GITLAB.parent, HOOKS_NAME: Path(HOOKS)}
"""The folder of each set-up, by its flag."""
ANSWERS = ("stop", "apply")
"""The answers to ``--on-unreviewed``; the first is the default."""

TOOL = "reconciler"
"""The folder, beside what a CI set-up reads, that its jobs install the tool from."""


@command("init", example="--environments --github")
@click.argument("directory", default="manifests", metavar="[DIR]", shell_complete=complete_folders)
def init_command(
    directory: str,
    github: bool,
    gitlab: bool,
    environments: bool,
    git_hooks: bool,
    on_unreviewed: str | None,
    environment: str | None,
    source: str | None,
    published: bool,
    keyless: bool,
) -> None:
    """Write a small example organization into DIR.

    With --environments: write one in two environments into the current folder.

    With --github, --gitlab or --git-hooks: write those into the current folder, and no manifests.
    Where reconciler.yaml has environments, each has jobs of its own.
    """
    ci_flags = {
        "--from": source,
        "--published": published,
        "--on-unreviewed": on_unreviewed,
        "--keyless": keyless,
    }
    _check_together(
        ("--github or --gitlab", github or gitlab, ci_flags),
        ("--git-hooks", git_hooks, {"--env": environment}),
    )
    unreviewed = on_unreviewed or ANSWERS[0]
    answers = (unreviewed, unreviewed, environment)
    asked = zip(TARGETS, (github, gitlab, git_hooks), answers, strict=True)
    chosen = {name: answer for name, is_asked, answer in asked if is_asked}
    made: Mapping[str, Mapping[Path, bytes]] = {}
    try:
        if environments:
            _write_new(_files_of(TWO, Path()) | _files_of(schema_folder(), Path(SCHEMAS)))
        if chosen:
            tool = partial(install_files, source, is_published=published)
            made = _chosen(chosen, tool, is_keyless=keyless)
            _write_new({path: each[path] for each in made.values() for path in each})
        if not (chosen or environments):
            _write_starter(Path(directory))
    except OSError as failure:
        what = f"write {failure.filename or directory}"
        raise cannot_write(what, failure, "Name a folder this user may write to.") from failure
    if environments:
        click.echo("Next: reconciler validate, then plan --env staging, then apply --env staging.")
    elif chosen:
        click.echo("Next: the comments at the top of these files say what to set up once.")
    else:
        shown = "" if directory == "manifests" else f" {visible(directory)}"
        click.echo(f"Next: reconciler validate{shown}, then plan{shown}, then apply{shown}.")
    if keyless:
        _show_trust(made)


def _show_trust(made: Mapping[str, Mapping[Path, bytes]]) -> None:
    """Print the commands that make the rules of the jobs, to be run once."""
    click.echo("Then, where the store is or with an admin's token (docs/keyless.md), run once:")
    for name, files in made.items():
        if name != HOOKS_NAME:
            for line in trust_lines(name, files, place_here().branch):
                click.echo(f"  {visible(line)}")


def _check_together(*rows: tuple[str, bool, Mapping[str, object]]) -> None:
    """Refuse a flag without the one that it belongs to."""
    for belongs, is_there, flags in rows:
        for flag, value in flags.items():
            if value and not is_there:
                raise UsageError(
                    f"{flag} is for {belongs}",
                    remedy=f"Add {belongs}, or leave {flag} out.",
                )


def _files_of(folder: Path, target: Path) -> dict[Path, bytes]:
    """Return the files of a folder by where they are to be beneath another one."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {target / path.relative_to(folder): path.read_bytes() for path in paths}


def _chosen(
    answers: Mapping[str, str | None],
    tool: Callable[..., Mapping[str, bytes]],
    *,
    is_keyless: bool,
) -> Mapping[str, Mapping[Path, bytes]]:
    """Return the files of each set-up that has an answer here, with the tool where jobs run it."""
    made = {}
    place = place_here()
    configuration = _configuration(place)
    has_policies = bool(policies_of(place, configuration))
    for name, answer in answers.items():
        made[name] = _set_up(name, answer, place, configuration, is_keyless=is_keyless)
        if name != HOOKS_NAME:
            folder = place.top / TARGETS[name] / TOOL
            installed = tool(has_policies=has_policies)
            made[name] |= {folder / file: content for file, content in installed.items()}
    return made


def _set_up(
    name: str,
    answer: str | None,
    place: Place,
    configuration: Configuration | None,
    *,
    is_keyless: bool,
) -> dict[Path, bytes]:
    """Return the files of a set-up, paths from the current folder.

    ``answer`` is the environment of Git hooks, or what jobs do with a push that was not reviewed.
    """
    templates = _files_of(TEMPLATES / name, TARGETS[name])
    made = {path: content.decode() for path, content in templates.items()}
    if name == HOOKS_NAME:
        made = _hooks(made, configuration, answer, place.folder or ".")
        return {path: text.encode() for path, text in made.items()}
    made = for_branch(made, place.branch)
    if configuration is not None and configuration.environments:
        made = for_environments(made, configuration)
    made = with_policies(made, policies_of(place, configuration), place.folder)
    made = at_place(made, place)
    made = without_secrets(name, made) if is_keyless else made
    return {
        place.top / path: text.replace("ON_UNREVIEWED: stop", f"ON_UNREVIEWED: {answer}").encode()
        for path, text in made.items()
    }


def set_ups() -> Iterator[tuple[str, Path, Sequence[Mapping[Path, bytes]]]]:
    """Yield each set-up as this version writes it: its name, its folder, and its files by path.

    The files come once for each answer to what its flags ask, with a secret of the service and
    without. What the jobs install the tool from is not among them.
    """
    place = place_here()
    configuration = _configuration(place)
    environments = configuration.environments if configuration else [None]
    for name, target in TARGETS.items():
        is_hooks = name == HOOKS_NAME
        answers = environments if is_hooks else ANSWERS
        forms = [
            _set_up(name, answer, place, configuration, is_keyless=is_keyless)
            for is_keyless in ([False] if is_hooks else [False, True])
            for answer in answers
        ]
        yield name, target if is_hooks else place.top / target, forms


def _hooks(
    files: Mapping[Path, str], configuration: Configuration | None, name: str | None, folder: str
) -> dict[Path, str]:
    """Return Git hooks, which are for one environment where there is a configuration.

    Raises:
        UsageError: the configuration has no such environment, or none is named.
    """
    if configuration is None and name is None:
        return dict(files)
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
    chosen = environment_named(configuration, name)
    said = (
        ("\nenvironment=\n", f"\nenvironment={name}\n"),
        ("\nfolder=.\n", f"\nfolder={folder}\n"),
        ("\napproval=\n", f"\napproval={'digest' if chosen.protected else ''}\n"),
    )
    made = dict(files)
    for path in files:
        for old, new in said:
            made[path] = made[path].replace(old, new)
    return made


def _configuration(place: Place) -> Configuration | None:
    """Return the configuration of the tree, if it has one."""
    file = place.tree / CONFIGURATION_FILE
    if not file.exists():
        return None
    from reconciler.configuration.reading import read_configuration

    configuration, findings = read_configuration(str(file))
    if configuration is None:
        raise InvalidConfigurationError(findings)
    return configuration


def _write_starter(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LocalFileError(
            f"{target} is there already and is not an empty folder",
            remedy="Name a folder that does not exist yet: reconciler init DIR.",
        )
    _write_new(_files_of(ONE, target) | _files_of(schema_folder(), target / SCHEMAS))


def _write_new(files: Mapping[Path, bytes]) -> None:
    """Write files, if none of them is there yet."""
    for path, content in files.items():
        if path.exists() and not _is_kept(path, content):
            raise LocalFileError(
                f"{path} is there already",
                remedy="Move it away first; nothing was written.",
            )
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.parts[0] == HOOKS:
            path.chmod(0o755)
    for path in files:
        if SCHEMAS not in path.parts:
            click.echo(f"wrote {visible(str(path))}")


def _is_kept(path: Path, content: bytes) -> bool:
    """Return whether a file of the tool's folder is there as it would be written.

    The trees of one repository share that folder.
    """
    return path.parts[-2:-1] == (TOOL,) and path.is_file() and path.read_bytes() == content


def for_environments(files: Mapping[Path, str], configuration: Configuration) -> dict[Path, str]:
    """Return set-ups with jobs for each environment, made from the files for one service."""
    made = dict(files)
    workflows = {path.name: made.pop(path) for path in files if path.parent == GITHUB}
    if workflows:
        written = _github(workflows, configuration)
        made |= {GITHUB / name: text for name, text in written.items()}
    if GITLAB in made:
        made[GITLAB] = _gitlab(made[GITLAB], configuration)
    return made


def _github(texts: Mapping[str, str], configuration: Configuration) -> dict[str, str]:
    """Return workflows by the names of their files.

    Pull requests have one workflow, so that they are validated once. Each environment has workflows
    of its own to apply and to look for drift: one that waits for approval holds up no other. Those
    that come ``after`` each other are applied by one workflow: a job can wait for jobs of its own
    workflow only.
    """
    files = {"reconciler-plan.yml": _github_plan(texts["reconciler-plan.yml"], configuration)}
    for each in configuration.environments.values():
        words = _words(configuration, [each])
        drift = _replaced(texts["reconciler-drift.yml"], "github-drift", words)
        files[f"reconciler-drift-{each.name}.yml"] = drift
        if not each.after:
            made = _github_apply(texts["reconciler-apply.yml"], configuration, each)
            files[f"reconciler-apply-{each.name}.yml"] = made
    return files


def _github_apply(text: str, configuration: Configuration, first: Environment) -> str:
    """Return the workflow that applies an environment, and then all that come after it."""
    named = _with_later(configuration, first)
    made = [_github_apply_alone(text, configuration, each) for each in named]
    if len(named) == 1:
        return made[0]
    shared = _replaced(text, "github-apply", _words(configuration, named))
    words = {
        "@FIRST@": first.name,
        "@NAMES@": ", ".join(each.name for each in named),
    }
    head = _replaced(shared[: shared.index(_JOBS)], "github-apply-several", words)
    jobs = [
        _github_apply_after(
            one[one.index(_JOBS) + len(_JOBS) :],
            {**words, "@NAME@": each.name},
            _before(named, each),
        )
        for one, each in zip(made, named, strict=True)
    ]
    return head + _JOBS + "\n".join(jobs)


def _github_apply_alone(text: str, configuration: Configuration, environment: Environment) -> str:
    words = _words(configuration, [environment])
    apply = _replaced(text, "github-apply", words)
    if environment.protected:
        return apply
    return _replaced(apply, "github-apply-unprotected", words)


def _github_apply_after(jobs: str, words: Mapping[str, str], before: Sequence[str]) -> str:
    """Return the jobs of one environment for a workflow that has those of others as well.

    A job that is skipped has nothing to apply, or waits for one that failed: so each environment
    ``before`` this one is asked about.
    """
    jobs = _replaced(jobs, "github-apply-together", words)
    if not before:
        return jobs
    more = {
        "@NEEDS@": "".join(f", review-{each}, apply-{each}" for each in before),
        "@APPLIED@": "".join(map(_applied, before)),
    }
    return _replaced(jobs, "github-apply-after", {**words, **more})


def _applied(name: str) -> str:
    """Return the lines of a condition: an environment is applied, or has nothing to apply."""
    result = f"needs.apply-{name}.result"
    return (
        f"      needs.review-{name}.result == 'success' &&\n"
        f"      ({result} == 'success' || {result} == 'skipped') &&\n"
    )


def _before(named: Iterable[Environment], environment: Environment) -> Sequence[str]:
    """Return the names of the environments that are applied before one, the nearest first."""
    after = {each.name: each.after for each in named}
    names, name = [], environment.after
    while name:
        names.append(name)
        name = after[name]
    return names


def _with_later(configuration: Configuration, first: Environment) -> Sequence[Environment]:
    """Return an environment and all that come after it, each behind the one it waits for."""
    named = [first]
    for each in named:  # grows while it is read
        named += [one for one in configuration.environments.values() if one.after == each.name]
    return named


def _github_plan(text: str, configuration: Configuration) -> str:
    named = configuration.environments.values()
    shared = _replaced(text, "github-plan-shared", _words(configuration, named))
    head, validate, *jobs, verdict = _GITHUB_JOB.split(shared[(at := shared.index(_JOBS)) :])
    made = [
        _replaced("".join(jobs), "github-plan", _words(configuration, [each])) for each in named
    ]
    made = [job.rstrip("\n") + "\n" for job in made]
    return "\n".join([shared[:at] + head + validate.rstrip("\n") + "\n", *made, verdict])


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
    if kind in {"apply", "approve"} and environment.after:
        made = _replaced(made, f"gitlab-{kind}-after", {**words, "@AFTER@": environment.after})
    is_manual = kind == "apply" and environment.protected
    return _replaced(made, "gitlab-apply-protected", words) if is_manual else made


def _words(configuration: Configuration, named: Iterable[Environment]) -> Mapping[str, str]:
    """Return what the names in ``environments.toml`` stand for in some environments."""
    chosen = list(named)
    folders = _folders(configuration, chosen)
    # A job that stops because the branch has moved on stops those that come after it, too.
    known = configuration.environments
    earlier = [known[name] for each in chosen for name in _before(known.values(), each)]
    judged = _folders(configuration, [*chosen, *earlier])
    for folder in judged:
        check_safe("folder", folder)
    above = configuration.folder.relative_to(configuration.repository).as_posix()
    top = "" if above == "." else f"{above}/"
    tops = sorted({CONFIGURATION_FILE, *(each.split("/")[0] for each in judged)})
    return {
        "@NAME@": chosen[0].name if len(chosen) == 1 else "NAME",
        "@FOLDERS@": " ".join(folders),
        "@PLANS@": ", ".join(f"plan-{each.name}, comment-{each.name}" for each in chosen),
        "@TOPS@": " ".join(tops),
        "@IS_TOP@": " or ".join(f'.path == "{each}"' for each in tops),
        "@FOLDER@": top,
        "@GITHUB_PATHS@": "".join(f'      - "{top}{each}/**"\n' for each in folders),
        "@GITLAB_PATHS@": "".join(f"  - {top}{each}/**/*\n" for each in folders),
    }


def _folders(configuration: Configuration, named: Iterable[Environment]) -> Sequence[str]:
    """Return the folders of the manifests of some environments."""
    overlays = [each.overlay for each in named if each.overlay]
    return list(
        dict.fromkeys(posixpath.normpath(each) for each in (configuration.manifests, *overlays))
    )


@cache
def _sections() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the words of each section that are replaced, and those that replace them."""
    text = (TEMPLATES / "environments.toml").read_text(encoding="utf-8")
    sections = tomllib.loads(text)
    named = sections.pop("named")
    found = {name: [(each["of"], each["by"]) for each in pairs] for name, pairs in sections.items()}
    for name, words in named.items():
        pairs = ((_PUT_IN.sub("", each), _PUT_IN.sub(r"\1", each)) for each in words)
        found.setdefault(name, []).extend(pairs)
    return found


def _replaced(text: str, section: str, words: Mapping[str, str]) -> str:
    """Return a template with the words that a section has in place of its own.

    Raises:
        ValueError: the template lacks some of them: it was changed, and the section was not.
    """
    for pair in _sections()[section]:
        old, new = pair
        for name, word in words.items():
            old, new = old.replace(name, word), new.replace(name, word)
        if old not in text:
            raise ValueError(f"the template has no {old!r}, which {section} replaces")
        text = text.replace(old, new)
    return text
