"""Scheduling of calls: turns of callers, batches, and the threads that carry them out."""
