"""Notices of a run, sent as the Standard Webhooks specification says.

Each receiver has a thread and a queue of its own, so that a round never waits for one. Notices
arrive in order: one is tried for an hour, and the next one waits for it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.cli.output import time_in_words
from reconciler.cli.run.memory import Purpose, read_noticed, write_noticed
from reconciler.cli.run.status import Status
from reconciler.continuous.decision import Condition
from reconciler.continuous.notices import Known, Notice, notices_of
from reconciler.errors import UsageError
from reconciler.report.place import Place
from reconciler.report.visible import visible
from reconciler.resources.secret import Secret
from reconciler.service_client.endpoint import Posted

if TYPE_CHECKING:
    from reconciler.service_client.http_wire import Poster

LOG = logging.getLogger("reconciler.run")
TRIED_SECONDS = 3600.0  # from the time a notice was made
CLOSE_SECONDS = 10.0  # for what waits when the run ends
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds between two tries
MOST_WAITING = 100  # notices of one receiver
GONE = 410  # a receiver that answers so wants no more
KEY_BYTES = range(24, 65)  # as the specification asks
_MOST_CODES = 20
_PREFIX = "whsec_"


class Message(NamedTuple):
    """A notice as it is sent.

    Attributes:
        until: When no more try is begun, on the monotonic clock.
    """

    id: str
    type: str
    body: bytes
    until: float


def key_of(text: str, where: str) -> Secret:
    """Return the key in a text, in base64 without the prefix ``whsec_``.

    Raises:
        UsageError: the text holds no key. It is not repeated.
    """
    written = text.strip().removeprefix(_PREFIX)
    try:
        key = base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise UsageError(
            f"{where} holds no key of notices",
            remedy=f"Write {_PREFIX} and the base64 of 24 to 64 random bytes into it, such as "
            f'`(umask 077; printf "{_PREFIX}%s" "$(openssl rand -base64 32)" > FILE)`.',
        )
    return Secret(written)


def signed(key: Secret, message: Message, now: int) -> dict[str, str]:
    """Return the headers of one try; ``now`` is its time in seconds since the epoch."""
    content = f"{message.id}.{now}.".encode() + message.body
    made = hmac.digest(base64.b64decode(key.reveal()), content, hashlib.sha256)
    return {
        "content-type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{base64.b64encode(made).decode()}",
    }


class Sender:
    """Sends notices to one receiver, one after the other, on a thread of its own."""

    def __init__(self, poster: Poster, host: str, key: Secret) -> None:
        """Begin to wait for notices. Of the address only the host is shown."""
        self._poster, self._host, self._key = poster, host, key
        self._queue: deque[Message] = deque()
        self._counts = Counter[str]()  # what waits includes the notice that is being sent
        self._ends: float | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._thread.start()

    def counts(self) -> Counter[str]:
        """Return how many notices were ``sent``, ``failed``, and are ``waiting``."""
        with self._changed:
            return self._counts.copy()

    def put(self, message: Message) -> None:
        """Let a notice be sent. Where too many wait, the oldest one is dropped."""
        with self._changed:
            dropped = self._queue.popleft() if len(self._queue) == MOST_WAITING else None
            self._queue.append(message)
            self._counts.update(waiting=1)
            if dropped is not None:
                self._counts.update(waiting=-1, failed=1)
            self._changed.notify_all()
        if dropped is not None:
            LOG.warning("notice %s to %s is dropped: too many wait", dropped.type, self._host)

    def close(self) -> None:
        """Send what waits, for a bounded time, and end."""
        self.end()
        self._thread.join(CLOSE_SECONDS)
        if left := self.counts()["waiting"]:
            LOG.warning("%d notice(s) to %s were not sent", left, self._host)

    def end(self) -> None:
        """Say that no more notices come; what waits is sent soon or not at all."""
        with self._changed:
            if self._ends is None:
                self._ends = time.monotonic() + CLOSE_SECONDS
            self._changed.notify_all()

    def _work(self) -> None:
        with closing(self._poster):
            while (message := self._next()) is not None:
                self._send(message)

    def _next(self) -> Message | None:
        """Wait for a notice and return it; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ends is not None)
            is_over = self._ends is not None and time.monotonic() >= self._ends
            return None if is_over or not self._queue else self._queue.popleft()

    def _send(self, message: Message) -> None:
        """Try a notice until it is accepted or its time is over."""
        tries = 0
        while True:
            posted = self._poster.post(signed(self._key, message, int(time.time())), message.body)
            if 200 <= posted.status < 300:
                with self._changed:
                    self._counts.update(waiting=-1, sent=1)
                return
            tries += 1
            if posted.status == GONE or not self._waits(message, posted, tries):
                break
        with self._changed:
            if self._ends is not None and posted.status != GONE:
                # It counts as waiting, so that the next start sends what changed. Those behind it
                # are not sent before it.
                self._ends = 0.0
                return
            self._counts.update(waiting=-1, failed=1)
        LOG.warning("notice %s to %s is given up: %s", message.type, self._host, _said(posted))

    def _waits(self, message: Message, posted: Posted, tries: int) -> bool:
        """Wait until the next try; return False if there is none."""
        longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries - 1, 20))
        wait = longest * (0.5 + secrets.SystemRandom().random() / 2)
        if tries == 1:
            LOG.warning(
                "notice %s to %s failed and is tried again: %s",
                *(message.type, self._host, _said(posted)),
            )
        with self._changed:
            is_ending = self._ends is not None
            if not is_ending and time.monotonic() + wait < message.until:
                self._changed.wait_for(lambda: self._ends is not None, wait)
                return True
            if self._ends is None or time.monotonic() + wait >= self._ends:
                return False
        time.sleep(wait)
        return True


def _said(posted: Posted) -> str:
    return posted.problem or f"HTTP status {posted.status}"


class Notices:
    """Sends a notice of each change of state.

    The state that was noticed is kept once every notice of it was sent or given up. A run that is
    killed before sends the difference after its next start.
    """

    def __init__(self, state: Path, purpose: Purpose, senders: Sequence[Sender]) -> None:
        """Go on where the last run with this ``--state`` ended."""
        self._state, self._purpose, self._senders = state, purpose, senders
        self._known = self._kept = read_noticed(state)

    def counts(self) -> Counter[str]:
        """Return the same of all receivers together."""
        return sum((sender.counts() for sender in self._senders), Counter[str]())

    def look(self, status: Status, *, watches: bool) -> None:
        """Send what changed since the last look. A run that watches sends nothing.

        When it leads again it sends its first state: it cannot know what the other one sent.
        """
        if watches or Condition.WATCHING in status.conditions:
            self._known = None
        else:
            before, after = self._known, self._known_of(status)
            for notice in notices_of(before, after):
                self._put(notice, before, after, status)
            self._known = after
        self._keep()

    def close(self) -> None:
        """Send what waits, for a bounded time."""
        for sender in self._senders:
            sender.end()
        for sender in self._senders:
            sender.close()
        self._keep()

    def _known_of(self, status: Status) -> Known:
        """Return the state. What was noticed counts until the service was looked at once."""
        if status.looked_at or self._known is None:
            return Known(status.seen, status.applied, status.conditions)
        before = {*self._known.conditions} - {Condition.FAILING}
        now = before | {*status.conditions}
        return replace(self._known, conditions=tuple(each for each in Condition if each in now))

    def _put(self, notice: Notice, before: Known | None, after: Known, status: Status) -> None:
        now = time_in_words(int(time.time()))
        purpose, plan = self._purpose, status.plan
        blocks = plan.blocks if plan is not None else ()
        fields = {
            "type": notice.type,
            "timestamp": now,
            "data": {
                "tree": visible(status.tree or purpose.tree) or None,
                "environment": visible(purpose.environment) or None,
                "service": Place(purpose.service, "", "").address,
                "ref": visible(purpose.ref),
                "commit_seen": after.seen or None,
                "commit_applied": after.applied or None,
                "conditions_before": [*before.conditions] if before is not None else None,
                "conditions": [*after.conditions],
                "codes": sorted({block.code for block in blocks})[:_MOST_CODES],
                "means": notice.means,
                "do": notice.do,
            },
        }
        body = json.dumps(fields).encode()
        until = time.monotonic() + TRIED_SECONDS
        message = Message(f"msg_{secrets.token_hex(16)}", notice.type, body, until)
        for sender in self._senders:
            sender.put(message)

    def _keep(self) -> None:
        """Keep the state that was noticed, if nothing waits to be sent."""
        if self._known == self._kept or self.counts()["waiting"]:
            return
        try:
            write_noticed(self._state, self._known)
        except OSError as failure:
            LOG.warning("cannot keep what was noticed: %s", failure.strerror)
            return
        self._kept = self._known
