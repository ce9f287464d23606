"""Comparison of outcomes, location of differences, and verdicts."""
