"""Codes of what happens while a plan is applied: writing, secrets and recovery."""

from __future__ import annotations

from reconciler.report.codes.code import Code

APPLIES = (
    Code(
        "APPLY-NOT-OBSERVED",
        "what remains is not known",
        "After writing, the service could not be read again. What was written is reported.",
        "Run `reconciler plan`: it shows what remains.",
    ),
    Code(
        "APPLY-NOT-RECORDED",
        "the journal could not be written to the end",
        "What was done is done. The next apply looks at it again.",
        "Make the folder .reconciler writable, with room on the disk, and run apply again.",
    ),
    Code(
        "APPLY-REMAINING",
        "the service holds something else than was sent",
        "Some services cannot empty a list, or keep a default of their own.",
        "Declare what the service holds, or change it on the service.",
    ),
    Code(
        "RUN-FAILED",
        "the run ended early",
        "The last record of --format jsonl: the error that ended the run.",
        "Do what the record says.",
    ),
)

SECRETS = (
    Code(
        "SECRET-DELIVERED-LATE",
        "a secret was delivered after the lock was lost",
        "The run lost its lock while it delivered a client secret. Another run may have replaced "
        "the secret in the meantime, and the sink then holds the older one.",
        "Look at `reconciler history REF`. If the secret was replaced, deliver the present one "
        "again, or make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-KEPT-BESIDE",
        "a file of another application was left alone",
        "The place for a secret held a file that is not of this application, so the secret went "
        "beside it. Two services that share a folder lead to this.",
        "Give each service a folder of its own, or remove the file that is no longer needed.",
    ),
    Code(
        "SECRET-LOST",
        "the service no longer keeps a secret that was never delivered",
        "A client secret is kept until its delivery is acknowledged, for a limited time.",
        "If nothing uses the secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-MOVED",
        "the secret of a renamed application has a new place",
        "The secret is the same; its file has the new name.",
        "Change what reads the old file.",
    ),
    Code(
        "SECRET-NO-SINK",
        "client secrets have no destination",
        "The plan creates client secrets, or some are owed, and a secret is answered only once. "
        "Apply refuses to begin.",
        "Choose a destination with --secrets-to; see docs/secrets.md.",
    ),
    Code(
        "SECRET-NOT-ACKNOWLEDGED",
        "the service was not told of a delivery",
        "The secrets are in the sink and still count as owed.",
        "Run apply again: it delivers the same secrets once more and tells the service.",
    ),
    Code(
        "SECRET-NOT-FOLLOWED",
        "the sink still has the old name of an application",
        "An application was renamed or deleted, and its file in the sink could not be changed.",
        "Run apply again: it tries once more.",
    ),
    Code(
        "SECRET-NOT-IN-SINK",
        "the sink lacks the secret of an application",
        "The application signs in with a secret that this sink does not hold.",
        "If nothing uses the secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-REMOVED",
        "the secret of a deleted application was removed",
        "The application is deleted, and its file in the sink with it.",
        "Nothing needs to be done.",
    ),
    Code(
        "SECRET-SINK-CANNOT-TELL",
        "the sink cannot say which secrets it holds",
        "--require-secrets asks for secrets, and a command as sink can only take them.",
        "Use a folder as sink, or leave --require-secrets out.",
    ),
)

SERVERS = (
    Code(
        "SERVE-PLAIN",
        "a server that others can reach without TLS",
        "The server listens on an address that is not loopback, and has no certificate. Tokens "
        "and client secrets cross the network in plain text.",
        "Give --tls-cert and --tls-key. If a proxy in front of the server speaks TLS and nothing "
        "else reaches the address, say --behind-proxy.",
    ),
)

RECOVERY = (
    Code(
        "HEAL-NAME-TAKEN",
        "another run created what an interrupted run was about to create",
        "The object exists, and it is not certain that this run made it. Its secret is left as "
        "it is.",
        "If nothing uses its secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "HEAL-SECRET-DELIVERED",
        "the secret of an interrupted run was delivered",
        "A run was killed after the service made a client secret. It is now in the sink.",
        "Nothing needs to be done.",
    ),
    Code(
        "HEAL-SECRET-OWED",
        "the secret of an interrupted run is not delivered yet",
        "A run was killed after the service made a client secret, and there is no destination.",
        "Choose one with --secrets-to and run the command again.",
    ),
)
