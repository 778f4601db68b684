"""Paths in, manifests and findings out. Nothing a file can hold makes this raise."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

from reconciler.diagnostics import (
    Diagnostic,
    FindingError,
    SourceLocation,
    error,
    name_as_text,
    warning,
)
from reconciler.manifests.defaults import FolderDefaults, is_defaults
from reconciler.manifests.discovery import JSON, Discovery, FoundFile
from reconciler.manifests.extent import enclosing, is_configuration, is_whole, is_within
from reconciler.manifests.manifest import Growth, Loaded, Manifest, SourceFile
from reconciler.manifests.placeholders import NO_LAYERS, Layers
from reconciler.manifests.read_ahead import read_all
from reconciler.manifests.resolve import Resolver
from reconciler.manifests.text import (
    YamlValue,
    decode,
    holds_text,
    with_whole_escapes,
)
from reconciler.manifests.variables import Variables, unused
from reconciler.manifests.yaml_source import Trace
from reconciler.resources.kinds import VERSIONS
from reconciler.resources.process import collector_paused
from reconciler.resources.ref import Shard


def load(
    paths: Sequence[str | Path],
    shard: Shard | None = None,
    layers: Layers = NO_LAYERS,
    known: KnownFiles | None = None,
    piped: FoundFile | None = None,
) -> Loaded:
    """Read every manifest at or beneath the paths, and resolve what it refers to.

    Of a shard, only the manifests that belong to it are kept and resolved, and those that do not
    say where they belong: no other shard would report their faults. Readings of
    several environments share what is ``known`` of files. Where something was ``piped``, it alone
    is read instead of the paths.
    """
    run = _Run(layers, shard, known)
    with collector_paused():
        manifests = run.manifests(() if piped else paths, piped)
    findings = run.findings
    failed = any(finding.is_error for finding in findings)
    holds_root = is_within(layers.root, paths)
    whole = not failed and piped is None and is_whole([os.fspath(path) for path in paths])
    if layers.overlay:
        whole = whole and holds_root  # of a part, what the overlay adds was not read
    if whole and shard is None and holds_root:
        findings += unused(layers, run.variables.used)
    return Loaded(
        manifests,
        tuple(findings),
        whole,
        tuple(run.defaults),
        tuple(run.patches),
        frozenset(run.growth.without_room),
    )


class _Step(Protocol):
    """A step of reading, and what it found wrong."""

    @property
    def findings(self) -> list[Diagnostic]: ...


S = TypeVar("S", bound=_Step)


class _Run:
    """One reading: its steps share the limits, and their findings are reported together."""

    def __init__(self, layers: Layers, shard: Shard | None, known: KnownFiles | None) -> None:
        self.defaults: list[Manifest] = []
        self.patches: list[Manifest] = []
        self._steps: list[_Step] = []
        self._layers = layers
        self._shard = shard
        self.growth = self._step(Growth())
        self.variables = self._step(Variables(layers, self.growth))
        self._reader = self._step(Reader(layers, known))
        self._resolver = self._step(Resolver(self.variables))

    @property
    def findings(self) -> list[Diagnostic]:
        """Return what every step found wrong."""
        return [finding for step in self._steps for finding in step.findings]

    def _step(self, step: S) -> S:
        self._steps.append(step)
        return step

    def manifests(
        self, paths: Sequence[str | Path], piped: FoundFile | None = None
    ) -> tuple[Manifest, ...]:
        """Return the resolved manifests at or beneath the paths, or those that were piped."""
        root = self._layers.root
        overlays = self._layers.overlays  # each belongs to one environment
        discovery = self._step(Discovery(left_out=overlays))
        typed = [os.fspath(path) for path in paths]
        inner = {path for path in typed if path and is_within(path, overlays)}
        discovery.findings += [_in_overlay(path) for path in sorted(inner)]
        named = discovery.files([path for path in typed if path not in inner])
        files = named if piped is None else [piped]
        defaults = self._step(FolderDefaults(self.growth))
        documents = self._read(files, defaults)
        around = discovery.beside(enclosing(root, paths))
        above = (each for each in around if _may_hold_defaults(each.data))
        self._read(above, defaults, is_above=True)
        if self._layers.overlay:
            laid = self._overlaid(documents, defaults, adds=is_within(root, paths))
        else:
            laid = [each for each in map(defaults.fill, documents) if self._holds(each)]
        return tuple(map(self._resolver.resolve, laid))

    def _overlaid(
        self, documents: Sequence[Manifest], defaults: FolderDefaults, *, adds: bool
    ) -> list[Manifest]:
        """Return the manifests with the overlay over them.

        Where the PATHS are a part of the tree, the overlay only changes what they hold: whether it
        adds a document shows only in the whole.
        """
        from reconciler.manifests.overlay import Overlay, about_folder

        search, folder = self._step(Discovery()), self._layers.overlay
        own_defaults = self._step(FolderDefaults(self.growth))
        patches = self._read(search.files([folder]), own_defaults)
        if place := self._layers.overlay_place:
            search.findings = [about_folder(each, folder, place) for each in search.findings]
        owned = (own_defaults.fill(each, owner_only=True) for each in patches)
        overlay = self._step(Overlay(filter(self._holds, owned), own_defaults))
        every = (overlay.lay_over(document, defaults) for document in documents)
        laid = [each for each in every if each is not None and self._holds(each)]
        added = list(overlay.added(laid)) if adds else []
        self.patches += overlay.patches
        return laid + added

    def _read(
        self, files: Iterable[FoundFile], defaults: FolderDefaults, *, is_above: bool = False
    ) -> list[Manifest]:
        """Return manifests, their variables replaced; add Defaults to ``defaults``.

        Of files above the PATHS only Defaults are read on.
        """
        manifests = []
        for document in self._reader.manifests(files):
            if is_defaults(document.document):
                self.variables.replace(document)
                defaults.add(document)
                self.defaults.append(document)
            elif not (is_above or is_configuration(document.document)):
                self.variables.replace(document)
                manifests.append(document)
        return manifests

    def _holds(self, manifest: Manifest) -> bool:
        """Return whether a manifest belongs to the shard, or does not say where it belongs."""
        if self._shard is None:
            return True
        organization = manifest.organization
        return organization is None or self._shard.holds(organization)


class Reader:
    """Reads the documents of files, and keeps what it finds wrong with them."""

    def __init__(self, layers: Layers = NO_LAYERS, known: KnownFiles | None = None) -> None:
        self.findings: list[Diagnostic] = []
        self._known = known
        self._variables = layers.variables

    def manifests(self, found: Iterable[FoundFile]) -> Iterator[Manifest]:
        """Yield the documents of files that hold something."""
        files = [file for each in found if (file := self._decoded(each)) is not None]
        known = self._known.among(files) if self._known is not None else {}
        with closing(read_all([file for file in files if file not in known])) as unread:
            for file in files:
                trace = known.get(file) or next(unread)
                file.starts = trace.starts
                if self._known is not None:
                    self._known.keep(file, trace)
                self.findings += trace.findings or _empty(file, trace.documents)
                for index, document in enumerate(trace.documents):
                    if document is not None:
                        yield Manifest(document, file, index)

    def _decoded(self, found: FoundFile) -> SourceFile | None:
        try:
            text = decode(found.data, found.name)
        except FindingError as fault:
            self.findings.append(fault.finding)
            return None
        if found.name.endswith(JSON):
            text = with_whole_escapes(text)
        return SourceFile(found.name, text, found.root, found.folder, self._variables)


def _empty(file: SourceFile, documents: Iterable[YamlValue]) -> list[Diagnostic]:
    """Return a warning for a file without a manifest."""
    if any(document is not None for document in documents):
        return []
    remedy = "Write a manifest into it, or remove it."
    place = SourceLocation(file.name)
    return [warning("FILE-EMPTY", "the file holds no manifest", remedy, place)]


def _may_hold_defaults(data: bytes) -> bool:
    """Return whether a file can hold Defaults; other YAML above the PATHS is not for us to judge.

    An escape can spell the kind.
    """
    return holds_text(data, VERSIONS) and (b"\\" in data or holds_text(data, "Defaults"))


def _in_overlay(path: str) -> Diagnostic:
    summary = "the path is in an overlay folder"
    remedy = (
        "An overlay is read by the commands of its own environment. Give the folder of the "
        "manifests or a part of it, and choose the environment with --env."
    )
    return error("OVERLAY-PATH", summary, remedy, SourceLocation(name_as_text(path)))


class KnownFiles:
    """The documents of texts that were read in one run.

    Each reading gets copies of its own, because variables are replaced in them where they stand. A
    text in which something is wrong is not kept.
    """

    def __init__(self) -> None:
        self._by_text: dict[str, Trace] = {}

    def among(self, files: Iterable[SourceFile]) -> dict[SourceFile, Trace]:
        """Return what the known ones of some files hold."""
        traces = ((file, self._by_text.get(file.text)) for file in files)
        return {file: _own(trace) for file, trace in traces if trace is not None}

    def keep(self, file: SourceFile, trace: Trace) -> None:
        """Keep what a file holds, if it was not known."""
        if not trace.findings and file.text not in self._by_text:
            self._by_text[file.text] = _own(trace)


def _own(trace: Trace) -> Trace:
    return trace._replace(documents=_copied(trace.documents))


def _copied(value: Any) -> Any:
    """Return a copy of a plain value; its texts and numbers are shared."""
    if type(value) is dict:
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if type(value) is list else value
