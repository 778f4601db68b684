"""A stand-in of a ZITADEL, on the messages of a real one."""
