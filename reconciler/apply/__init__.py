"""Stage 4, act: carry out a plan, lose nothing, and report the result.

A sink is a place that one-time client secrets are delivered to. A secret is owed from when the
service made it until its delivery is acknowledged.
"""
