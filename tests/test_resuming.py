"""Which run may go on in a folder, and what the folder's fingerprint then says."""

from __future__ import annotations

from typing import Any

import pytest

from dsbeval.resuming import joined, unlike

FAR = {"agent": "echo", "args": {"gain": 0.5}}


def print_of(*partners: str, seed: int = 0, **dyadic: Any) -> dict[str, Any]:
    """Return a fingerprint of conversations with ``partners``."""
    told = {"window_s": 60, "partner_args": {}, **dyadic}
    return {"agent": "mine", "seed": seed, "selection": {"levels": [], "partners": list(partners)}, "dyadic": told}


def without_dyads(seed: int = 0) -> dict[str, Any]:
    return {"agent": "mine", "seed": seed, "selection": {"levels": ["L0"]}}


WEIGHTS = {"name": "far.pt", "sha256": "1"}


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (without_dyads(), print_of("silent")),
        (print_of("silent"), without_dyads()),
        (print_of("silent"), print_of("silent", "far", partners={"far": FAR}, partner_checkpoints={"far": WEIGHTS})),
        (print_of("silent"), print_of("far", partners={"far": FAR})),
        (print_of("far", partners={"far": FAR}), print_of("silent")),
        (print_of("far", partners={"far": FAR}), print_of("far", "other", partners={"far": FAR, "other": FAR})),
    ],
)
def test_a_partner_that_was_not_there_may_come(known: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert unlike(known, wanted) == []
    both = joined(known, wanted)
    assert unlike(both, known) == unlike(both, wanted) == []
    assert unlike(joined(both, known), wanted) == []


def test_the_folder_keeps_what_all_its_partners_were() -> None:
    one = print_of("silent", "far", partners={"far": FAR}, partner_checkpoints={"far": WEIGHTS})
    both = joined(one, print_of("other", partners={"other": FAR}))
    assert both["selection"] == {"levels": [], "partners": ["silent", "far", "other"]}
    assert both["dyadic"]["partners"] == {"far": FAR, "other": FAR}
    assert both["dyadic"]["partner_checkpoints"] == {"far": WEIGHTS}
    assert joined(both, without_dyads())["dyadic"] == both["dyadic"]
    assert "partners" not in joined(print_of("a"), print_of("b"))["dyadic"]
    assert joined(without_dyads(), without_dyads()) == without_dyads()


@pytest.mark.parametrize(
    ("known", "wanted", "names"),
    [
        (without_dyads(), print_of("silent", seed=1), ["seed"]),
        (print_of("silent"), print_of("silent", window_s=30), ["dyadic"]),
        (print_of("silent"), print_of("other", partner_args={"gain": 1}), ["dyadic"]),
        (print_of("far"), print_of("far", partners={"far": FAR}), ["partner far"]),
        (print_of("far", partners={"far": FAR}), print_of("silent", "far"), ["partner far"]),
        (print_of("far", partners={"far": FAR}), print_of("far", partners={"far": {**FAR, "args": {}}}), ["partner far"]),
        (
            print_of("far", "other", partner_checkpoints={"far": WEIGHTS}),
            print_of("far", "other", partner_checkpoints={"far": {**WEIGHTS, "sha256": "2"}, "other": WEIGHTS}),
            ["partner far", "partner other"],
        ),
    ],
)  # fmt: skip
def test_a_partner_that_was_there_and_differs_may_not(
    known: dict[str, Any], wanted: dict[str, Any], names: list[str]
) -> None:
    assert unlike(known, wanted) == names


def test_a_partner_of_the_run_before_last_is_still_known() -> None:
    folder = joined(print_of("far", partners={"far": FAR}), print_of("silent"))
    assert unlike(folder, print_of("far")) == ["partner far"]
