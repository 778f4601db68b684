"""The nouns both sides share: kinds, their fields, and the rules about them. Pure."""
