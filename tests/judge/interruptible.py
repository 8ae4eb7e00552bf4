"""A process that asks questions and may be interrupted: ``python -m tests.judge.interruptible URL COUNT``.

It writes a line an event: ``kept N`` for each outcome, ``interrupted`` when an orderly stop begins, ``raised NAME`` at the end.
"""

from __future__ import annotations

import sys

from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge
from dsbeval.judge.parallel import ask_all
from tests.judge.support import question


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(url: str, count: int) -> None:
    judge = make_judge("openai:judge-1", url)
    assert isinstance(judge, Judge)
    asked = [question(said=f"What about step {k}?") for k in range(count)]
    try:
        ask_all(judge, asked, lambda index, outcome: say(f"kept {index}"), on_interrupt=lambda: say("interrupted"))
    except KeyboardInterrupt as error:
        say(f"raised {type(error).__name__}")
    judge.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
