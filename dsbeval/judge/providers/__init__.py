"""Judges that are language models, asked through the official SDK of their service."""
