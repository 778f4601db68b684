"""Fuzzing what is read from files: manifests, JSON, plans, snapshots, journals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from reconciler.apply.journal import Intent, Journal
from reconciler.diagnostics import Diagnostic, FindingError, SourceLocation
from reconciler.errors import LocalFileError
from reconciler.kinds.fields import KINDS
from reconciler.manifests.export import emit
from reconciler.manifests.loader import load
from reconciler.manifests.text import decode
from reconciler.manifests.yaml_source import read_documents
from reconciler.plan.integrity import SEAL, SavedFileError, check_spec, sealed
from reconciler.plan.model import Adopt, Change, Create, Delete, Plan, Scope, Unmanaged, Update
from reconciler.plan.planfile import (
    FORMAT,
    FORMAT_VERSION,
    PlanFile,
    SavedFinding,
    SavedResource,
    plan_file_content,
    read_plan_file,
)
from reconciler.plan.snapshot import FORMAT as SNAPSHOT_FORMAT
from reconciler.plan.snapshot import SnapshotFile, read_snapshot, snapshot_content
from reconciler.report.ci import findings_as_annotations, findings_as_junit, findings_as_sarif
from reconciler.report.findings import findings_as_text
from reconciler.resources.normal import LEFT_AS_HELD, normal_form
from reconciler.resources.strict_json import JsonError, read_as, read_object
from reconciler.service.operations.models import model_with
from reconciler.state import ObservedObject, ObservedState, Resource
from reconciler.validation.desired import judge
from tests.builders import is_valid
from tests.drawings import plan_as_html, plan_as_json, plan_as_markdown, plan_as_text
from tests.fuzz.scratch import scratch


def yaml_text(data: bytes) -> bool:
    """Read YAML: every finding has a place, and other readers see the same values."""
    try:
        text = decode(data)
    except FindingError as refusal:
        _check_place(refusal.finding.location, data.decode("utf-8", "replace"))
        return False
    documents, findings, _ = read_documents(text)
    for finding in findings:
        assert finding.location is not None
        _check_place(finding.location, text)
    if findings:
        return False
    nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    assert len(nodes) == len(documents)
    for node, document in zip(nodes, documents, strict=True):
        _check_value(node, document)
    return True


def _check_place(place: Any, text: str) -> None:
    assert 1 <= place.line <= text.count("\n") + text.count("\r") + 2
    assert place.column >= 1


def _same(one: Any, other: Any) -> bool:
    """Say whether two values are equal, and of the same types."""
    return repr(one) == repr(other)


def _check_value(node: Any, value: Any) -> None:
    """Assert that a value is what another reader's node stands for."""
    if node is None:
        assert value is None
    elif isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        assert keys == list(value)
        for key, inner in node.value:
            _check_value(inner, value[key.value])
    elif isinstance(node, yaml.SequenceNode):
        assert isinstance(value, list)
        assert len(value) == len(node.value)
        for inner, item in zip(node.value, value, strict=True):
            _check_value(inner, item)
    elif isinstance(value, str):
        assert value == node.value
    else:
        assert not node.style
        _check_plain(node, value)


def _check_plain(node: Any, value: Any) -> None:
    """Assert that what both take for the same type is the same value; 1.1 and 1.2 differ."""
    try:
        theirs = SafeConstructor().construct_object(node)
    except ValueError:
        return
    if type(theirs) is type(value):
        assert theirs == value


def manifest(data: bytes) -> bool:
    """Read and judge a file as ``validate`` does, and show what was found in every form."""
    folder = scratch() / "manifests"
    if not folder.exists():
        folder.mkdir()
        (folder / "greet.js").write_text("function greet(ctx, api) {}\n", encoding="ascii")
    (folder / "a.yaml").write_bytes(data)
    loaded = load([folder])
    judgement = judge(loaded)
    _check_findings(judgement.diagnostics)
    for resource in judgement.desired.resources.values() if is_valid(judgement) else ():
        kind, written = resource.ref.kind, {name: resource.spec[name] for name in resource.written}
        model = model_with(kind.value, KINDS[kind].fields).model_validate_json(json.dumps(written))
        # A field that is left as it is held may have a default that no manifest can write.
        dumped = model.model_dump(mode="json", by_alias=True, warnings=False)
        given = {
            n: value for n, value in dumped.items() if n in written or n not in LEFT_AS_HELD[kind]
        }
        assert normal_form(kind, given) == resource.spec
        document = {"metadata": dict(resource.ref._asdict()), "spec": dict(resource.spec)}
        document["metadata"]["kind"] = resource.ref.kind.value
        assert read_documents(emit(document)).documents == [document]
    return is_valid(judgement) and bool(judgement.desired.resources)


def _check_findings(findings: tuple[Diagnostic, ...]) -> None:
    assert "SCHEMA-INTERNAL" not in {finding.code for finding in findings}
    for finding in findings:
        assert finding.summary
        assert finding.remedy
        assert isinstance(finding.location, SourceLocation)
    shown = findings_as_text(findings)
    assert "\x1b" not in shown
    shown.encode()
    findings_as_annotations(findings).encode()
    findings_as_junit(findings, ["a.yaml"]).encode()
    json.dumps(findings_as_sarif(findings), ensure_ascii=False).encode()


def strict_json(data: bytes) -> bool:
    """Read JSON: what is taken is what any reader takes it for, and nothing else escapes."""
    taken = [_taken(data, fractions=False), _taken(data, fractions=True)]
    for value in taken:
        if value is not None:
            theirs = json.loads(data)
            assert theirs == value
            text = json.dumps(value)
            assert _same(_taken(text.encode(), fractions=True), value)
    assert taken[0] is None or _same(*taken)
    return taken[1] is not None


def _taken(data: bytes, *, fractions: bool) -> dict[str, Any] | None:
    try:
        value = read_object(data, fractions=fractions)
    except JsonError:
        return None
    _check_depth(value, 32)
    return value


def _check_depth(value: Any, left: int) -> None:
    if isinstance(value, (dict, list)):
        assert left
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, left - 1)
    elif isinstance(value, (int, float)):
        assert math.isfinite(value)


def plan_file(data: bytes) -> bool:
    """Read a saved plan or snapshot, as it is and with its seal made anew."""
    contents = [data]
    try:
        fields = read_object(data)
    except JsonError:
        fields = {}
    for name in ("format", "format_version", SEAL):
        fields.pop(name, None)
    if fields:
        contents.append(sealed(FORMAT, FORMAT_VERSION, fields))
        contents.append(sealed(SNAPSHOT_FORMAT, FORMAT_VERSION, fields))
    return sum(map(_read_saved, contents)) > 0


def _read_saved(content: bytes) -> bool:
    try:
        plan = read_plan_file(content)
    except SavedFileError:
        try:
            snapshot = read_snapshot(content)
        except SavedFileError:
            return False
        snapshot.observe(["acme"])
        assert snapshot_content(snapshot) == content
        return True
    assert plan_file_content(plan) == content
    _show(plan)
    return True


def _show(file: PlanFile) -> None:
    """Show a plan in every form that ``show`` has."""
    plan_as_text(file.plan, file.service).encode()
    plan_as_markdown(file.plan, file.service, file.warnings).encode()
    plan_as_html(file.plan, file.service, file.warnings).encode()
    json.dumps(plan_as_json(file.plan, file.service, file.warnings)).encode()


def saved_parts(data: bytes) -> bool:
    """Write the parts of a plan into files, and read them back: a line each, of JSON."""
    resources: list[Resource] = []
    objects: list[ObservedObject] = []
    findings: list[Diagnostic] = []
    for line in data.split(b"\n")[:8]:
        try:
            value = read_object(line)
            if "summary" in value:
                findings.append(read_as(SavedFinding, line).finding())
            elif "written" in value:
                resources.append(read_as(SavedResource, line).resource())
            else:
                held = read_as(ObservedObject, line)
                check_spec(held.ref.kind, held.spec, whole=False)
                objects.append(held)
        except (JsonError, SavedFileError):
            continue
    if not resources and not objects and not findings:
        return False
    file = _file_of(resources, objects, findings)
    content = plan_file_content(file)
    again = read_plan_file(content)
    assert plan_file_content(again) == content
    assert again.digest == file.digest
    _show(again)
    by_key = {each.ref.key: each for each in objects}
    state = ObservedState("instance", by_key, elsewhere={"other": frozenset({"a", "b"})})
    snapshot = SnapshotFile(state, "1", "service", 1, None)
    assert read_snapshot(snapshot_content(snapshot)) == snapshot
    return True


def _file_of(
    resources: list[Resource], objects: list[ObservedObject], findings: list[Diagnostic]
) -> PlanFile:
    pairs = [(one, two) for one, two in zip(resources, objects, strict=False)]
    changes: list[Change] = [
        *(Create(resource) for resource in resources),
        *(Update(*pair) for pair in pairs if pair[0].ref.kind is pair[1].ref.kind),
        *(Adopt(*pair) for pair in pairs if pair[0].ref.kind is pair[1].ref.kind),
        *(Delete(held) for held in objects),
    ]
    plan = Plan(
        scope=Scope(),
        instance="instance",
        organizations=("acme",),
        changes=tuple(changes),
        in_step=tuple(resource.ref for resource in resources),
        unmanaged=tuple(Unmanaged(held.ref, held.id) for held in objects),
        blocks=tuple(findings),
        warnings=tuple(findings),
    )
    return PlanFile(plan, "1", "service", ("manifests",), "digest", 1, 2, None, tuple(findings))


def journal(data: bytes) -> bool:
    """Open a journal: what it says is open is the same when it is written anew."""
    folder = scratch() / "journal"
    folder.mkdir(exist_ok=True)
    first, second = folder / "first", folder / "second"
    first.write_bytes(data)
    second.unlink(missing_ok=True)
    try:
        found = _open_intents(first)
    except LocalFileError:
        return False
    assert _open_intents(first) == found
    with Journal(second) as written:
        written.begin(found)
    assert _open_intents(second) == found
    with Journal(second) as ended:
        ended.end([intent.key for intent in found])
    assert _open_intents(second) == ()
    return bool(found)


def _open_intents(path: Path) -> tuple[Intent, ...]:
    with Journal(path) as opened:
        return tuple(opened.open_intents)
