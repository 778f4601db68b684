"""A plan as reports show it: what is shown, in which order, with counts, folds and sentences.

It is decided here once for all forms, each of which is a drawing of this value. What others wrote
is made visible here, but in values of fields and in findings. No secret is known here: only whose
it is, and what delivers it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from reconciler.diagnostics import Diagnostic, cut
from reconciler.kinds.fields import KINDS
from reconciler.plan.causes import causes_in_words
from reconciler.plan.diff import FieldChange, carried_fields, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import (
    WORDS,
    Change,
    Delete,
    DeletedBy,
    IgnoredField,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
    held_of,
    ref_of,
    word,
)
from reconciler.plan.risk import (
    MEANINGS,
    PROBLEMS,
    Risk,
    by_danger,
    expected_problems,
    names_of,
    risks_of,
)
from reconciler.report.differences import value_as_text, what_differs
from reconciler.report.groups import MANY, NAMED, grouped, in_short
from reconciler.report.place import Place
from reconciler.report.visible import WHOLE, Sentence, visible
from reconciler.resources.ref import ResourceRef
from reconciler.state import COMMIT, OwedSecret

IN_STEP = "The service holds what the manifests declare."
UNDONE = "Nothing that the run wrote is to be taken back."
PART_IN_STEP = "What is selected is held as it is declared; the rest of the tree is not."
THE_SAME = "Both environments declare the same."
SAME_THEN = "The service held the same at both moments."
REFUSED = "Nothing was planned: the service was not asked."
OTHER_SHARDS = "organizations of other shards are not in this plan."
PART = "Part of the tree:"
OWED = "Client secrets that are owed"
LEFT_TO_OTHERS = "Left to others by metadata.ignore, and not compared"
WAIVED = "Waived: policies refuse this, and a waiver lets it pass"
LEFT_INACTIVE = "Inactive, and left so: no manifest says metadata.active"


class Shown(NamedTuple):
    """A change as it is shown, with what a reviewer must know of it first.

    Attributes:
        id: Of the object; empty for one that is not held.
        lost: The client id that ends with it for good, or nothing.
        carried: Fields that no manifest declares and an update sends back as they are.
        problems: What the service will report of it, each with its key.
    """

    plan: Plan
    change: Change
    word: str
    ref: ResourceRef
    id: str
    lost: str
    fields: tuple[FieldChange, ...]
    carried: tuple[str, ...]
    risks: tuple[Risk, ...]
    blocks: tuple[Diagnostic, ...]
    problems: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Return the name of what it is about."""
        return visible(str(self.ref))

    @property
    def is_new(self) -> bool:
        """Return whether it makes an object, so that its fields have no side before."""
        return self.word == "create"

    def causes(self, *, dated: bool = True) -> tuple[str, ...]:
        """Return why it is there, perhaps without times and sequences, which no two share."""
        return tuple(map(visible, causes_in_words(self.plan, self.change, dated=dated)))

    @property
    def needs_review(self) -> bool:
        """Return whether it has a risk, a block or a foreseen problem, or is not as declared."""
        change = self.change
        if isinstance(change, Update) and (change.kept or change.new_owner):
            return True
        return bool(self.risks or self.blocks or self.problems)

    @property
    def counted_with(self) -> Hashable:
        """Return what it has in common with the changes that a long plan counts together.

        Deletes are counted by kind and risks, so that none is behind harmless ones. Nothing is
        returned for a change that is always shown.
        """
        if self.word == "delete" and not self.blocks:
            return self.word, self.ref.kind, names_of(self.risks)
        is_plain = self.word in {"create", "update"} and not self.needs_review
        return self.word if is_plain else None

    @property
    def equal(self) -> Hashable:
        """Return what is shown of it, except its names, its id and its times.

        A delete is equal to no other: what it ends is its own.
        """
        if self.word == "delete":
            return self.ref
        return (
            self.ref.kind,
            self.word,
            tuple(
                (field.name, repr(what_differs(field)), field.reset, field.kept)
                for field in self.fields
            ),
            self.risks,
            tuple((block.code, block.summary) for block in self.blocks),
            self.causes(dated=False),
            self.carried,
            self.problems,
        )


def _shown(plan: Plan, change: Change, blocks: Sequence[Diagnostic]) -> Shown:
    held = held_of(change)
    return Shown(
        plan,
        change,
        word(change),
        ref_of(change),
        id=visible(held.id) if held else "",
        lost=visible(change.held.client_id) if isinstance(change, Delete) else "",
        fields=field_changes(change),
        carried=carried_fields(change),
        # A comparison changes nothing, so that it has no risk.
        risks=() if plan.compared_with else risks_of(change),
        blocks=tuple(blocks),
        problems=tuple((key, PROBLEMS[key]) for key in expected_problems(change)),
    )


Group: TypeAlias = tuple[Shown, ...]
"""Changes that are shown as one; mostly a single change."""


def equal_together(shown: Sequence[Shown]) -> list[Group]:
    """Return the changes as groups of equal ones; in a short plan each is a group of its own."""
    if len(shown) <= MANY:
        return [(each,) for each in shown]
    return grouped(shown, lambda each: each.equal, NAMED)


def members_in_words(group: Group) -> str:
    """Return the first few names of a group, and how many more there are."""
    return visible(in_short([each.ref.path for each in group]))


def title_of(group: Group) -> str:
    """Return what a group is about: a single change by its name, several by kind and number."""
    first = group[0]
    return first.name if len(group) == 1 else f"{len(group)} {KINDS[first.ref.kind].plural}"


def risky(shown: Sequence[Shown]) -> list[Shown]:
    """Return the changes that have risks, the most dangerous first."""
    found = [each for each in shown if each.risks]
    return sorted(found, key=lambda each: by_danger(each.risks))


DOCS = re.compile(r"https?://[A-Za-z0-9._~:/-]{1,200}", re.ASCII)
"""The address of the documents: no query, no character that Markdown or HTML could obey."""

EDITED = ", with changes that are not committed"
"""Stands after a commit whose manifests were edited since."""


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
        commit = self.commit if COMMIT.fullmatch(self.commit.removesuffix(EDITED)) else ""
        known = {"Made": self.made_at, "Commit": commit}
        return {name: value for name, value in known.items() if value}

    def page_of(self, risk: str) -> str:
        """Return the address of the page about a class of risk, or nothing."""
        if not DOCS.fullmatch(self.docs):
            return ""
        return f"{self.docs.rstrip('/')}/guards.md#{risk}"


NOTHING = About()


class Left(NamedTuple):
    """An object that is held and declared nowhere: its ref, its id, and what would delete it."""

    name: str
    id: str
    why: str

    @property
    def remark(self) -> str:
        """Return what stands behind its name."""
        return f"  (id {self.id}, {self.why})"


class Part(NamedTuple):
    """A part of a tree: the options that select it, made visible, and what else is counted."""

    selected: str
    counts: str


def part_of(scope: Scope, counts: str) -> Part | None:
    """Return the part that a scope selects; None for the whole tree."""
    flags = [f"--target {each}" for each in scope.target]
    flags += [f"--exclude {each}" for each in scope.exclude]
    return Part(visible(in_short(flags)), counts) if flags else None


def _left_out(summary: Summary) -> str:
    owed = summary.owed + summary.owed_left
    counts = {
        "change" if summary.changes == 1 else "changes": summary.changes,
        "in step": summary.in_step,
        "held but declared nowhere": summary.unmanaged,
        "owed client secret" if owed == 1 else "owed client secrets": owed,
    }
    named = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"Left out: {named or 'nothing'}."


@dataclass(frozen=True)
class PlanDocument:
    """A plan with the findings that go with it, as all forms show it.

    Attributes:
        service: Its address as it was given.
        findings: Those of the manifests.
        for_apply: Whether an apply shows it, so that text does not name the next command.
    """

    plan: Plan
    service: str
    findings: Sequence[Diagnostic] = ()
    about: About = NOTHING
    for_apply: bool = False

    @cached_property
    def changes(self) -> list[Shown]:
        """Return the changes in the order in which they are applied."""
        blocks: dict[ResourceRef | None, list[Diagnostic]] = {}
        for block in self.plan.blocks:
            blocks.setdefault(block.ref, []).append(block)
        return [
            _shown(self.plan, change, blocks.get(ref_of(change), ()))
            for change in self.plan.changes
        ]

    @cached_property
    def for_review(self) -> list[Shown]:
        """Return the changes as a reviewer should meet them; those of one rank in their order."""
        return sorted(self.changes, key=lambda each: (not each.blocks, by_danger(each.risks)))

    @cached_property
    def risk_counts(self) -> Mapping[str, int]:
        """Return how many changes have each class of risk, the most dangerous class first."""
        risks = Counter(
            name for each in self.changes for name in {risk.name for risk in each.risks}
        )
        return {name: risks[name] for name in MEANINGS if name in risks}

    def folded(self) -> tuple[list[Group], list[Shown]]:
        """Return the groups that a folded report shows, and the changes that it does not.

        Those are creates and updates without a risk, and deletes of one kind with the same risks,
        each above ``WHOLE``; every other change is always shown.
        """
        groups: list[Group] = []
        hidden: list[Shown] = []
        plain: Counter[Hashable] = Counter()
        for group in equal_together(self.changes):
            common = group[0].counted_with
            plain[common] += 1
            if common is not None and plain[common] > WHOLE:
                hidden += group
            else:
                groups.append(group)
        return groups, hidden

    @cached_property
    def place(self) -> Place:
        """Return the service and the tree."""
        plan, scope = self.plan, self.plan.scope
        is_asked = not plan.is_refused and (plan.is_of_moments or not plan.compared_with)
        names = (self.service, plan.instance, scope.tree, scope.environment)
        about = (is_asked, plan.compared_with, plan.is_of_moments, scope.undo)
        return Place(*names, *about)

    @cached_property
    def headline(self) -> Sentence:
        """Return the counts in one sentence, or that the plan was refused."""
        plan, summary = self.plan, self.plan.summary
        if plan.is_refused and not plan.compared_with:
            return Sentence(REFUSED)
        if not plan.changes:
            what = "differences" if plan.compared_with else "changes"
            return Sentence(f"No {what}.", f" {self.no_change}", ("bold", "green"))
        counts = ", ".join(
            f"{count} {what}"
            for name, what in self.operations.items()
            if (count := getattr(summary, name)) or name != "adopt"
        )
        if plan.compared_with:
            return Sentence("Compared:", f" {counts}, {summary.in_step} the same.")
        return Sentence("Plan:", f" {counts}.")

    @property
    def operations(self) -> Mapping[str, str]:
        """Return what is so of the changes of each word; a comparison has no adoptions."""
        one, other = map(visible, (self.plan.compared_with, self.plan.scope.environment))
        if self.plan.is_of_moments:
            return {"create": "created", "update": "changed", "delete": "deleted"}
        if one:
            return {"create": f"only in {other}", "update": "different", "delete": f"only in {one}"}
        return {name: f"to {name}" for name in WORDS.values()}

    @property
    def no_change(self) -> str:
        """Return what is so where the plan has no change."""
        if self.plan.is_of_moments:
            return SAME_THEN
        if self.plan.compared_with:
            return THE_SAME
        if self.plan.scope.undo:
            return UNDONE
        return PART_IN_STEP if self.plan.left_out.changes else IN_STEP

    @property
    def shard(self) -> str:
        """Return which shard the plan is of, if it is not of a whole tree."""
        shard = self.plan.scope.shard
        return "" if shard is None else f"{shard}: {OTHER_SHARDS}"

    @property
    def part(self) -> Part | None:
        """Return which part of the tree the plan is of, if it is not of the whole."""
        plan = self.plan
        needed = f", +{len(plan.needed)} that it needs" if plan.needed else ""
        return part_of(plan.scope, f"{needed}. {_left_out(plan.left_out)}")

    @property
    def untouched(self) -> str:
        """Return how much is not changed by the plan."""
        plan = self.plan
        if plan.is_of_moments:
            return f"{len(plan.in_step)} the same at both moments"
        if plan.compared_with:
            return f"{len(plan.in_step)} the same in both environments"
        return f"{len(plan.in_step)} in step, {len(plan.unmanaged)} held but declared nowhere"

    @property
    def digest(self) -> str:
        """Return the digest; a comparison has none."""
        return "" if self.plan.compared_with else plan_digest(self.plan)

    @property
    def blocked(self) -> str:
        """Return that the plan is blocked, and by how much, if it is."""
        if not self.plan.blocks:
            return ""
        return f"Blocked by {blocks_in_words(self.plan.blocks)}: apply refuses this plan."

    @property
    def way_out(self) -> str:
        """Return what the findings say that block the plan."""
        if any(block.policy for block in self.plan.blocks):
            return "Each says what to do."
        return "Each guard says how to allow just that."

    @property
    def judged(self) -> str:
        """Return how many policies judged the plan, and how much was waived; empty without any."""
        count, waived = len(self.plan.policies), len(self.plan.waived)
        if not count:
            return ""
        noun = "policy" if count == 1 else "policies"
        return f"Judged by {count} {noun}{f', {waived} refused and waived' if waived else ''}."

    @property
    def waived(self) -> list[str]:
        """Return a line for each refusal of a policy that a waiver takes back."""
        return [
            visible(
                f"{each.ref or 'the whole plan'}: {each.policy} by {each.waiver}, until "
                f"{each.until} ({each.owner}): {each.reason}"
            )
            for each in self.plan.waived
        ]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return all findings but those that block the plan."""
        return (*self.findings, *self.plan.warnings)

    @cached_property
    def owed_sentences(self) -> tuple[str, ...]:
        """Return how many secrets are owed, and what delivers them."""
        plan = self.plan
        owed = len(plan.deliverable)
        return tuple(owed_sentences(owed, plan.owed_elsewhere, plan.owed_left))

    @property
    def owed(self) -> list[str]:
        """Return a line for each secret that is owed."""
        return [_owed_line(secret) for secret in self.plan.owed]

    @property
    def unmanaged(self) -> list[Left]:
        """Return what is held and declared nowhere."""
        return [
            Left(visible(str(found.ref)), visible(found.id), visible(_flag_in_words(found)))
            for found in self.plan.unmanaged
        ]

    @property
    def inactive(self) -> list[str]:
        """Return what is held inactive and stays so."""
        return refs_as_text(self.plan.inactive)

    @property
    def ignored(self) -> list[str]:
        """Return the fields that are left to others."""
        return ignored_as_text(self.plan.ignored)

    def next_step(self, on_merge: str = "") -> tuple[str, str]:
        """Return what to do in a few sentences, and the command for it, or no command.

        ``on_merge`` is one of ``ON_MERGE`` where the jobs of that CI apply the plan on merge.
        """
        plan, environment = self.plan, self.plan.scope.environment
        if plan.compared_with:
            return _after_comparison(plan), ""
        if plan.is_refused:
            return "Merge the change of the configuration on its own, then plan again.", ""
        if plan.blocks:
            is_policy = all(block.policy for block in plan.blocks)
            return (_REFUSED_BY_POLICIES if is_policy else _BLOCKED), ""
        deed = f"undo {plan.scope.undo}" if plan.scope.undo else "apply"
        command = f"reconciler {deed}{f' --env {environment}' if environment else ''}"
        command += "".join(f" --keep {ref.address}" for ref in plan.scope.keep)
        if plan.changes:
            by_digest = f"{command} --digest {self.digest}"
            return (ON_MERGE[on_merge], "") if on_merge else (_APPLY, by_digest)
        if plan.deliverable:
            merge = "Merge: CI then delivers the client secrets that are owed."
            return (
                (merge, "") if on_merge else ("Deliver the client secrets that are owed.", command)
            )
        return "Nothing to do.", ""


_BLOCKED = "Change the manifests, or allow what each guard names, and plan again."
_REFUSED_BY_POLICIES = "Change what the policies refuse, and plan again."


def _after_comparison(plan: Plan) -> str:
    if plan.is_of_moments:
        return "`reconciler export --at` writes manifests of what was held then."
    return f"No service was asked: `reconciler plan --env {plan.scope.environment}` asks."


def blocks_in_words(blocks: Sequence[Diagnostic]) -> str:
    """Return how many findings of guards and of policies block a plan: 1 guard and 2 policies."""
    by_policies = sum(bool(block.policy) for block in blocks)
    guards = len(blocks) - by_policies
    counted = [f"{guards} guard{'' if guards == 1 else 's'}"] if guards else []
    if by_policies:
        counted.append(f"{by_policies} finding{'' if by_policies == 1 else 's'} of policies")
    return " and ".join(counted)


def _flag_in_words(found: Unmanaged) -> str:
    """Return what would delete an unmanaged object, or why nothing does."""
    if found.flag is not DeletedBy.NO_FLAG:
        return f"{found.flag.value} would delete it"
    return f"tree {found.owner} owns it" if found.owner else "never deleted"


def refs_as_text(refs: Sequence[ResourceRef]) -> list[str]:
    """Return what is named, each on a line of its own."""
    return [visible(str(ref)) for ref in refs]


def ignored_as_text(ignored: Sequence[IgnoredField]) -> list[str]:
    """Return the fields that are left to others, one a line, with their present values."""
    return [
        visible(f"{each.ref}  {each.name}: ")
        + cut(value_as_text(each.held))
        + ("" if each.declared == each.held else f"  (declared: {_declared(each)})")
        for each in ignored
    ]


def _declared(field: IgnoredField) -> str:
    return cut(value_as_text(field.declared)) if field.declared is not None else "nothing"


_APPLY = (
    "Review the changes. After approval, this command with the options of this plan applies "
    "exactly this plan, or nothing."
)

ON_MERGE = {
    "github": (
        "Merge to apply this. CI then plans again and applies the plan if it has the digest above, "
        "once the reviewers of its environment, if there are any, approve. With another digest the "
        "run fails and shows the new plan. That is applied only once a reviewer starts the "
        "workflow by hand with the new digest."
    ),
    "gitlab": (
        "Merge to apply this. CI then plans again and applies the plan if it has the digest above, "
        "for a protected environment once its job is started. With another digest the pipeline "
        "fails and shows the new plan. That is applied only once a reviewer starts the manual job "
        "`reconciler approve` with the new digest."
    ),
}
"""The next step after a merge, as the jobs of ``init`` take it, by the name of the CI."""


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


def _owed_line(secret: OwedSecret) -> str:
    lost = "lost: no longer kept, " if secret.lost else ""
    made = f"made by {secret.by} at {secret.since}" if secret.by else f"made at {secret.since}"
    return visible(f"{secret.ref}  (client id {secret.client_id}, {lost}{made})")


def _count(number: int) -> str:
    return "1 client secret is" if number == 1 else f"{number} client secrets are"
