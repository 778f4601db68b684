"""Short tokens for signed tokens: whose signatures are checked, and how their keys are had."""
