"""The loop without a person: what is known becomes the next step. Nothing here reads or writes.

Times are seconds of a clock that never jumps, so that the wall clock may.
"""
