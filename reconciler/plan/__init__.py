"""Stage 3, decide: desired state and observed state in, plan out. Pure."""
