"""Codes of what is judged without a service: shape, fields and references."""

from __future__ import annotations

from reconciler.report.codes.code import Code

MANIFESTS = (
    Code(
        "MANIFEST-API-VERSION",
        "a missing or unknown apiVersion",
        "apiVersion says which format the manifest has. There is one: reconciler/v1.",
        "Write apiVersion: reconciler/v1.",
    ),
    Code(
        "MANIFEST-KIND",
        "a missing or unknown kind",
        "kind says what the manifest declares, and which fields it may have.",
        "Write one of the kinds that the message lists. `reconciler explain KIND` shows the "
        "fields.",
    ),
    Code(
        "MANIFEST-SHAPE",
        "a document that is not a manifest",
        "A manifest is a mapping with apiVersion, kind, metadata and, for most kinds, spec.",
        "Write these fields, or move the document to a file that is not read.",
    ),
)

SCHEMA = (
    Code(
        "SCHEMA-DURATION",
        "an invalid duration",
        "Durations are decimal seconds followed by s, such as 5s or 1.5s. Nothing is converted, "
        "so that the manifest shows what the service gets.",
        "Write what the message says. clockSkew is at most 5s, the timeout of an action at most "
        "20s.",
    ),
    Code(
        "SCHEMA-EMPTY",
        "an empty value",
        "The field must have a value.",
        "Write a value.",
    ),
    Code(
        "SCHEMA-ID",
        "an invalid id",
        "metadata.id is the id of an object of the service: letters, digits, - and _, at most 200.",
        "Copy the id from `reconciler outputs`, a plan or the console of the service; or leave "
        "it out, and the object is found by its name.",
    ),
    Code(
        "SCHEMA-INTERNAL",
        "a manifest that is refused without a reason",
        "One check refuses the manifest and another cannot say why. This is a mistake in the "
        "reconciler.",
        "Report it with the manifest.",
    ),
    Code(
        "SCHEMA-MISSING-FIELD",
        "a required field is missing",
        "The kind cannot be declared without this field.",
        "Write the field. `reconciler explain KIND` shows all fields and which are required.",
    ),
    Code(
        "SCHEMA-NUL",
        "a NUL character",
        "No service takes a text with the character U+0000.",
        "Remove it.",
    ),
    Code(
        "SCHEMA-SCRIPT",
        "an action without one script",
        "An action has either script, the JavaScript itself, or scriptFile, the path of its file.",
        "Write exactly one of the two.",
    ),
    Code(
        "SCHEMA-TOO-LONG",
        "a text that is too long",
        "The service has a limit for this field, counted in characters.",
        "Shorten the text.",
    ),
    Code(
        "SCHEMA-TYPE",
        "a value of the wrong type",
        "The field takes another type: a list instead of a text, or a text instead of a number.",
        "Write the type that the message names. Text that looks like a number goes in quotes.",
    ),
    Code(
        "SCHEMA-UNKNOWN-FIELD",
        "an unknown field",
        "The kind does not have this field. It would have no effect, so it is an error and not "
        "ignored: most often the name is misspelt.",
        "Correct the name, move the field to where it belongs, or remove it.",
    ),
    Code(
        "SCHEMA-VALUE",
        "a value that the field does not take",
        "The field has a list of possible values, and this is not one of them.",
        "Write one of the values in the message. `reconciler explain KIND.FIELD` shows them, too.",
    ),
)

REFERENCES = (
    Code(
        "REF-DUPLICATE",
        "a resource that is declared twice",
        "Two manifests have the same kind and names. Names are compared ignoring case.",
        "Remove or rename one of the two.",
    ),
    Code(
        "REF-DUPLICATE-ID",
        "an id that is pinned twice",
        "Two manifests claim the same object of the service with metadata.id.",
        "Correct one of the two ids.",
    ),
    Code(
        "REF-NOT-HELD",
        "an organization or project that does not exist",
        "A manifest names an owner that no manifest declares and that the service does not hold.",
        "Correct the name, or add a manifest for the owner.",
    ),
    Code(
        "REF-UNDECLARED",
        "an organization or project that no manifest declares",
        "The service may hold it, which only a plan can see.",
        "Correct the name if it is misspelt. Otherwise nothing needs to be done if the service "
        "holds it; if not, add a manifest for it.",
    ),
)
