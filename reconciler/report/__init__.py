"""What people and machines read: the same plan, the same findings, in several forms."""
