"""``reconciler policy``: the examples of policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from reconciler.cli.configured import Configured, configured
from reconciler.cli.options import command, group
from reconciler.cli.output import draw, not_quiet
from reconciler.cli.parameter_types import complete_folders
from reconciler.cli.process import ExitCode
from reconciler.configuration.policies import read_policies
from reconciler.diagnostics import Diagnostic, by_place, error, warning
from reconciler.errors import UsageError
from reconciler.policy.engine import Engine
from reconciler.policy.model import Example, Policy, Verdict
from reconciler.report.findings import FORMAT_VERSION, finding_as_json, findings_as_text
from reconciler.report.layout import Forms, Layout, fitted, in_json
from reconciler.resources.call import JsonObject
from reconciler.resources.schemas import POLICIES


class Tested(NamedTuple):
    """The outcome of a test.

    Attributes:
        findings: What is wrong with the policies, and which examples are not as they say.
        policies: Names of the policies, each with the number of its examples.
    """

    findings: tuple[Diagnostic, ...]
    policies: tuple[tuple[str, int], ...]

    @property
    def passed(self) -> bool:
        """Return whether there is no error."""
        return not any(finding.is_error for finding in self.findings)


def _text(tested: Tested, layout: Layout) -> str:
    shown = not_quiet(tested.findings)
    lines = [findings_as_text(shown, layout)] if shown else []
    if tested.passed:
        policies = f"{len(tested.policies)} {'policy' if len(tested.policies) == 1 else 'policies'}"
        count = sum(count for _, count in tested.policies)
        examples = f"{count} example{'' if count == 1 else 's'}"
        verdict = layout.style("Passed:", "green", "bold")
        lines.append(fitted(f"{verdict} {examples} of {policies}.", layout.width))
    return "\n".join(lines)


def _json(tested: Tested) -> JsonObject:
    return {
        "format_version": FORMAT_VERSION,
        "passed": tested.passed,
        "policies": [{"name": name, "examples": count} for name, count in tested.policies],
        "diagnostics": [finding_as_json(finding) for finding in tested.findings],
    }


_FORMS: Forms[Tested] = {"text": _text, "json": in_json(_json)}

policy_group = group("policy", "Work with policies: rules of your own over plans.")


@command("policy test", example="policies", formats=(*_FORMS,), within=policy_group)
@click.argument("dirs", nargs=-1, metavar="[DIR]...", shell_complete=complete_folders)
def test_command(dirs: tuple[str, ...], form: str) -> int:
    """Judge the examples of policies: those that pass, and those that fail.

    DIR is a folder of policies, or recommended; the default is what reconciler.yaml names, else the
    folder policies. No service and no manifests are read.
    """
    read, found = read_policies(dirs or _default(configured()))
    with Engine(read.policies) as engine:
        findings = [*found, *engine.check()]
        if not any(finding.is_error for finding in findings):
            findings += _untested(read.policies)
            findings += _unexpected(read.policies, engine)
    counts = tuple((policy.name, len(policy.examples)) for policy in read.policies)
    tested = Tested(by_place(findings), counts)
    draw(_FORMS[form], tested)
    return ExitCode.DONE if tested.passed else ExitCode.ERROR


def _default(chosen: Configured) -> Sequence[str]:
    if chosen.configuration is None:
        return (POLICIES,)
    if not chosen.configuration.policies:
        raise UsageError(
            f"{chosen.configuration.file} names no policies",
            remedy="Write policies: [policies] there, or give the folder: policy test DIR.",
        )
    return chosen.configuration.policy_folders


def _untested(policies: Sequence[Policy]) -> list[Diagnostic]:
    return [
        warning(
            "POLICY-UNTESTED",
            f"policy {policy.name} has no example that fails",
            "Add one below examples.fail: without one, the rule may refuse nothing.",
            policy.source.place("metadata", "name"),
        )
        for policy in policies
        if all(example.passes for example in policy.examples)
    ]


def _unexpected(policies: Sequence[Policy], engine: Engine) -> list[Diagnostic]:
    """Return an error for each example that is not judged as it says."""
    found = (
        _mistake(policy, each, engine.judge_alone(policy, each.subjects, each.setting))
        for policy in policies
        for each in policy.examples
    )
    return [each for each in found if each is not None]


def _mistake(policy: Policy, example: Example, verdicts: Sequence[Verdict]) -> Diagnostic | None:
    broken = next((each for each in verdicts if each.reason), None)
    if broken is not None:
        summary = f"policy {policy.name} could not judge an example: {broken.reason}"
        remedy = "What cannot be judged is refused. Correct the rule or the example."
    elif example.passes == (not verdicts):
        return None
    elif example.passes:
        summary = f"policy {policy.name} refuses an example that it should let pass"
        remedy = "Correct the rule, or move the example below examples.fail."
    else:
        summary = f"policy {policy.name} lets an example pass that it should refuse"
        remedy = "Correct the rule, or move the example below examples.pass."
    return error("POLICY-EXAMPLE", summary, remedy, example.place)
