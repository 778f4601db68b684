"""The table of all codes that this program prints, by section and by name.

Each has one entry here, from which `reconciler explain` and docs/codes.md are written. Risks and
compliance problems have their sentences where they are decided; here they only join the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.plan.risk import MEANINGS
from reconciler.report.codes import applying, judging, planning, reading, values
from reconciler.report.codes.code import Code
from reconciler.resources.compliance import MESSAGES

SECTIONS: Mapping[str, tuple[Code, ...]] = {
    "Environment": reading.ENVIRONMENT,
    "Files": reading.FILES,
    "YAML": reading.YAML,
    "Files of scripts": reading.SCRIPTS,
    "Manifests": judging.MANIFESTS,
    "Fields": judging.SCHEMA,
    "Names": values.NAMES,
    "URIs": values.URIS,
    "Applications, identity providers and actions": values.SETTINGS,
    "References": judging.REFERENCES,
    "Plans": planning.PLANS,
    "Guards": planning.GUARDS,
    "Drift": planning.DRIFT,
    "Apply": applying.APPLIES,
    "Client secrets": applying.SECRETS,
    "Interrupted runs": applying.RECOVERY,
    "Servers": applying.SERVERS,
}

CODES: Mapping[str, Code] = {code.name: code for codes in SECTIONS.values() for code in codes}

RISKS: Mapping[str, str] = MEANINGS
"""Classes of risks and what each means, most dangerous first."""

PROBLEMS: Mapping[str, str] = MESSAGES
"""Keys under which the service reports problems of an application, and what each means."""
