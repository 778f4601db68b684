"""Stage 3, decide: desired state and observed state in, plan out. Pure.

A tree is one body of manifests that is applied together. Held is what the service has; an object
is in step if it is held exactly as declared.
"""
