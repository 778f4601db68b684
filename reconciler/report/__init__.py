"""Reports for people and machines: the same plan, the same findings, in several forms."""
