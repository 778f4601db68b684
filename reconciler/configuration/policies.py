"""Reading of policies and waivers: folders become values, or findings that say why not.

The files go through the reader of manifests, with its limits. They hold policies and waivers alone,
without variables and Defaults: what judges a change does not depend on values that it brings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation, cut, error, warning
from reconciler.manifests.discovery import Discovery, FoundFile
from reconciler.manifests.loader import Reader
from reconciler.manifests.manifest import Manifest
from reconciler.policy.model import DEFAULT_CHANGES, Example, Over, Policy, Setting, Subject
from reconciler.policy.waivers import EVERYTHING, PolicySet, Waiver
from reconciler.resources.fields import Spec
from reconciler.resources.installation import RECOMMENDED_POLICIES
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import (
    IN_PROJECT,
    Kind,
    RefError,
    RefSet,
    ResourceRef,
    parse_pattern,
    parse_ref,
)
from reconciler.resources.schemas import POLICY, POLICY_KINDS, RECOMMENDED, example_spec
from reconciler.validation.schema import accepts, faults, faults_in

MAX_FILES = 1000


def read_policies(
    folders: Sequence[str], *, may_be_empty: bool = False
) -> tuple[PolicySet, tuple[Diagnostic, ...]]:
    """Return the policies and waivers in some folders, and the findings about their files.

    ``recommended`` is no folder: it stands for the policies in the package.

    Args:
        folders: Paths from the current folder.
        may_be_empty: Whether folders without policies are right, as that of a target branch is
            before the first policy is merged.
    """
    named: dict[tuple[type, str], Policy | Waiver] = {}
    findings: list[Diagnostic] = []
    accepted = {"FILE-NONE", "FILE-EMPTY"} if may_be_empty else set()
    for folder in dict.fromkeys(folders):
        documents, found = _read(folder)
        findings += (each for each in found if each.code not in accepted)
        for each in documents:
            first = named.setdefault((type(each), each.name), each)
            if first is not each:
                findings.append(_declared_twice(first, each))
    policies = tuple(each for each in named.values() if isinstance(each, Policy))
    waivers = tuple(each for each in named.values() if isinstance(each, Waiver))
    is_silent = not (policies or any(each.is_error for each in findings))
    if folders and is_silent and not may_be_empty:
        remedy = "Everything would pass. Give a folder with a policy, or name no folder."
        findings.append(
            error("POLICY-NONE", "no policies found", remedy, SourceLocation(folders[0]))
        )
    return PolicySet(policies, waivers), tuple(findings)


def never_judging(
    policies: Iterable[Policy], environments: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield a warning for each policy of environments, none of which is among those there are."""
    for policy in policies:
        if policy.environments and not any(each in environments for each in policy.environments):
            first = policy.environments[0]
            meant = nearest(first, environments)
            yield warning(
                "POLICY-ENVIRONMENT",
                f"policy {policy.name} judges nothing: there is no environment {first}",
                f"{f'Did you mean {meant}? ' if meant else ''}Environments are those of "
                "reconciler.yaml.",
                policy.source.place("spec", "environments", 0),
            )


def _read(folder: str) -> tuple[list[Policy | Waiver], list[Diagnostic]]:
    """Return the policies and waivers of one folder, and the findings about its files."""
    search, reader = Discovery(what="policies"), Reader()
    files = list(islice(_files(folder, search), MAX_FILES + 1))
    findings: list[Diagnostic] = []
    if len(files) > MAX_FILES:
        summary = f"more than {MAX_FILES} files of policies"
        remedy = "Put several policies into one file, with --- between them."
        findings.append(error("POLICY-LIMIT", summary, remedy, SourceLocation(folder)))
    documents: list[Policy | Waiver] = []
    for manifest in reader.manifests(files[:MAX_FILES]):
        document, wrong = _document(manifest)
        findings += wrong
        if document is not None:
            documents.append(document)
    return documents, [*findings, *search.findings, *reader.findings]


def _document(manifest: Manifest) -> tuple[Policy | Waiver | None, Sequence[Diagnostic]]:
    document = manifest.document
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in POLICY_KINDS:
        return None, [_other_kind(manifest, kind)]
    if not accepts(kind, document):
        from reconciler.validation.explain import schema_findings

        return None, schema_findings(kind, manifest, faults(kind, document))
    return _policy(manifest) if kind == POLICY else _waiver(manifest)


def _declared_twice(first: Policy | Waiver, again: Policy | Waiver) -> Diagnostic:
    """Return the error that a name is given twice, whatever folders the two stand in."""
    before, place = (each.source.place("metadata", "name") for each in (first, again))
    return error(
        "POLICY-DUPLICATE",
        f"{type(again).__name__.lower()} {again.name} is declared twice",
        f"Rename or remove one of the two; the first is at {before}.",
        place,
    )


def _files(folder: str, search: Discovery) -> Iterator[FoundFile]:
    """Yield the files of a folder; those of the package are shown without their place on disk."""
    if folder != RECOMMENDED:
        yield from search.files([folder])
        return
    for found in search.files([RECOMMENDED_POLICIES]):
        yield found._replace(name=f"{RECOMMENDED}/{Path(found.name).name}")


def _other_kind(manifest: Manifest, kind: Any) -> Diagnostic:
    meant = nearest(kind, POLICY_KINDS) if isinstance(kind, str) else None
    hint = f"Did you mean {meant}? " if meant else ""
    return error(
        "POLICY-KIND",
        f"unknown kind {cut(kind)} in a folder of policies" if kind else "the document has no kind",
        f"{hint}Write kind: {one_of(POLICY_KINDS)}, and apiVersion: {API_VERSION}. Manifests stand "
        "in a folder of their own.",
        manifest.place("kind"),
    )


def _waiver(manifest: Manifest) -> tuple[Waiver | None, Sequence[Diagnostic]]:
    spec, name = manifest.document["spec"], manifest.document["metadata"]["name"]
    try:
        until = date.fromisoformat(spec["until"])
    except ValueError:
        summary = f"until is no date: {cut(spec['until'])}"
        remedy = "Write year, month and day, such as 2026-12-31."
        return None, [error("WAIVER-DATE", summary, remedy, manifest.place("spec", "until"))]
    refs: list[str] = []
    findings: list[Diagnostic] = []
    for at, text in enumerate(spec["refs"]):
        try:
            refs.append(text if text == EVERYTHING else parse_pattern(text))
        except RefError as fault:
            place = manifest.place("spec", "refs", at)
            findings.append(error("WAIVER-REF", str(fault), fault.remedy, place))
    waiver = Waiver(
        name=name,
        policy=spec["policy"],
        refs=tuple(refs),
        reason=spec["reason"],
        owner=spec["owner"],
        until=until,
        source=manifest,
        objects=RefSet(ref for ref in refs if ref != EVERYTHING),
    )
    return waiver, findings


def _policy(manifest: Manifest) -> tuple[Policy, Sequence[Diagnostic]]:
    spec = manifest.document["spec"]
    policy = Policy(
        name=manifest.document["metadata"]["name"],
        rule=spec["rule"],
        message=spec["message"],
        source=manifest,
        severity=Severity(spec.get("severity", "error")),
        kinds=tuple(map(Kind, spec.get("kinds", ()))),
        changes=tuple(spec.get("changes", DEFAULT_CHANGES)),
        environments=tuple(spec.get("environments", ())),
        over=Over(spec.get("over", "change")),
        remedy=spec.get("remedy", ""),
    )
    reading = _Examples(manifest, policy)
    examples = tuple(reading.read(spec.get("examples", {})))
    return replace(policy, examples=examples), reading.findings


class _WrongExampleError(ValueError):
    """An example cannot be judged; its findings were added."""


@dataclass(slots=True)
class _Examples:
    """The examples of one policy."""

    manifest: Manifest
    policy: Policy
    findings: list[Diagnostic] = field(default_factory=list)

    def read(self, written: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Example]:
        """Yield the examples that can be judged."""
        for word in ("pass", "fail"):
            for at, each in enumerate(written.get(word, ())):
                path = ("spec", "examples", word, at)
                try:
                    subjects = tuple(self._subjects(each, path))
                except _WrongExampleError:
                    continue
                environment = each.get("environment", (*self.policy.environments, "")[0])
                setting = Setting(environment, each.get("protected", True))
                place = self.manifest.place(*path)
                yield Example(word == "pass", subjects, setting, place)

    def _subjects(self, each: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Subject]:
        if self.policy.over is Over.PLAN:
            changes = each.get("changes")
            if changes is None:
                raise self._wrong(
                    "an example of a whole plan has no changes", "Write changes.", path
                )
            for at, inner in enumerate(changes):
                yield self._subject(inner, (*path, "changes", at))
        elif "changes" in each:
            raise self._wrong(
                "an example of a rule over one change has several",
                "Write before and after in the example itself, or over: plan.",
                (*path, "changes"),
            )
        else:
            yield self._subject(each, path)

    def _subject(self, each: Mapping[str, Any], path: tuple[str | int, ...]) -> Subject:
        kind = self._kind(each, path)
        before, after = (self._fields(kind, each, name, path) for name in ("before", "after"))
        change = each.get("change") or _change(before, after)
        needs = {"create": (False, True), "delete": (True, False)}.get(change, (True, True))
        if (before is not None, after is not None) != needs:
            sides = {(False, True): "after alone", (True, False): "before alone"}
            raise self._wrong(
                f"an example of a {change} has other sides",
                f"Write {sides.get(needs, 'before and after')}.",
                path,
            )
        if self.policy.over is Over.CHANGE and change not in self.policy.changes:
            named = ", ".join(self.policy.changes)
            remedy = f"It judges {named}. Name {change} in changes, or write another example."
            raise self._wrong(f"the policy does not judge a {change}", remedy, path)
        names = each.get("fields")
        if names is None:
            names = _differing(before or {}, after or {}, each.get("after", {}), change)
        ref = self._ref(kind, each, path)
        return Subject(change, ref, before, after, tuple(names), tuple(each.get("risks", ())))

    def _kind(self, each: Mapping[str, Any], path: tuple[str | int, ...]) -> Kind:
        kinds = self.policy.kinds
        if "kind" in each:
            kind = Kind(each["kind"])
            if kinds and kind not in kinds and self.policy.over is Over.CHANGE:
                remedy = f"Write kind: {one_of(kinds)}."
                raise self._wrong(f"the policy does not judge {kind.value}", remedy, path)
            return kind
        if len(kinds) != 1:
            remedy = "Write kind beside after or before: the policy is of several kinds."
            raise self._wrong("the example has no kind", remedy, path)
        return kinds[0]

    def _fields(
        self, kind: Kind, each: Mapping[str, Any], name: str, path: tuple[str | int, ...]
    ) -> Spec | None:
        """Return the fields of one side of a change in normal form; None where it is missing."""
        if name not in each:
            return None
        found = faults_in(example_spec(kind), each[name])
        if found:
            from reconciler.validation.explain import schema_findings

            placed = [fault._replace(path=(*path, name, *fault.path)) for fault in found]
            self.findings += schema_findings(POLICY, self.manifest, placed)
            raise _WrongExampleError
        return normal_form(kind, each[name])

    def _ref(self, kind: Kind, each: Mapping[str, Any], path: tuple[str | int, ...]) -> ResourceRef:
        if "ref" not in each:
            if kind is Kind.ORGANIZATION:
                return ResourceRef(kind, "example", "", "example")
            return ResourceRef(kind, "acme", "shop" if kind in IN_PROJECT else "", "example")
        try:
            return parse_ref(each["ref"], kind)
        except RefError as fault:
            raise self._wrong(str(fault), fault.remedy, (*path, "ref")) from None

    def _wrong(self, summary: str, remedy: str, path: tuple[str | int, ...]) -> _WrongExampleError:
        place = self.manifest.place(*path)
        self.findings.append(error("POLICY-EXAMPLE", summary, remedy, place))
        return _WrongExampleError()


def _change(before: Spec | None, after: Spec | None) -> str:
    if before is None:
        return "create"
    return "delete" if after is None else "update"


def _differing(before: Spec, after: Spec, written: Spec, change: str) -> Sequence[str]:
    """Return the names of fields that change; of a create, those that are written."""
    if change == "create":
        return [*written]
    if change == "delete":
        return ()
    return [name for name in after if after[name] != before.get(name)]
