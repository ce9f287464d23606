"""A run: cases into requests, requests to subjects, answers to verdicts, verdicts to events."""
