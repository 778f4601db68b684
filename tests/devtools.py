"""A page in a real browser, asked through the browser's own tools: it can be clicked on."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from tests.web_page import ANSWER_WITHIN, BROWSERS, FLAGS

# Chromium reads commands from descriptor 3 and answers on 4.
_DESCRIPTORS = 'exec "$@" 3<&"$COMMANDS" 4>&"$ANSWERS"'


class Page:
    """A page that is open; each expression runs as if its reader had just clicked."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands, self._answers = commands, answers
        self._unread = b""
        self._count, self._session = 0, ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")

    def open(self, address: str) -> None:
        """Open an address in place of what is there, and wait until it is loaded."""
        self._call("Page.navigate", url=address)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def send_with_all(self, headers: dict[str, str]) -> None:
        """Send headers with every request from now on, as after a sign-in."""
        self._call("Network.enable")
        self._call("Network.setExtraHTTPHeaders", headers=headers)

    def run(self, expression: str) -> Any:
        """Return the value of an expression on the page."""
        result = self._call(
            "Runtime.evaluate", expression=expression, userGesture=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Show the page in a window of that size, in CSS pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=scheme)
        self._call("Emulation.setScrollbarsHidden", hidden=True)
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    def picture(self, width: int, height: int, *, dark: bool = False) -> bytes:
        """Return a PNG of the top of the page in a window of that size, in CSS pixels."""
        self.resize(width, height, dark=dark)
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **fields: Any) -> dict[str, Any]:
        self._count += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._count, "method": method, "params": fields, **session}
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while (answer := self._next()).get("id") != self._count:
            pass
        assert "result" in answer, answer
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], ANSWER_WITHIN)
            assert ready, "the browser does not answer"
            piece = os.read(self._answers.fileno(), 1 << 16)
            assert piece, "the browser has ended"
            self._unread += piece
        content, _, self._unread = self._unread.partition(b"\0")
        told = dict(json.loads(content))
        assert told.get("method") != "Page.javascriptDialogOpening", told
        return told


@contextmanager
def open_page(address: str = "about:blank", *flags: str) -> Iterator[Page]:
    """Open an address in a browser that knows nothing and ends with the block.

    ``flags`` are more options of the browser.
    """
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert program is not None, f"install a browser: one of {', '.join(BROWSERS)}"
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["bash", "-c", _DESCRIPTORS, "bash", program, *FLAGS, *flags,
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            env={**os.environ, "HOME": profile, "COMMANDS": str(theirs_in),
                 "ANSWERS": str(theirs_out)},
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            with os.fdopen(ours_out, "wb") as commands, os.fdopen(ours_in, "rb") as answers:
                page = Page(commands, answers)
                page.open(address)
                yield page
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
