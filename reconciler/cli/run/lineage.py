"""The commits of a run and which of them count: what was applied, and why the tip is held back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.cli.run.commits import Commits, Reading
from reconciler.cli.run.form import RunForm
from reconciler.cli.run.memory import Memory, Purpose, read_memory, write_memory
from reconciler.configuration.semantics import differences
from reconciler.continuous.decision import Condition, Hold, Mode, holds_of
from reconciler.errors import InvalidManifestsError, ReconcilerError
from reconciler.git.mirror import Mirror
from reconciler.policy.judging import Judges, counting, loosened
from reconciler.policy.waivers import PolicySet
from reconciler.state import Heads

_SHOWN = 3  # findings of a commit that does not validate
_NO_LINEAGE = {Condition.REWRITTEN, Condition.UNSIGNED}


class Lineage:
    """The commits of one run, as its mirror, its memory and the service know them."""

    def __init__(self, purpose: Purpose, form: RunForm, mirror: Mirror, commits: Commits) -> None:
        """Read what the run remembers.

        Raises:
            LocalFileError, UsageError: see ``read_memory``.
        """
        self._purpose, self._form = purpose, form
        self._mirror, self._commits = mirror, commits
        self._memory = read_memory(form.state_folder, purpose)

    @property
    def seen(self) -> str:
        """Return the last commit that was seen and counts, if the mirror has it."""
        seen = self._memory.seen
        return seen if seen and self._mirror.holds(seen) else ""

    def in_use(self) -> Collection[str]:
        """Return the commits to keep beside the tip and the one that was applied."""
        return {self._memory.trusted, self._form.trust_commit or ""}

    def tree(self, reading: Reading) -> str:
        """Return the name of the tree: that of the command line, else of the trusted commit."""
        trusted = self._trusted(reading.commit, "")
        named = self._commits.read(trusted).scope.tree if trusted else ""
        return self._purpose.tree or named or reading.scope.tree

    def applied(self, tip: str, tree: str, heads: Heads | None) -> str:
        """Return the commit that was applied last; empty where none is known.

        The service has it on record in every organization that the commit names. A service
        without records leaves it to the memory.
        """
        if heads is None:
            return self._memory.applied or self._form.applied or ""
        found = self._on_record(tip, tree, heads)
        whole = [
            each for each in found if {*_recorded(heads, tree, self._commits.read(each))} == {each}
        ]
        return max(whole, key=lambda each: found[each], default="")

    def unreadable(self, tip: str, tree: str, heads: Heads | None) -> Iterator[str]:
        """Yield why a commit on record is not healed towards, where it does not validate here.

        It did when it was applied: by another version, or with an extra that is missing here.
        """
        for commit in self._on_record(tip, tree, heads) if heads else ():
            if problem := self._commits.read(commit).problem:
                yield (
                    f"commit {commit}, which is on record as applied, is not healed towards: "
                    f"{problem.problem}. {problem.remedy}"
                )

    def _on_record(self, tip: str, tree: str, heads: Heads) -> Mapping[str, str]:
        """Return the commits on record that a tip has, each with the time of its record."""
        found = {record.commit: record.at for record in heads.records(tree)}
        return {each: at for each, at in found.items() if self._mirror.is_ancestor(each, tip)}

    def counts(self, applied: str, tip: str) -> bool:
        """Return whether a commit that was applied may be healed towards."""
        return self._mirror.is_ancestor(applied, tip) and not self._unsigned(applied)

    def holds(
        self, reading: Reading, applied: str, tree: str, heads: Heads | None
    ) -> tuple[Hold, ...]:
        """Return why a tip is not applied, as far as no plan shows it; remember it if it counts.

        Raises:
            LocalFileError: the disk does not take what is remembered.
        """
        tip, accept = reading.commit, self._form.accept or ""
        before = [self._memory.seen]
        if not (accept and self._mirror.is_ancestor(accept, tip)):
            before += [*_recorded(heads, tree, reading), applied]
        missing = next((b for b in before if b and not self._mirror.is_ancestor(b, tip)), "")
        found = [
            *holds_of(
                tip,
                missing,
                signature=self._unsigned(tip),
                differences=[*self._differences(reading, applied)],
                accepted=accept,
                is_known=heads is not None or bool(applied) or self._form.mode is Mode.OBSERVE,
            )
        ]
        whys = {hold.why for hold in found}
        memory = self._memory
        if not whys & _NO_LINEAGE:
            is_trusted = Condition.UNTRUSTED not in whys and reading.problem is None
            trusted = tip if is_trusted else memory.trusted
            self._remember(replace(memory, trusted=trusted, seen=tip))
        if reading.problem is not None:
            found.append(invalid(reading.problem))
        return tuple(found)

    def record(self, commit: str) -> None:
        """Remember that a commit was applied, for a service that keeps no record.

        Raises:
            LocalFileError: the disk does not take it.
        """
        self._remember(replace(self._memory, applied=commit))

    def _remember(self, memory: Memory) -> None:
        if memory != self._memory:
            write_memory(self._form.state_folder, self._purpose, memory)
            self._memory = memory

    def _unsigned(self, commit: str) -> str:
        """Return why the signature of a commit does not count, in words."""
        signers = self._form.signed_by
        return self._mirror.unsigned(commit, signers) if signers is not None else ""

    def judges(self, tip: Reading, applied: str, *, heals: bool) -> Judges:
        """Return the policies that count: those of the trusted commit, and new ones of the tip.

        A heal is judged by those of the applied commit, or of the one that ``--trust-commit``
        names: a commit that is not applied must not keep the one before it from being healed
        towards.

        Raises:
            ReconcilerError: they cannot be read.
        """
        if heals:
            return counting(_policies_of(self._commits.read(self._named(tip.commit) or applied)))
        trusted = self._trusted(tip.commit, applied)
        known = _policies_of(self._commits.read(trusted) if trusted else tip)
        return counting(_policies_of(tip), known)

    def _trusted(self, tip: str, applied: str) -> str:
        """Return the commit that decides over approval; empty where there is none yet."""
        known = self._memory.trusted
        return self._named(tip) or (known if known and self._mirror.holds(known) else applied)

    def _named(self, tip: str) -> str:
        """Return the commit of ``--trust-commit``, if a tip has it."""
        named = self._form.trust_commit
        return named if named and self._mirror.is_ancestor(named, tip) else ""

    def _differences(self, reading: Reading, applied: str) -> Iterator[str]:
        """Yield how the tip decides otherwise over approval than the commit that counts."""
        trusted = self._trusted(reading.commit, applied)
        if not trusted or trusted == reading.commit or not self._mirror.holds(trusted):
            return
        known = self._commits.read(trusted)
        if known.policies is not None and reading.policies is not None:
            yield from loosened(reading.policies, known.policies)
        counted, proposed = known.configuration, reading.configuration
        if counted is None or proposed is None:
            if counted is not proposed and reading.problem is None:
                yield "reconciler.yaml is in one of the two commits only"
            return
        for each in differences(counted, proposed):
            yield f"{each.what} is {each.proposed}, was {each.trusted}"


def _policies_of(reading: Reading) -> PolicySet:
    """Return the policies of a commit.

    Raises:
        ReconcilerError: they cannot be read.
    """
    if reading.policies is None and reading.problem is not None:
        raise reading.problem
    return reading.policies or PolicySet()


def _recorded(heads: Heads | None, tree: str, reading: Reading) -> Sequence[str]:
    """Return the commits that the organizations of a commit have on record for a tree."""
    if heads is None or reading.desired is None:
        return ()
    return [record.commit for record in heads.records(tree, reading.desired.organizations)]


def invalid(problem: ReconcilerError) -> Hold:
    """Return why a commit is not valid; of findings, the first ones with their places."""
    words = problem.problem
    if isinstance(problem, InvalidManifestsError):
        found = [each for each in problem.diagnostics if each.is_error][:_SHOWN]
        places = (f"{each.location}: " if each.location else "" for each in found)
        said = (f"{place}{each.summary}" for place, each in zip(places, found, strict=True))
        words = f"{words}: {'; '.join(said)}"
    return Hold(Condition.INVALID, words, problem.remedy)
