"""The event stream of a run, and its views: terminal, Markdown, JSON, JUnit."""
