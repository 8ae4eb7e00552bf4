"""An agent in a subprocess with its own Python interpreter and working directory, under the same contract.

:mod:`~dsbeval.host.agent` is the harness's side, :mod:`~dsbeval.host.serve` the other, :mod:`~dsbeval.host.wire` what they say
to each other.
"""
