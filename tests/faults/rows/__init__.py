"""The rows of the catalogue, a module for each place where faults come from."""
