"""Roles of projects."""
