"""Keys of roles: those that can be part of an address, and those that a proxy could rewrite."""

from __future__ import annotations

PLAIN_KEYS = (
    "admin", "Admin", "a/b", "a%2Fb", "100%", "a=b", "a b", "Käufer", ".hidden", "...", "a..b",
    "orders./x", "_search", "a?b#c", ";x", "?x", "#x", "a;b", "a\\b", "\n", "ü" * 200, "日本",
)  # fmt: skip
REWRITTEN_KEYS = (
    ".", "..", "../..", "../../2", "x/..", "./x", "a/./b", "%2e%2e", "%2E", "%252e%252E/2",
    "..%2f..%2f2", "..\\..\\2", "..%5C", "/", "//", "a//b", "/x", "x/", "\\x", "a/\\b", "%2Fx",
)  # fmt: skip
