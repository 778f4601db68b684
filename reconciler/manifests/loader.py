"""Paths in, manifests and findings out. Nothing a file can hold makes this raise."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reconciler.diagnostics import Diagnostic, SourceLocation, warning
from reconciler.manifests.discovery import Discovery, FoundFile, is_whole, is_within
from reconciler.manifests.layers import NO_LAYERS, Layers
from reconciler.manifests.manifest import Loaded, Manifest, SourceFile
from reconciler.manifests.resolve import Resolver
from reconciler.manifests.text import TextError, decode
from reconciler.manifests.trace import Trace
from reconciler.manifests.variables import Growth, Variables, unused
from reconciler.resources.collector import collector_paused
from reconciler.resources.shard import Shard


def load(
    paths: Sequence[str | Path], shard: Shard | None = None, layers: Layers = NO_LAYERS
) -> Loaded:
    """Read every manifest at or beneath the paths, and resolve what it refers to.

    Of a shard, only the manifests that belong to it are kept and resolved, and those that do not
    say where they belong: nobody else could tell what is wrong with them.
    """
    discovery, reader, growth = Discovery(), Reader(layers), Growth()
    variables = Variables(layers, growth)
    resolver = Resolver(variables)
    with collector_paused():
        documents = [
            manifest for found in discovery.files(paths) for manifest in reader.manifests(found)
        ]
        for manifest in documents:
            variables.replace(manifest)
        manifests = tuple(
            resolver.resolve(manifest)
            for manifest in documents
            if shard is None or _belongs(manifest, shard)
        )
    steps = (discovery, reader, variables, growth, resolver)
    findings = tuple(finding for step in steps for finding in step.findings)
    failed = any(finding.is_error for finding in findings)
    whole = not failed and is_whole([os.fspath(path) for path in paths])
    if whole and shard is None and is_within(layers.root, paths):
        findings += tuple(unused(layers, variables.used))
    return Loaded(manifests, findings, whole)


def _belongs(manifest: Manifest, shard: Shard) -> bool:
    organization = manifest.organization
    return organization is None or shard.holds(organization)


class Reader:
    """Reads the documents of files, and keeps what it finds wrong with them."""

    def __init__(self, layers: Layers = NO_LAYERS) -> None:
        self.findings: list[Diagnostic] = []
        self._variables = layers.variables

    def manifests(self, found: FoundFile) -> Iterator[Manifest]:
        """Yield the documents of one file that hold something."""
        try:
            text = decode(found.data)
        except TextError as fault:
            trace = Trace(found.name)
            trace.refuse(*fault.fault)
            self.findings += trace.findings
            return
        file = SourceFile(found.name, text, found.root, found.folder, self._variables)
        for index, document in enumerate(self._documents(file)):
            if document is not None:
                yield Manifest(document, file, index)

    def _documents(self, file: SourceFile) -> list[Any]:
        documents = file.read()
        findings: list[Diagnostic] = []
        if documents is None:
            trace = file.trace()
            documents, findings = trace.documents, trace.findings
        if not findings and all(document is None for document in documents):
            findings = [_empty(file.name)]
        self.findings += findings
        return documents


def _empty(name: str) -> Diagnostic:
    remedy = "Write a manifest into it, or remove it."
    return warning("FILE-EMPTY", "the file holds no manifest", remedy, SourceLocation(name))
