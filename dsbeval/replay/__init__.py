"""Replaying recordings that somebody made already: finding them, proving what they are, and handing them on to be scored."""
