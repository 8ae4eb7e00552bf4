"""Scripts that are run from the repository."""
