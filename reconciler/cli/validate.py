"""``reconciler validate``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from reconciler.cli.configured import (
    Configured,
    Need,
    configured,
    judging_capabilities,
    with_first_step,
)
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import draw, not_quiet
from reconciler.cli.policies import Judge, PolicyFolders, judging
from reconciler.cli.process import ExitCode, keep_until_exit
from reconciler.diagnostics import Diagnostic, Severity, SourceLocation, error, of_all
from reconciler.errors import UsageError, writing
from reconciler.manifests.discovery import MAX_FILE, FoundFile
from reconciler.manifests.extent import is_within
from reconciler.manifests.files import git_root
from reconciler.manifests.loader import KnownFiles, load
from reconciler.manifests.manifest import Root
from reconciler.report.findings import FORMAT_VERSION, counts, finding_as_json, findings_as_text
from reconciler.report.layout import Forms, Layout, fitted, in_json
from reconciler.report.visible import PLAIN, Style
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Shard
from reconciler.validation.desired import (
    judge,
    undeclared,
    unmet_needs,
)

STDIN = "-"
STDIN_NAME = "stdin"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


class Outcome(NamedTuple):
    """The outcome of a validation.

    Attributes:
        findings: Each once, in the order of their places.
        files: The file of every manifest that was read in some environment.
        environments: Names of the environments that were judged; empty for a tree without.
    """

    findings: tuple[Diagnostic, ...]
    files: Sequence[str] = ()
    environments: Sequence[str] = ()

    @property
    def is_valid(self) -> bool:
        """Return whether there is no error."""
        return not any(finding.is_error for finding in self.findings)


def _text(outcome: Outcome, layout: Layout) -> str:
    shown = not_quiet(outcome.findings)
    lines = [findings_as_text(shown, layout)] if shown else []
    if outcome.is_valid:
        lines.append(fitted(_valid(outcome, layout.style), layout.width))
    return "\n".join(lines)


def _valid(outcome: Outcome, style: Style = PLAIN) -> str:
    count, names = len(outcome.files), outcome.environments
    noun = "manifest is" if count == 1 else "manifests are"
    where = "environment" if len(names) == 1 else "environments"
    which = f" in {where} {', '.join(names)}" if names else ""
    return f"{style('Valid:', 'green', 'bold')} {count} {noun} right{which}."


def _json(outcome: Outcome) -> JsonObject:
    names = outcome.environments
    return {
        "format_version": FORMAT_VERSION,
        "valid": outcome.is_valid,
        **({"environments": names} if names else {}),
        "manifests": len(outcome.files),
        "diagnostics": [finding_as_json(finding) for finding in outcome.findings],
    }


def _github(outcome: Outcome, layout: Layout) -> str:
    from reconciler.report.ci import findings_as_annotations

    findings = outcome.findings
    annotated = [findings_as_annotations(findings, _folder_here())] if findings else []
    return "\n".join([*annotated, _valid(outcome) if outcome.is_valid else counts(findings)])


def _folder_here() -> str:
    """Return the current folder from the Git root; empty at the root, and without Git."""
    here = Path.cwd()
    root = git_root(here)
    return here.relative_to(root).as_posix() if root and root != here else ""


def _sarif(outcome: Outcome) -> JsonObject:
    from reconciler.report.ci import findings_as_sarif

    return findings_as_sarif(outcome.findings)


def _junit(outcome: Outcome, layout: Layout) -> str:
    from reconciler.report.ci import findings_as_junit

    return findings_as_junit(outcome.findings, outcome.files)


_FORMS: Forms[Outcome] = {
    "text": _text,
    "json": in_json(_json),
    "github": _github,
    "sarif": in_json(_sarif),
    "junit": _junit,
}


@command("validate", example="--strict manifests", formats=(*_FORMS,), need=Need.ALL)
@paths_argument
def validate_command(
    paths: tuple[str, ...], shard: Shard | None, folders: PolicyFolders, *, strict: bool, form: str
) -> int:
    """Check manifests without a service, and show every finding.

    PATHS are files and folders; the default is the folder manifests. A part of the tree is judged
    by itself: what it names may be declared in the rest. The path - is a stream of manifests on
    stdin, as render writes it. Where reconciler.yaml has environments and none is chosen, all are
    checked. The format github writes annotations and, in a workflow, the summary of the step.
    """
    chosen = configured()
    with judging(folders, chosen) as judge:
        outcome = _judged(paths, shard, chosen, judge)
    if strict:
        outcome = outcome._replace(findings=tuple(map(_strictly, outcome.findings)))
    draw(_FORMS[form], outcome)
    if form == "github":
        _write_summary(outcome)
    return ExitCode.DONE if outcome.is_valid else ExitCode.ERROR


def _strictly(finding: Diagnostic) -> Diagnostic:
    """Return a warning as an error; everything else as it is."""
    is_warning = finding.severity is Severity.WARNING
    return replace(finding, severity=Severity.ERROR) if is_warning else finding


def _judged(
    paths: Sequence[str], shard: Shard | None, chosen: Configured, policies: Judge
) -> Outcome:
    """Judge the manifests in the environment that was chosen, or in each of them."""
    if any(finding.is_error for finding in chosen.findings):
        return Outcome(chosen.findings)
    piped = _piped(paths)
    found: dict[str, list[Diagnostic]] = {}
    read: dict[tuple[str, int], str] = {}
    environments = chosen.each()
    known = KnownFiles() if len(environments) > 1 else None
    for each in environments:
        layers = each.layers if _concerns(each, paths) else each.layers.variables_alone
        loaded = load(paths or each.manifests, shard, layers, known, piped)
        judgement = judge(loaded)
        keep_until_exit((loaded, judgement))
        unmet = unmet_needs(judgement.desired, judging_capabilities(each))
        of_manifests = with_first_step(judgement.diagnostics, paths, chosen)
        by_policies = policies.declared(each, judgement.desired)
        found[each.name] = [*each.findings, *of_manifests, *unmet, *by_policies]
        if piped and not loaded.manifests and not any(one.is_error for one in found[each.name]):
            found[each.name] = [_NOTHING_PIPED]
        if judgement.named is not None and loaded.whole:
            named = replace(judgement.desired, resources=judgement.named)
            found[each.name] += undeclared(named)
        read |= {(each.file.name, each.index): each.file.name for each in loaded.manifests}
    return Outcome(of_all(found), list(read.values()), list(filter(None, found)))


def _concerns(chosen: Configured, paths: Sequence[str]) -> bool:
    """Return whether PATHS hold manifests of the tree, over which an overlay can be laid."""
    root = chosen.layers.root
    return not paths or is_within(root, paths) or any(is_within(path, [root]) for path in paths)


# What writes to a pipe may have failed, and a shell reports only how the last command ended.
_NOTHING_PIPED = error(
    "FILE-NONE",
    "no manifests found",
    "Check that the command before the | wrote them.",
    SourceLocation(STDIN_NAME),
)


def _piped(paths: Sequence[str]) -> FoundFile | None:
    """Return what stdin holds, if PATHS name it.

    Raises:
        UsageError: there are other PATHS beside it, or it holds too much.
    """
    if STDIN not in paths:
        return None
    if len(paths) > 1:
        raise UsageError(
            f"{STDIN} stands beside other PATHS", remedy="Give it alone: stdin is judged by itself."
        )
    data = sys.stdin.buffer.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise UsageError(
            f"stdin holds more than {MAX_FILE} bytes",
            remedy="Write files, `reconciler render --out DIR`, and give their folder.",
        )
    return FoundFile(STDIN_NAME, data, Root(""), ())


def _write_summary(outcome: Outcome) -> None:
    """Add the findings to the summary of the step, where a workflow has one."""
    from reconciler.report.ci import findings_as_summary

    path = os.environ.get(STEP_SUMMARY)
    if not path:
        return
    text = findings_as_summary(outcome.findings, len(outcome.files))
    with (
        writing(f"write the step summary {path}", f"Make it writable, or unset {STEP_SUMMARY}."),
        Path(path).open("a", encoding="utf-8") as summary,
    ):
        summary.write(text)
