"""Errors of a server's settings."""

from __future__ import annotations


class ListenError(Exception):
    """A server that cannot listen as it was told: what is wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
