"""Findings that the forms for other tools are tried with."""

from __future__ import annotations

from reconciler.diagnostics import SourceLocation, error, warning

PLACE = SourceLocation("manifests/a b,c:d.yaml", 14, 7)
WRONG = error("OIDC-ORIGIN", "origin has a path", "Write `https://a.test`. 100 %.", PLACE)
ODD = warning("NAME-ODD", "name is odd", "Choose another.", SourceLocation("manifests/x.yaml"))
NOWHERE = warning("TREE-ODD", "tree is odd", "Look at it.")
FINDINGS = [WRONG, ODD, NOWHERE]
