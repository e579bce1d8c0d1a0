"""PRISM."""
