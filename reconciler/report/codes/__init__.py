"""The codes of findings, and what each one means."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One code, as ``reconciler explain`` and the page of codes show it.

    Attributes:
        name: The code, such as ``YAML-DUPLICATE-KEY``. It never changes.
        title: What was found, as a short phrase.
        meaning: What it means and why it matters, in whole sentences.
        remedy: What to do, in whole sentences.
    """

    name: str
    title: str
    meaning: str
    remedy: str
