"""Do two judges say the same, and does one say the same twice? Exact match, Cohen's kappa, Spearman's rho, confusion.

Conventions
-----------
* Two judges are compared on what both have judged from the same prompt; what only one has, or what they were asked
  differently, is counted apart.
* Exact match: share of equal labels. Cohen's kappa: agreement beyond what the two distributions of labels would give by chance;
  None where both give one and the same label only, since chance then agrees fully. Spearman's rho: over labels that have an
  order, or over numbers, ties at their mean rank; None where one side does not vary or there are fewer than three pairs.
* Self-agreement: the same judge asked again. Mean over all pairs of repeats of a case.

Sources: J. Cohen, A coefficient of agreement for nominal scales, 1960; DyaFDB (arXiv 2610.08125), agreement of judges.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsbeval.judge.contract import Kind
from dsbeval.judge.dyadic import ADHERENCE, NONE, YES_NO
from dsbeval.judge.pas import CATEGORIES, PAS_PASS
from dsbeval.results import Row

Label = str
Pair = tuple[Label, Label]


@dataclass(frozen=True, slots=True)
class Field:
    """Something that is compared: how it is read from an answer, and the order of its labels where they have one."""

    name: str
    kind: Kind
    read: Callable[[Mapping[str, Any]], Label | None]
    order: tuple[str, ...] | None = None
    numeric: bool = False


def _plain(name: str) -> Callable[[Mapping[str, Any]], Label | None]:
    def read(answer: Mapping[str, Any]) -> Label | None:
        value = answer[name]
        return NONE if value is None else f"{value:.10g}" if isinstance(value, (int, float)) else str(value)

    return read


def _category(answer: Mapping[str, Any]) -> Label | None:
    value = str(answer["l4_category"])
    return value if value in CATEGORIES else None  # n/a: the case has no conflict


_FIT = tuple(str(k) for k in range(6))

FIELDS = (
    Field("persona", Kind.PAS, lambda a: "passed" if a["pas"] >= PAS_PASS else "failed", ("failed", "passed")),
    Field("pas", Kind.PAS, _plain("pas"), numeric=True),
    Field("register_fit", Kind.PAS, _plain("register_fit"), _FIT),
    Field("content_fit", Kind.PAS, _plain("content_fit"), _FIT),
    Field("l4_category", Kind.PAS, _category),
    Field("role_adherence", Kind.ROLE_ADHERENCE, _plain("answer"), ADHERENCE),
    Field("in_role_s", Kind.ROLE_TIMING, _plain("in_role_s"), numeric=True),
    Field("off_role_s", Kind.ROLE_TIMING, _plain("off_role_s"), numeric=True),
    Field("decided", Kind.FINAL_CHOICE, lambda a: "no" if a["answer"] == NONE else "yes", YES_NO),
    Field("final_choice", Kind.FINAL_CHOICE, _plain("answer")),
    Field("asked", Kind.ASKED, _plain("answer"), YES_NO),
    Field("agreement", Kind.AGREEMENT, _plain("answer"), YES_NO),
    Field("option_decided", Kind.LANDED_OPTION, lambda a: "no" if a["answer"] == NONE else "yes", YES_NO),
    Field("landed_option", Kind.LANDED_OPTION, _plain("answer")),
    Field("agreed_price", Kind.AGREED_PRICE, _plain("answer"), numeric=True),
)
"""What is compared, by kind. A numeric field is compared by rank as well; two numbers match when they are equal."""

PUBLISHED: dict[str, str] = {
    "role_adherence": "two judges T1-1 86.6 % (rho 0.75), T1-2 93.3 % (rho 0.86); people and judge 89.3 %",
    "decided": "two judges T2 92.4 %",
    "final_choice": "two judges T2 95.2 %",
    "asked": "two judges T3-2 86.2 %, T4-2 87.7 %",
    "agreement": "two judges T3-2 89.9 %",
    "option_decided": "two judges T4-1 85.8 %",
    "landed_option": "two judges T4-1 100.0 %",
}
"""Published exact match (DyaFDB). DSB-IFEval publishes none for the persona."""


# Figures


def exact_match(pairs: Sequence[Pair]) -> float | None:
    """Return the share of equal labels, or None over nothing."""
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


def cohen_kappa(pairs: Sequence[Pair]) -> float | None:
    """Return Cohen's kappa, or None where it is not defined."""
    if not pairs:
        return None
    n = len(pairs)
    one, other = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(one[label] * other[label] for label in one) / n**2
    observed = sum(a == b for a, b in pairs) / n
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's rank correlation, ties at their mean rank, or None where it is not defined."""
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return None
    from scipy.stats import spearmanr

    return float(spearmanr([a for a, _ in pairs], [b for _, b in pairs]).statistic)


def confusion(pairs: Sequence[Pair], order: Sequence[str] = ()) -> dict[str, Any]:
    """Return ``{"labels", "table"}``: rows are the first judge's labels, columns the second's."""
    seen = {label for pair in pairs for label in pair}
    labels = [label for label in order if label in seen] + sorted(seen - set(order))
    counts = Counter(pairs)
    return {"labels": labels, "table": [[counts[a, b] for b in labels] for a in labels]}


def compare(field: Field, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the agreement of two sides on one field."""
    return {
        "n": len(pairs),
        "exact": exact_match(pairs),
        "kappa": None if field.numeric else cohen_kappa(pairs),
        "rho": spearman(_ranked(field, pairs)) if field.numeric or field.order else None,
        "confusion": None if field.numeric else confusion(pairs, field.order or ()),
        "published": PUBLISHED.get(field.name),
    }


def _ranked(field: Field, pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    if field.numeric:
        return [(float(a), float(b)) for a, b in pairs if NONE not in (a, b)]
    assert field.order is not None
    place = {label: float(index) for index, label in enumerate(field.order)}
    return [(place[a], place[b]) for a, b in pairs if a in place and b in place]


# Judges


def labels_of(rows: Iterable[Row], field: Field) -> dict[tuple[str, str], tuple[Label, str]]:
    """Return the label and the prompt hash by (id, item) of judged rows of a field's kind."""
    out = {}
    for row in rows:
        if row["outcome"] == "judged" and row["kind"] == field.kind.value:
            label = field.read(row["answer"])
            if label is not None:
                out[row["id"], row["item"]] = (label, row["prompt_hash"])
    return out


def agreement_of(one: Sequence[Row], other: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the agreement of two judges by field, from their rows of ``judgements.jsonl`` (one a case and item)."""
    out = {}
    for field in FIELDS:
        a, b = labels_of(one, field), labels_of(other, field)
        both = sorted(a.keys() & b.keys())
        same = [place for place in both if a[place][1] == b[place][1]]
        if not a and not b:
            continue
        out[field.name] = {
            **compare(field, [(a[place][0], b[place][0]) for place in same]),
            "only_one": len(a.keys() ^ b.keys()),
            "other_prompt": len(both) - len(same),
        }
    return out


def self_agreement(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return how a judge agrees with itself, from the rows of all its repeats; empty without repeats."""
    answers: dict[tuple[str, str, str, str], dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        if row["outcome"] == "judged":
            place = (row["id"], row["item"], row["kind"], row["prompt_hash"])
            answers.setdefault(place, {})[int(row["repeat"])] = row["answer"]
    out = {}
    for field in FIELDS:
        pairs: list[Pair] = []
        cases = 0
        for (_, _, kind, _), repeats in answers.items():
            read = [field.read(repeats[k]) for k in sorted(repeats)] if kind == field.kind.value else []
            labels = [label for label in read if label is not None]
            found = list(itertools.combinations(labels, 2))
            cases += bool(found)
            pairs += found
        if pairs:
            both_ways = [*pairs, *((b, a) for a, b in pairs)]  # which repeat came first means nothing
            kappa = None if field.numeric else cohen_kappa(both_ways)
            out[field.name] = {"cases": cases, "n": len(pairs), "exact": exact_match(pairs), "kappa": kappa}
            if field.numeric:
                numbers = [(float(a), float(b)) for a, b in pairs if NONE not in (a, b)]
                out[field.name]["mean_difference"] = (
                    sum(abs(a - b) for a, b in numbers) / len(numbers) if numbers else None
                )
    return out
