"""The matrix: cases by subjects, a view of one or several event streams."""
