"""Files with scripts, opened beneath the folder of the manifests and nowhere else.

The path is taken apart as text and walked folder by folder from an open handle of the root,
without following a link: there is no moment between looking and opening. What is read here is
what is judged, shown and sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from reconciler.manifests.opening import OpeningError, Reason, open_folder, read_file
from reconciler.manifests.source_file import Root
from reconciler.resources.kinds import MAX_SCRIPT

MAX_SCRIPT_FILE = 64 * 1024  # 2,000 characters are 8,000 bytes at most; the rest is told apart

REMEDIES = {
    Reason.SYMLINK: "Links are not followed: name the file itself, or put it here.",
    Reason.MISSING: "Check the path; it starts from the folder of the manifest.",
    Reason.NOT_REGULAR: "Name a regular file; folders, pipes, sockets and devices are not read.",
    Reason.NOT_A_FOLDER: "Check the path; a part of it before the last is not a folder.",
    Reason.TOO_DEEP: "Keep scripts in fewer levels of folders.",
    Reason.TOO_LARGE: f"A script has at most {MAX_SCRIPT} characters.",
    Reason.UNREADABLE: "Give the user who runs this command the right to read it.",
}


class ScriptFileError(Exception):
    """A script file cannot be used: code, summary and remedy of the finding."""

    def __init__(self, code: str, summary: str, remedy: str) -> None:
        super().__init__(summary)
        self.words = (code, summary, remedy)


def parts_beneath(folder: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the way from the root to a path that is written in a manifest of a folder.

    Raises:
        ScriptFileError: the path leads out of the root, or nowhere.
    """
    if path.startswith("/"):
        raise ScriptFileError(
            "SCRIPT-ABSOLUTE",
            "an absolute path",
            "Write the path from the folder of the manifest, such as scripts/greet.js.",
        )
    parts = list(folder)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise ScriptFileError(
                    "SCRIPT-OUTSIDE",
                    "a path that leads out of the folder of the manifests",
                    "Keep scripts beneath the folder that is given on the command line.",
                )
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not parts:
        raise _refusal(OpeningError(Reason.NOT_REGULAR))
    return tuple(parts)


def read_script(root: Root, parts: Sequence[str]) -> str:
    """Return the text of a script file, unchanged.

    Raises:
        ScriptFileError: it cannot be read, or is not UTF-8.
    """
    try:
        with ExitStack() as handles:
            folder = handles.enter_context(open_folder(root.path, follow=True))
            for part in parts[:-1]:
                folder = handles.enter_context(open_folder(part, folder))
            data = read_file(parts[-1], folder, MAX_SCRIPT_FILE)
    except OpeningError as fault:
        raise _refusal(fault) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise ScriptFileError(
            "SCRIPT-ENCODING",
            f"the script is not UTF-8 (byte 0x{data[fault.start]:02x} in its line {line})",
            "Save the script as UTF-8.",
        ) from None


def _refusal(fault: OpeningError) -> ScriptFileError:
    code = f"SCRIPT-{fault.reason.name.replace('_', '-')}"
    return ScriptFileError(code, f"the script file {fault}", REMEDIES[fault.reason])
