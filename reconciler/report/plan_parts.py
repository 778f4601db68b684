"""Parts that reports of a plan share: its place, order of changes, owed secrets, and next step.

A run that was pointed at the wrong service shows it in its place, the first line of every plan,
question and report. No secret is known here: only whose it is, and what delivers it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from reconciler.diagnostics import Diagnostic, name_as_text
from reconciler.kinds.fields import KINDS
from reconciler.plan.causes import causes_in_words
from reconciler.plan.diff import carried_fields, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    DeletedBy,
    Plan,
    Unmanaged,
    Update,
    ref_of,
    word,
)
from reconciler.plan.risk import CLASSES, Risk, expected_problems, most_dangerous, risks_of
from reconciler.report.differences import what_differs
from reconciler.report.groups import MANY, NAMED, grouped, in_short
from reconciler.report.visible import WHOLE, Style, longest_ticks, visible, without_credentials
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import ResourceRef, Shard
from reconciler.state import OwedSecret


class Shown(NamedTuple):
    """A change as it is shown, with what a reviewer must know of it first.

    Attributes:
        causes: Why it is there, in words; names of tokens and trees in them are not ours.
        undated: The same without times and sequences, which no two changes share.
    """

    change: Change
    risks: tuple[Risk, ...]
    blocks: Sequence[Diagnostic]
    causes: tuple[str, ...] = ()
    undated: tuple[str, ...] = ()


Group: TypeAlias = tuple[Shown, ...]
"""Changes that are shown as one; mostly a single change."""


def in_plan_order(plan: Plan) -> list[Shown]:
    """Return the changes in the order in which they are applied."""
    blocks: dict[ResourceRef, list[Diagnostic]] = {}
    for block in plan.blocks:
        if block.ref is not None:
            blocks.setdefault(block.ref, []).append(block)
    return [
        Shown(
            change,
            risks_in(plan, change),
            blocks.get(ref_of(change), ()),
            tuple(causes_in_words(plan, change)),
            tuple(causes_in_words(plan, change, dated=False)),
        )
        for change in plan.changes
    ]


def in_review_order(plan: Plan) -> list[Shown]:
    """Return the changes as a reviewer should meet them; those of one rank stay in their order."""
    shown = in_plan_order(plan)
    return sorted(shown, key=lambda each: (not each.blocks, most_dangerous(each.risks)))


def risks_in(plan: Plan, change: Change) -> tuple[Risk, ...]:
    """Return the risks of a change; a comparison changes nothing, so that it has none."""
    return () if plan.compared_with else risks_of(change)


def is_plain(shown: Shown) -> bool:
    """Return whether a change is a create without a risk, a block or a foreseen problem.

    Reports may fold those where they are many; every other change is always shown.
    """
    return isinstance(shown.change, Create) and not _needs_review(shown)


def _needs_review(shown: Shown) -> bool:
    change = shown.change
    if isinstance(change, Update) and (change.kept or change.new_owner):
        return True
    return bool(shown.risks or shown.blocks or expected_problems(change))


def equal_together(shown: Sequence[Shown]) -> list[Group]:
    """Return the changes as groups of equal ones; in a short plan each is a group of its own.

    Equal changes have one kind and one operation, alter the same fields in the same way, and have
    the same risks, blocks and causes. A delete is equal to no other: what it ends is its own.
    """
    if len(shown) <= MANY:
        return [(each,) for each in shown]
    return grouped(shown, _all_that_is_told, NAMED)


def _all_that_is_told(shown: Shown) -> Hashable:
    """Return what a report tells of a change, but for its names, its id and its times."""
    change = shown.change
    if isinstance(change, Delete):
        return change.held.ref
    return (
        ref_of(change).kind,
        word(change),
        tuple(
            (field.name, repr(what_differs(field)), field.reset, field.kept)
            for field in field_changes(change)
        ),
        shown.risks,
        tuple((block.code, block.summary) for block in shown.blocks),
        shown.undated,
        carried_fields(change),
        expected_problems(change),
    )


def folded_changes(groups: Sequence[Group]) -> tuple[list[Group], list[Change]]:
    """Return the groups that a folded report shows, and the changes that it does not.

    Those are creates and updates without a risk, each above ``WHOLE``; every other change is
    always shown.
    """
    shown: list[Group] = []
    hidden: list[Change] = []
    plain: Counter[type[Change]] = Counter()
    for group in groups:
        first = group[0]
        if isinstance(first.change, Create | Update) and not _needs_review(first):
            plain[type(first.change)] += 1
            if plain[type(first.change)] > WHOLE:
                hidden += [each.change for each in group]
                continue
        shown.append(group)
    return shown, hidden


def members_in_words(group: Group) -> str:
    """Return the first few names of a group, and how many more there are; made visible."""
    return visible(in_short([ref_of(each.change).path for each in group]))


def title_of(group: Group) -> str:
    """Return what a group is about: a single change by its name, several by kind and number."""
    ref = ref_of(group[0].change)
    return visible(str(ref)) if len(group) == 1 else f"{len(group)} {KINDS[ref.kind].plural}"


def risk_counts(shown: Sequence[Shown]) -> Mapping[str, int]:
    """Return how many changes have each class of risk, the most dangerous class first."""
    risks = Counter(name for each in shown for name in {risk.name for risk in each.risks})
    return {name: risks[name] for name in CLASSES if name in risks}


def blocked_sentence(plan: Plan) -> str:
    """Return that a plan is blocked, and by how many guards."""
    count = len(plan.blocks)
    return f"Blocked by {count} guard{'' if count == 1 else 's'}: apply refuses this plan."


def risky(shown: Sequence[Shown]) -> list[Shown]:
    """Return the changes that have risks, the most dangerous first."""
    found = [each for each in shown if each.risks]
    return sorted(found, key=lambda each: most_dangerous(each.risks))


def flag_in_words(found: Unmanaged) -> str:
    """Return what would delete an unmanaged object, or why nothing does."""
    if found.flag is not DeletedBy.NO_FLAG:
        return f"{found.flag.value} would delete it"
    return f"tree {found.owner} owns it" if found.owner else "never deleted"


def section(title: str, lines: Iterable[str], style: Style, *looks: str) -> list[str]:
    """Return a block of lines below a title, or nothing where there are none."""
    block = "".join(f"\n  {line}" for line in lines)
    return [f"{style(title, 'bold', *looks)}{block}"] if block else []


def refs_as_text(refs: Iterable[ResourceRef]) -> list[str]:
    """Return what is named, each on a line of its own."""
    return [visible(str(ref)) for ref in refs]


LEFT_INACTIVE = "Inactive, and left so: no manifest says metadata.active"

DOCS = re.compile(r"https?://[A-Za-z0-9._~:/-]{1,200}", re.ASCII)
"""The address of the documents: no query, no character that Markdown or HTML could obey."""

EDITED = ", with changes that are not committed"
"""Stands after a commit whose manifests were edited since."""

_COMMIT = re.compile(rf"[0-9a-f]{{40}}(?:[0-9a-f]{{24}})?(?:{EDITED})?", re.ASCII)


class About(NamedTuple):
    """Facts about a report itself.

    Attributes:
        made_at: When the plan was made, such as ``2026-11-22T00:31:07Z``.
        commit: Commit that the manifests are of, perhaps with ``EDITED``; another text is not
            shown.
        docs: Address of the folder with the documents of this program.
        on_merge: Name of the CI whose jobs apply the plan on merge, one of ``ON_MERGE``; empty for
            a plan that is applied by hand.
    """

    made_at: str = ""
    commit: str = ""
    docs: str = ""
    on_merge: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Return what is known, by its name."""
        commit = self.commit if _COMMIT.fullmatch(self.commit) else ""
        known = {"Made": self.made_at, "Commit": commit}
        return {name: value for name, value in known.items() if value}

    def page_of(self, risk: str) -> str:
        """Return the address of the page about a class of risk, or nothing."""
        if not DOCS.fullmatch(self.docs):
            return ""
        return f"{self.docs.rstrip('/')}/guards.md#{risk}"


NOTHING = About()


_APPLY = (
    "Review the changes. After approval, this command with the options of this plan applies "
    "exactly this plan, or nothing."
)


ON_MERGE = {
    "github": (
        "Merge to apply this. CI then plans again and applies the plan if it has the digest above, "
        "once the reviewers of its environment, if there are any, approve. With another digest the "
        "run fails and shows the new plan. That is applied only if somebody starts the workflow by "
        "hand with the new digest."
    ),
    "gitlab": (
        "Merge to apply this. CI then plans again and applies the plan if it has the digest above, "
        "for a protected environment once its job is started. With another digest the pipeline "
        "fails and shows the new plan. That is applied only if somebody starts the manual job "
        "`reconciler approve` with the new digest."
    ),
}
"""The next step after a merge, as the jobs of ``init`` take it, by the name of the CI."""


def next_step(plan: Plan, on_merge: str = "") -> tuple[str, str]:
    """Return what to do about a plan in a few sentences, and the command for it, or no command.

    ``on_merge`` is one of ``ON_MERGE`` where the jobs of that CI apply the plan on merge.
    """
    if plan.compared_with:
        return f"No service was asked: `reconciler plan --env {plan.scope.environment}` asks.", ""
    if plan.is_refused:
        return "Merge the change of the configuration on its own, then plan again.", ""
    if plan.blocks:
        return "Change the manifests, or allow what each guard names, and plan again.", ""
    command = "" if on_merge else f"reconciler apply{_chosen(plan)}"
    if plan.changes:
        by_digest = f"{command} --digest {plan_digest(plan)}"
        return (ON_MERGE[on_merge], "") if on_merge else (_APPLY, by_digest)
    if plan.deliverable:
        merge = "Merge: CI then delivers the client secrets that are owed."
        return merge if on_merge else "Deliver the client secrets that are owed.", command
    return "Nothing to do.", ""


def _chosen(plan: Plan) -> str:
    return f" --env {plan.scope.environment}" if plan.scope.environment else ""


TITLE = "Client secrets that are owed"


def owed_sentences(owed: int, elsewhere: int, left: int = 0) -> Iterator[str]:
    """Yield how many secrets are owed to the tree and to others, and what delivers them.

    ``left`` is how many are owed to the tree where it declares nothing any more. Nothing is
    yielded where none is owed.
    """
    if owed:
        yield (
            f"{_count(owed)} owed: reconciler apply delivers {'it' if owed == 1 else 'them'}, "
            "as does reconciler secret deliver."
        )
    if left:
        yield (
            f"{_count(left)} owed in organizations that the manifests no longer name: "
            "reconciler secret deliver delivers what is owed there."
        )
    if elsewhere:
        yield f"{_count(elsewhere)} owed to other trees: their own apply delivers what is theirs."


def owed_line(secret: OwedSecret) -> str:
    """Return whose secret is owed, since when and made by which token; made visible."""
    lost = "lost: no longer kept, " if secret.lost else ""
    made = f"made by {secret.by} at {secret.since}" if secret.by else f"made at {secret.since}"
    return visible(f"{secret.ref}  (client id {secret.client_id}, {lost}{made})")


def _count(number: int) -> str:
    return "1 client secret is" if number == 1 else f"{number} client secrets are"


LONGEST = 400
"""Characters of the line in Markdown, whose head has a limit."""

NEW = "new: there is no store yet"
NOT_ASKED = "not asked"


class Place(NamedTuple):
    """The service and the tree of a run.

    Attributes:
        service: The address as it was given.
        instance: Id of the service; empty where there is none yet.
        tree: Name of the body of manifests.
        environment: Name of the environment of ``reconciler.yaml``; empty for none.
        is_asked: Whether the service was asked; a refused plan is made without.
        compared_with: Of a comparison, the environment it is compared with; empty otherwise. No
            service is asked then.
    """

    service: str
    instance: str
    tree: str
    environment: str = ""
    is_asked: bool = True
    compared_with: str = ""

    @property
    def instance_in_words(self) -> str:
        """Return the id of the service, or why it is not known."""
        return self.instance or (NEW if self.is_asked else NOT_ASKED)

    @property
    def address(self) -> str:
        """Return the address without credentials."""
        return name_as_text(without_credentials(self.service))


def place_of(plan: Plan, service: str) -> Place:
    """Return the service and the tree of a plan."""
    scope = plan.scope
    is_asked = not (plan.is_refused or plan.compared_with)
    return Place(
        service, plan.instance, scope.tree, scope.environment, is_asked, plan.compared_with
    )


def place_as_text(place: Place) -> str:
    """Return the line for a terminal."""
    if place.compared_with:
        return visible(f"Environment {place.environment} compared with {place.compared_with}")
    instance = f"instance {place.instance}" if place.instance else place.instance_in_words
    head = f"Environment {place.environment}: service" if place.environment else "Service"
    return visible(f"{head} {place.address} ({instance}), tree {place.tree}")


def place_as_code(place: Place) -> str:
    """Return the line for Markdown, as code that its text cannot leave."""
    text = place_as_text(place)
    if len(_as_code(text)) > LONGEST:
        text = f"{text[: LONGEST // 3]} [cut]"  # its back-ticks come three times at most
    return _as_code(text)


def _as_code(text: str) -> str:
    ticks = "`" * (1 + longest_ticks(text))
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def place_as_marker(place: Place, shard: Shard | None) -> str:
    """Return the line by which the comment of a plan is found again.

    Each environment, service and tree has a comment of its own, and each shard of a tree.
    """
    names = [f"environment={_encoded(place.environment)}"] if place.environment else []
    if place.compared_with:
        names.append(f"compared-with={_encoded(place.compared_with)}")
        return f"<!-- reconciler-comparison {' '.join(names)} -->"
    names += [f"service={_encoded(place.address)}", f"tree={_encoded(place.tree)}"]
    names += [f"shard={shard}"] if shard is not None else []
    return f"<!-- reconciler-plan {' '.join(names)} -->"


def _encoded(name: str) -> str:
    """Return a name that cannot end an HTML comment; of a long one, the start and a hash."""
    encoded = quote(name, safe=":/@", errors="surrogatepass").replace("--", "-%2D")
    if len(encoded) <= LONGEST // 2:
        return encoded
    import hashlib

    return f"{encoded[: LONGEST // 4]}~{hashlib.sha256(encoded.encode()).hexdigest()[:16]}"


def place_as_json(place: Place) -> JsonObject:
    """Return the place in stable keys; ``instance`` is null where there is no store yet.

    ``environment`` is there only if one was chosen, ``compared_with`` only in a comparison.
    """
    names = {"environment": place.environment, "compared_with": place.compared_with}
    return {
        **{key: name for key, name in names.items() if name},
        "service": place.address or None,
        "instance": place.instance or None,
        "tree": place.tree,
    }
