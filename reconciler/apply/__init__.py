"""Stage 4, act: carry out a plan, lose nothing, and tell what came of it."""
