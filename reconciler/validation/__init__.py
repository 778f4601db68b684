"""Stage 2, judge: manifests become desired state, with everything that is wrong or dangerous."""
