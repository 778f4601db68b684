"""Desired state (declared in manifests) and observed state (held by the service)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.diagnostics import Diagnostic, Source, SourceLocation, error
from reconciler.resources import undone as marks
from reconciler.resources.call import JsonObject
from reconciler.resources.capabilities import SOURCE, Capabilities, Use, refusal
from reconciler.resources.fields import Spec
from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind, ResourceRef, fold
from reconciler.resources.strict_json import SequenceNumber

Undone = marks.Undone


@dataclass(frozen=True, slots=True)
class Resource:
    """A declared resource: the content of a valid manifest.

    Attributes:
        spec: The fields in normal form (``resources.normal``): plain, comparable, and complete but
            for what the manifest leaves out and is left as it is held.
        written: Names of the fields the manifest says; the others are at their defaults.
        source: Asked for the place of any value.
        pinned_id: ``metadata.id``, or empty.
        prevent_delete: ``metadata.preventDelete``.
        critical: ``metadata.critical``: losing or weakening it may lock people out.
        active: ``metadata.active``; None leaves the state of the object as it is.
        ignored: ``metadata.ignore``: names of fields that another writer keeps.
        undone: The mark that a write of it leaves; only an undo leaves one.
        owner: The tree that a write makes the owner, empty for none; None for the tree that writes.
    """

    ref: ResourceRef
    spec: Spec
    written: frozenset[str]
    source: Source
    pinned_id: str = ""
    prevent_delete: bool = False
    critical: bool = False
    active: bool | None = None
    ignored: frozenset[str] = frozenset()
    undone: Undone | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Manifests of the same repository that a run did not read.

    Attributes:
        declared: Place of a manifest that declares an object, by the object's id.
        unreadable: Files and folders that may hold manifests and cannot be read, each with why.
        is_whole: Whether the whole of a Git repository was searched.
    """

    declared: Mapping[str, SourceLocation] = field(default_factory=dict)
    unreadable: tuple[tuple[SourceLocation, str], ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a manifest uses and that not every service takes."""

    ref: ResourceRef
    location: SourceLocation
    use: Use

    def unmet(self, service: Capabilities, *, is_chosen: bool = False) -> Diagnostic | None:
        """Return the error that a service does not take it, or None where it does.

        ``is_chosen`` says that the capabilities were chosen, and are not those of a service at
        hand.
        """
        if service.takes(self.use):
            return None
        words = refusal(self.use, service, is_chosen=is_chosen)
        return error(*words, self.location, self.ref)


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Everything one body of manifests declares.

    Attributes:
        resources: By the key of their ref.
        organizations: Names of the organizations declared or referred to: the scope of a run.
        whole: Whether the whole tree was read, or a whole shard of it, so that absence means
            something.
        elsewhere: What the rest of the repository says of the objects that would be deleted, if it
            was searched.
        needs: What is used beyond the source document. Whether the service takes it is judged once
            that is known.
        capabilities: Name of what the manifests are meant for; empty where that was not chosen.
    """

    resources: Mapping[ResourceRef, Resource]
    organizations: tuple[str, ...]
    whole: bool = True
    elsewhere: Elsewhere = Elsewhere()
    needs: tuple[Need, ...] = ()
    capabilities: str = ""


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object that the service holds under one id.

    Attributes:
        ref: With the names as the service holds them.
        sequence: That of the object's last event; what an update expects.
        spec: The fields in normal form.
        organization_id: The owner's id.
        project_id: The id of the project, of an application; otherwise empty.
        client_id: Of an application; otherwise empty.
        trees: The trees that ever applied it.
        changed_by: Name of the token behind the last change, where the service reports it.
        changed_at: Time of the last change, RFC 3339.
        changed_in: The tree that made the last change; empty where no tree did.
        changed_for: Digest of the plan that the last change was made for; empty for none.
        prevent_delete: Whether it was applied as protected; None where that is not remembered.
        critical: Whether it was applied as critical; None where the service cannot remember that.
        carried: Fields that this version does not know, sent back as they are by an update.
        uncarried: Names of unknown fields that no update can send back.
        owner: The tree that was the last to create, update, adopt or take over the object; empty
            where no tree did. None where the service does not report it.
        has_secret: Whether the application has a client secret; None where the service does not
            report it.
        active: Whether it is active. Always, of a kind without a state.
        can_be_inactive: Whether the service has a call that deactivates it.
        created_at: When it was made, RFC 3339; empty where the service does not report it.
        ignored: Fields that it was applied as ignored; None where the service cannot remember that.
        undone: What an undo took back of it; None for nothing.
    """

    ref: ResourceRef
    id: str
    sequence: SequenceNumber
    spec: Spec
    organization_id: str
    project_id: str = ""
    client_id: str = ""
    trees: frozenset[str] = frozenset()
    changed_by: str = ""
    changed_at: str = ""
    changed_in: str = ""
    changed_for: str = ""
    prevent_delete: bool | None = None
    critical: bool | None = None
    carried: JsonObject = field(default_factory=dict)
    uncarried: tuple[str, ...] = ()
    owner: str | None = None
    has_secret: bool | None = None
    active: bool = True
    can_be_inactive: bool = True
    created_at: str = ""
    ignored: frozenset[str] | None = None
    undone: Undone | None = None


def is_in_step(declared: Resource, held: ObservedObject) -> bool:
    """Return whether the service holds exactly what is declared.

    A mark that the service cannot remember (None) is no difference, and neither is a state that
    no manifest says, nor a field that is ignored.
    """
    return (
        holds(held, declared.spec, left_to_others(declared))
        and held.ref.name == declared.ref.name
        and held.prevent_delete in {None, declared.prevent_delete}
        and held.critical in {None, declared.critical}
        and held.ignored in {None, declared.ignored}
        and declared.active in {None, held.active}
    )


def holds(held: ObservedObject, declared: Spec, ignored: Collection[str] = ()) -> bool:
    """Return whether an object has every value that is declared and not ignored."""
    judged = without(ignored, declared) if ignored else declared
    return held.spec == judged or judged.items() <= held.spec.items()


def without(names: Collection[str], spec: Spec) -> Spec:
    """Return the fields of a spec but for some."""
    return {name: value for name, value in spec.items() if name not in names}


def left_to_others(resource: Resource) -> frozenset[str]:
    """Return the fields that a write leaves to others.

    An undo leaves none: what others wrote since refuses it, and the run may have taken a field back
    from them.
    """
    return resource.ignored if resource.undone is None else frozenset()


def left_as_held(resource: Resource) -> Collection[str]:
    """Return the fields that updates send back as the service holds them at that moment.

    They are those that are ignored, and those that stay as held because no manifest says them.
    """
    unsaid = LEFT_AS_HELD[resource.ref.kind].keys() - resource.written
    return left_to_others(resource) | unsaid


def completed(resource: Resource, held: ObservedObject) -> Resource:
    """Return a resource with the values that are left as the service holds them.

    An update of it is full: it sends every field, and changes only what the manifest decides.
    """
    names, said = left_as_held(resource), resource.spec
    left = {n: value for n, value in held.spec.items() if n in names or n not in said}
    return replace(resource, spec={**resource.spec, **left}) if left else resource


def is_owned_by(held: ObservedObject, tree: str) -> bool:
    """Return whether a tree owns an object.

    Where the service does not report owners, every tree that ever applied the object is one.
    """
    return tree in held.trees if held.owner is None else held.owner == tree


def other_owner(held: ObservedObject, tree: str) -> str:
    """Return the other tree that owns an object; empty if no other one does."""
    return held.owner if held.owner and held.owner != tree else ""


@dataclass(frozen=True, slots=True)
class OwedSecret:
    """A client secret that the service made, and whose delivery was not acknowledged yet.

    Attributes:
        ref: Of the application, with the names as the service holds them.
        id: Of the application.
        made_at: Sequence of the event that made the secret. A newer secret has another one.
        since: The same moment, RFC 3339.
        by: Name of the token that made it.
        tree: The tree it was made for; empty where no tree was named.
        run: Id of the run that made it.
        lost: The service no longer keeps the secret; only a new one can be made.
    """

    ref: ResourceRef
    id: str
    client_id: str
    made_at: SequenceNumber
    since: str
    by: str
    tree: str
    run: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """A tree that is not to be applied to an organization for a while.

    Attributes:
        until: When it ends by itself, RFC 3339; ``since`` and ``writer`` are of its beginning.
        writer: Name of the token.
    """

    tree: str
    reason: str
    until: str
    since: str
    writer: str


COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
"""The id of a commit in full, with SHA-1 or SHA-256."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The record that all manifests of a commit were applied to an organization.

    Attributes:
        at: When it was recorded, RFC 3339.
        writer: Name of the token.
    """

    tree: str
    commit: str
    at: str
    writer: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log of an organization ends, and what its trees are at.

    Attributes:
        id: Of the organization.
        sequence: Of its last event.
        owed: How many client secrets are owed and still kept.
        pauses: Those that are not over.
        applied: The last record of each tree that has one.
    """

    id: str
    name: str
    sequence: SequenceNumber
    owed: int
    pauses: tuple[Pause, ...]
    applied: tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads of all organizations that the caller sees, by their folded names.

    Attributes:
        instance: Id of the service. Another one, or a sequence that went back, is a restore.
    """

    instance: str
    organizations: Mapping[str, Head]

    def records(self, tree: str, names: Collection[str] | None = None) -> Iterator[Applied]:
        """Yield the records of a tree, in the organizations of these names or in all."""
        chosen = self.organizations.keys() if names is None else map(fold, names)
        for name in chosen:
            if (head := self.organizations.get(name)) is not None:
                yield from (record for record in head.applied if record.tree == tree)

    def pauses(self, tree: str, names: Collection[str]) -> Iterator[tuple[str, Pause]]:
        """Yield the pauses of a tree in the organizations of these names, each with its name."""
        asked = {fold(name) for name in names}
        for name, head in self.organizations.items():
            if name in asked:
                yield from ((head.name, pause) for pause in head.pauses if pause.tree == tree)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, as the service keeps it.

    Attributes:
        type: What happened, such as ``action.changed``.
        sequence: The number that the object had afterwards.
        at: When, RFC 3339.
        writer: Name of the token that did it.
        context: What came with the write: tree, revision, plan digest; empty for none.
        verified: What the service itself verified of a writer without a long-lived token, such as
            its repository and run; the context is only claimed. Empty for other writers.
    """

    type: str
    sequence: SequenceNumber
    at: str
    writer: str
    context: JsonObject
    verified: JsonObject = field(default_factory=dict, kw_only=True)

    def said(self, name: str) -> str:
        """Return a text of the context; empty where it has none of that name."""
        text = self.context.get(name)
        return text if isinstance(text, str) else ""


@dataclass(frozen=True, slots=True)
class ObjectEvent(Event):
    """One event of an object.

    Attributes:
        payload: What it says of the object, above all ``name`` and ``spec``.
    """

    payload: JsonObject


@dataclass(frozen=True, slots=True)
class FeedEvent(Event):
    """An event of an organization, without what it says of its object.

    Attributes:
        kind: Of the object, as the service names it; it may be one that is not known here.
        id: Of the object.
        project_id: Of the project that owns it; empty where an organization does.
        name: That it has now, or had when it was removed.
    """

    kind: str
    id: str
    project_id: str
    name: str


UPGRADE = "upgrade this program."
"""Ends a reason for an incomplete listing that another run would find again."""

LET_THROUGH = "Let GET /management/v1/iam through to the service"
"""What to do where a ZITADEL does not report its id."""


@dataclass(frozen=True, slots=True)
class ObservedState:
    """Everything the service holds within the scope of a run.

    Attributes:
        instance: Id of the service; empty where there is none yet.
        objects: By the key of their ref; organizations and projects included.
        incomplete: Why the listing may not be everything; empty where it is.
        unexpressed: What is held and is of no kind that a manifest can declare, in sentences.
        name_clashes: Objects whose name another one in ``objects`` has; only a service that does
            not keep names unique has any.
        elsewhere: The trees that ever applied something to an organization outside the scope, by
            its name, as far as the service reports it.
        caller_objects: Ids of what the caller itself signs in with, where the service reports it.
        custody: Whether the service keeps secrets until their delivery is acknowledged.
        owed: Secrets in that custody, of every tree, by organization, project and name.
        owed_left: How many secrets an organization outside the scope owes to each tree, by its
            name, as far as the service reports it.
        unseen: Names of the scope that are not in the listing, where the caller would not see
            them either way: they may exist.
        missing_role: What the caller lacks to see those, and how to get it; empty where only the
            token shows it.
        unshown: Refs of what this client wrote and the listing does not show as it was written.
        unlisted: Refs of names that the service refused as taken, and whose objects its listing
            does not show after the same wait.
        own_project: Id of the project that the service's own console signs in with; empty where
            there is none, or it is not known.
        unidentified: Why the service does not report its id, nor that project; empty where it does.
        keeps_history: Whether the service reports who changed an object, and what was removed.
        only_active: Kinds of which the service cannot make an object that is inactive.
        knows_audience: Whether the service stores the audience of a JWT identity provider; None
            where only a write shows it.
        generation: Of a ZITADEL, its generation: 4, or 3 for any older one; 0 where it cannot be
            told. None where it was not asked, and for every other service.
        capabilities: Name of what the service takes (``resources.capabilities``).
        new_store: Address of the store that is to be made; empty where there is one.
        pauses: Of the organizations of the scope that have any, by their names.
        undone: Marks of the objects that an undo removed, by their folded addresses.
        former_names: Every name that an object has had, folded, by its id. Only of objects that a
            plan would delete where it creates another one.
    """

    instance: str
    objects: Mapping[ResourceRef, ObservedObject]
    incomplete: tuple[str, ...] = ()
    unexpressed: tuple[str, ...] = ()
    name_clashes: tuple[ObservedObject, ...] = ()
    elsewhere: Mapping[str, frozenset[str]] = field(default_factory=dict)
    caller_objects: frozenset[str] = frozenset()
    custody: bool = False
    owed: tuple[OwedSecret, ...] = ()
    owed_left: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    missing_role: str = ""
    unshown: tuple[ResourceRef, ...] = ()
    unlisted: tuple[ResourceRef, ...] = ()
    own_project: str = ""
    unidentified: str = ""
    keeps_history: bool = True
    knows_audience: bool | None = True
    generation: int | None = None
    capabilities: str = SOURCE
    only_active: frozenset[Kind] = frozenset()
    new_store: str = ""
    pauses: Mapping[str, tuple[Pause, ...]] = field(default_factory=dict)
    undone: Mapping[str, Undone] = field(default_factory=dict)
    former_names: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def everything(self) -> Iterator[ObservedObject]:
        """Yield every object held, those of a shared name included."""
        yield from self.objects.values()
        yield from self.name_clashes

    def is_own(self, held: ObservedObject) -> bool:
        """Return whether an object is the project of the service's own console, or is in it."""
        return bool(self.own_project) and self.own_project in {held.id, held.project_id}


def pauses_of(observed: ObservedState, tree: str) -> Iterator[tuple[str, Pause]]:
    """Yield the pauses of a tree, each with the name of its organization, in order."""
    for name, pauses in sorted(observed.pauses.items()):
        yield from ((name, pause) for pause in pauses if pause.tree == tree)


@dataclass(frozen=True, slots=True)
class Removal:
    """An object that is no more: what it was, and the event that removed it."""

    ref: ResourceRef
    id: str
    trees: frozenset[str]
    event: ObjectEvent
