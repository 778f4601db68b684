"""What the rules of kinds are made of: the form of a row, tests of values, judging of texts."""
