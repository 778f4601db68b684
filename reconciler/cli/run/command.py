"""``reconciler run``: its settings, its signals, and the pace of its rounds."""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any, Self

from reconciler.cli.clients import sink_for
from reconciler.cli.connection import (
    Connection,
    require_extra,
    require_seal_key,
    with_absolute_path,
)
from reconciler.cli.options import command, paths_argument
from reconciler.cli.process import ExitCode
from reconciler.cli.run.commits import Commits, checked_path
from reconciler.cli.run.controller import OURS_SECONDS, Controller
from reconciler.cli.run.form import RunForm
from reconciler.cli.run.lineage import Lineage
from reconciler.cli.run.memory import Purpose
from reconciler.cli.run.notify import Notices
from reconciler.cli.run.status import COMMIT
from reconciler.cli.run.writing import Writer
from reconciler.cli.serve import address_to_listen
from reconciler.cli.signals import handle_with
from reconciler.continuous.decision import Mode
from reconciler.continuous.pace import TRIGGER_SECONDS
from reconciler.errors import InterruptedRunError, LockHeldError, UsageError, writing
from reconciler.git.address import checked_ref, parse_address
from reconciler.git.mirror import Mirror
from reconciler.plan.guards import Allowances
from reconciler.report.visible import visible
from reconciler.resources.files import make_folder, open_locked
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.secret import Secret

LOG = logging.getLogger("reconciler.run")
ZITADEL_SECONDS = 300
_OTHER_STATE = "Name a folder with --state that this user may write to."


def _run_form(given: Mapping[str, Any]) -> RunForm:
    values = _absolute({name: given[name] for name in RunForm._fields})
    values["mode"] = Mode(values["mode"])
    values["paths"] = tuple(checked_path("PATHS", path) for path in values["paths"])
    config = values["config_file"]
    values["config_file"] = config and checked_path("--config", config)
    return RunForm(**values)


@command(
    "run",
    example="--repository https://git.example.com/identity.git --service https://id.example.com "
    "--env staging --mode apply --state /var/lib/reconciler",
    form=_run_form,
)
@paths_argument
def run_command(
    connection: Connection, secrets_to: str | None, allowed: Allowances, form: RunForm
) -> int:
    """Follow a branch: watch the service, undo changes made by hand, apply new commits.

    PATHS are folders and files of the repository, from its root; the default is the folder
    manifests. SIGTERM ends it once what is being written is done; SIGHUP starts
    a round and reads the certificate of the page again.
    """
    require_extra("run", "serve")
    from reconciler.service.transport.logs import set_up_logs

    _check_options(form)
    address, ref, access = parse_address(form.repository), checked_ref(form.ref), form.access
    access.check(address)
    connection = _absolute_connection(connection)
    require_seal_key(connection)
    state = form.state_folder
    with writing(f"make the folder {state}", _OTHER_STATE):
        make_folder(state)
    connection = replace(connection, state=state, environment=form.run_environment)
    sink = sink_for(connection, _absolute_sink(secrets_to))
    purpose = Purpose(
        address.text, ref, connection.service, form.run_environment, form.run_tree or ""
    )
    set_up_logs(form.log_format)
    with _Signals() as signals, _alone(state), _notices(purpose, form) as notices:
        os.chdir(state)  # nothing is looked for where the run was started
        mirror = Mirror(state, address, access, os.environ.get("PATH", os.defpath), signals.stops)
        mirror.check()
        with closing(Commits(mirror, purpose, form)) as commits:
            lineage = Lineage(purpose, form, mirror, commits)
            writer = Writer(connection, sink, allowed, signals.stops, form.require_secrets)
            made = Controller(purpose, form, mirror, commits, lineage, writer, notices)
            with closing(made) as controller:
                return _rounds(controller, signals, form)


def _rounds(controller: Controller, signals: _Signals, form: RunForm) -> int:
    """Make one round, or round after round; return the exit code."""
    try:
        return controller.round() if form.once else _follow(controller, signals, form)
    except InterruptedRunError as stopped:
        LOG.info("stopped by signal %d", stopped.signal_number)
        return ExitCode.SIGNAL + stopped.signal_number


def _absolute_connection(connection: Connection) -> Connection:
    service = with_absolute_path(connection.service)
    return Connection(**_absolute({**asdict(connection), "service": service}))


def _absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with absolute paths: a run does not work where it was started."""
    files = {name: each.absolute() for name, each in values.items() if isinstance(each, Path)}
    return {**values, **files}


def _absolute_sink(address: str | None) -> str | None:
    """Return the address of a sink whose folder, if it has one, is absolute."""
    kind, _, path = (address or "").partition(":")
    return f"{kind}:{Path(path).absolute()}" if kind in {"file", "age"} and path else address


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Be the only run that uses a state.

    Raises:
        LockHeldError: another one uses it.
        LocalFileError: the folder cannot be written to.
    """
    path = state / "run.lock"
    with writing(f"make {path}", _OTHER_STATE):
        try:
            descriptor = open_locked(path, os.O_RDWR | os.O_CREAT)
        except BlockingIOError:
            raise LockHeldError(
                f"another run uses {state}", remedy="Give each run a --state of its own."
            ) from None
    try:
        yield
    finally:
        os.close(descriptor)


class _Signals:
    """The signals of a run, and what else may end its waiting: a trigger from another thread.

    The first signal lets what is being written come to its end; the second ends the run at once.
    """

    def __init__(self) -> None:
        self._number = 0
        self._hung_up = False
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        self._before = handle_with(self._hear)
        # Python writes to the pipe when a signal comes. A handler may run only after the waiting:
        # a signal that comes just before the system waits does not interrupt it.
        self._woken = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def stops(self) -> int:
        """Return the signal that ends the run, or 0."""
        return self._number

    def take_hangup(self) -> bool:
        """Return whether a hangup came since the last call."""
        hung_up, self._hung_up = self._hung_up, False
        return hung_up

    def wake(self) -> None:
        """End the waiting. A pipe does it: a lock could be held by what a signal interrupts."""
        with suppress(OSError):  # it is full, so that the waiting ends anyway
            os.write(self._write, b".")

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long; return whether something ended it earlier."""
        if not select.select([self._read], [], [], max(0.0, seconds))[0]:
            return False
        os.read(self._read, 4096)
        return True

    def wait_for_round(self, begun: float, interval: float) -> None:
        """Wait until the next round: an interval after the last, or a few seconds if asked for."""
        is_asked = False
        while not self._number:
            after = min(TRIGGER_SECONDS, interval) if is_asked else interval
            left = begun + after - time.monotonic()
            if left <= 0:
                return
            is_asked = self.wait(left) or is_asked

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._hung_up = True
        else:
            if self._number:
                raise InterruptedRunError(number)
            self._number = number


def _follow(controller: Controller, signals: _Signals, form: RunForm) -> int:
    """Make round after round until a signal ends the run; answer requests meanwhile."""
    from reconciler.cli.run.listening import Pages, answering
    from reconciler.cli.run.page import StatusPage
    from reconciler.service.transport.connections import Certificate, ListenError, address_of, bind

    place = address_to_listen("--listen", form.listen)
    token, page_token = _token_in(form.trigger_token_file), _token_in(form.page_token_file)
    is_loopback = is_loopback_host(place[0])
    try:
        tls = Certificate(form.tls_cert, form.tls_key) if form.tls_cert and form.tls_key else None
        listening = bind(*place)
    except ListenError as failure:
        raise UsageError(failure.problem, remedy=failure.remedy) from failure
    if token is not None and not (is_loopback or tls or form.behind_tls_proxy):
        LOG.warning(
            "the token of the trigger is not encrypted on %s: put TLS in front", form.listen
        )
    page = StatusPage(form.commit_url)
    pages = Pages(controller.status_now, signals.wake, token, is_loopback, page_token, page)
    with answering(pages, listening, tls):
        LOG.info("listening on %s", address_of(listening, is_tls=tls is not None))
        while not signals.stops():
            begun = time.monotonic()
            if signals.take_hangup() and tls is not None:
                tls.read_again(LOG)  # not in the handler, which may interrupt a line of the log
            controller.round()
            interval = form.interval or (OURS_SECONDS if controller.has_feed else ZITADEL_SECONDS)
            signals.wait_for_round(begun, interval)
    LOG.info("stopped by signal %d", signals.stops())
    return ExitCode.SIGNAL + signals.stops()


@contextmanager
def _notices(purpose: Purpose, form: RunForm) -> Iterator[Notices | None]:
    """Send notices as long as the block runs, and what waits at its end.

    Raises:
        ReconcilerError: an address or the key cannot be used.
    """
    if form.notify_key_file is None:
        yield None
        return
    from reconciler.cli.run.notify import Sender, key_of
    from reconciler.service_client.credentials import read_private
    from reconciler.service_client.endpoint import parse_hook, parse_proxy
    from reconciler.service_client.http_wire import Poster

    key = key_of(read_private(form.notify_key_file), str(form.notify_key_file))
    hooks = [parse_hook(each) for each in form.notify]
    proxy = form.access.proxy
    posters = [Poster(hook, parse_proxy(proxy, hook.endpoint)) for hook in hooks]
    senders = [
        Sender(poster, hook.endpoint.host, key) for poster, hook in zip(posters, hooks, strict=True)
    ]
    with closing(Notices(form.state_folder, purpose, senders)) as notices:
        yield notices


def _check_options(form: RunForm) -> None:
    """Check that the options fit together, and that no unintended reader can open the page.

    Raises:
        UsageError: they do not, or the token of the page would cross a network in plain text.
    """
    if (form.tls_cert is None) != (form.tls_key is None):
        raise UsageError(
            "a certificate and its key go together", remedy="Give both --tls-cert and --tls-key."
        )
    host, _ = address_to_listen("--listen", form.listen)
    is_encrypted = is_loopback_host(host) or form.tls_cert is not None or form.behind_tls_proxy
    if form.page_token_file is not None and not is_encrypted:
        raise UsageError(
            f"the token of the page would not be encrypted on {form.listen}",
            remedy="Give --tls-cert and --tls-key, or say --behind-tls-proxy if a proxy in front "
            "of it speaks TLS and nothing else reaches this address.",
        )
    url = form.commit_url
    if url and not (url.startswith(("https://", "http://")) and COMMIT in url):
        raise UsageError(
            f"--commit-url {visible(url)} is not the address of a commit",
            remedy=f"Write the address with {COMMIT} in the place of its digits, such as "
            f"https://git.example.com/identity/commit/{COMMIT}.",
        )
    if bool(form.notify) != (form.notify_key_file is not None):
        raise UsageError(
            "notices need an address and a key",
            remedy="Give both --notify and --notify-key-file.",
        )


def _token_in(file: Path | None) -> Secret | None:
    if file is None:
        return None
    from reconciler.service_client.credentials import read_private, token_of

    return token_of(read_private(file), str(file))
