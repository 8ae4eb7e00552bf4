"""Authoring: a language model writes what one user says, local gates and a critic check it, the pack gains an instance.

The ladder is the published one: temperature 0.7 and 0.1 more a retry, 1500 output tokens, JSON, up to four tries of
which the last two go to a fallback model, a critic at temperature 0. The prompts are our own
(:mod:`dsbeval.speech.author.prompts`).

Source: DSB-IFEval (arXiv 2609.03423), generation of the user side.
"""

from __future__ import annotations

from dsbeval.errors import DsbevalError


class AuthorError(DsbevalError):
    """An instance cannot be authored: a key, an SDK or a service is missing, or every try was rejected."""
