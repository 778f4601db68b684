"""Certificates that the service's own is checked against: those of the machine.

``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name others, as for every program that uses OpenSSL.
"""

from __future__ import annotations

import ssl

from reconciler.errors import LocalFileError
from reconciler.service_client.endpoint import Endpoint


def trust_for(endpoint: Endpoint) -> ssl.SSLContext:
    """Return what certificates are checked against: those of the machine, or none at all.

    An address without TLS needs none, and reading those of a machine takes 0.1 s of processor.

    Raises:
        LocalFileError: SSLKEYLOGFILE names a file that cannot be written.
    """
    if not endpoint.origin.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # whatever had TLS all the same is refused
    try:
        return ssl.create_default_context()
    except OSError as failure:
        if failure.filename is None:  # OpenSSL reads the certificates, and names no file
            raise
        raise LocalFileError(
            f"the file in SSLKEYLOGFILE cannot be written: {failure.strerror}",
            remedy="Unset SSLKEYLOGFILE, or name a file that may be written.",
        ) from failure
