"""Broken YAML data: every fault is one line that names the file, the entry, the field and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError, model_validator

import dsbeval
from dsbeval.errors import PackError
from dsbeval.yamlfile import Entry, read_yaml


class Segment(Entry):
    speech: str | None = None
    silence: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Segment:
        if (self.speech is None) == (self.silence is None):
            raise ValueError("is either {speech} or {silence}")
        return self


class Item(Entry):
    id: str | None = None
    probe: str | None = None
    instance: int | None = None
    words: Annotated[int, Field(ge=1)]
    kind: Literal["hold", "yield"] = "hold"
    turn2: Annotated[list[Segment], Field(default_factory=list)]
    limits: Annotated[dict[str, float], Field(default_factory=dict)]


class File(Entry):
    items: list[Item]
    note: str | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "roles.yaml"


def fault(path: Path, content: str | bytes) -> str:
    """Return the message for a file with ``content``, without the path that every message starts with."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PackError) as error:
        read_yaml(path, File)
    message = str(error.value)
    assert "\n" not in message
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


GOOD = """\
items:
  - {id: R1, words: 3}
  - id: R2
    words: 4
    kind: yield
    turn2: [{speech: "I don’t know."}, {silence: 2.5}]
    limits: {max_wait_s: 1.5}
"""


def test_a_good_file_is_read_whole(path: Path) -> None:
    path.write_text(GOOD, encoding="utf-8")
    file = read_yaml(path, File)
    assert [item.id for item in file.items] == ["R1", "R2"]
    assert file.items[1].turn2 == [Segment(speech="I don’t know."), Segment(silence=2.5)]
    assert file.items[1].limits == {"max_wait_s": 1.5}


def test_what_is_read_is_frozen(path: Path) -> None:
    path.write_text(GOOD, encoding="utf-8")
    file = read_yaml(path, File)
    with pytest.raises(ValidationError, match="frozen"):
        file.items[0].words = 5


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("items:\n  - {id: R1, words: 3\n", "line 3, column 1: "),
        ("items:\n\t- id: R1\n", "line 2, column 1: "),
        ('items: "no end', "line 1, column 15: "),
        ("items: *nowhere\n", "line 1, column 8: "),
        ("items: []\n---\nitems: []\n", "line 2, column 1: "),
        ("items: !!python/name:os.system\n", "line 1, column 8: "),
    ],
)
def test_broken_yaml_names_line_and_column(path: Path, content: str, place: str) -> None:
    message = fault(path, content)
    assert message.startswith(f"{place}not valid YAML: ")
    assert message.endswith("; mend it there")


def test_a_control_character_is_not_yaml(path: Path) -> None:
    message = fault(path, "note: a\x07b\n")
    assert message.startswith("not valid YAML: ")
    assert "#x0007" in message


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "- items\n- note\n", "items\n", "3\n"])
def test_not_a_mapping_names_the_fields(path: Path, content: str) -> None:
    assert fault(path, content) == "must be a mapping with the fields items, note"


def test_bytes_that_are_not_utf8_are_placed(path: Path) -> None:
    content = "note: Zoë\n".encode("latin-1")
    assert fault(path, content) == f"byte {content.index(0xEB)} is not UTF-8; save the file as UTF-8"


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(PackError) as error:
        read_yaml(path, File)
    assert str(error.value) == f"{path}: no such file; a pack needs it"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("note: x\n", "items: is missing"),
        ("items: [{id: R1}]\n", "R1: words: is missing"),
        ("items: [{words: 1}, {probe: C1, instance: 3}]\n", "C1/3: words: is missing"),
        ("items: [{words: 1}, {kind: hold}]\n", "items[2].words: is missing"),
    ],
)
def test_a_missing_field_names_its_entry(path: Path, content: str, says: str) -> None:
    assert fault(path, content) == says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("items: []\nitmes: []\n", "itmes: is not a known field (misspelt?)"),
        ("items: [{id: R2, words: 1, wrods: 2}]\n", "R2: wrods: is not a known field (misspelt?)"),
        (
            "items: [{id: R2, words: 1, turn2: [{speech: a}, {silense: 2}]}]\n",
            "R2: turn2[2].silense: is not a known field (misspelt?)",
        ),
    ],
)
def test_an_unknown_field_names_its_entry(path: Path, content: str, says: str) -> None:
    assert fault(path, content) == says


@pytest.mark.parametrize(
    ("content", "place", "mend"),
    [
        ("items: [{id: R3, words: many}]\n", "R3: words: ", ["valid integer", "(found 'many')"]),
        ("items: [{id: R3, words: 0}]\n", "R3: words: ", ["greater than or equal to 1", "(found 0)"]),
        ("items: [{id: R3, words: 1, kind: wait}]\n", "R3: kind: ", ["'hold' or 'yield'", "(found 'wait')"]),
        ("items: [{id: R3, words: 1, turn2: [{silence: -2}]}]\n", "R3: turn2[1].silence: ", ["greater than 0"]),
        ("items: [{id: R3, words: 1, limits: {max: soon}}]\n", "R3: limits.max: ", ["valid number", "'soon'"]),
        ("items: [{id: 3, words: 1}]\n", "3: id: ", ["valid string", "(found 3)"]),
        ("items: [3]\n", "items[1]: ", ["dictionary", "(found 3)"]),
        ("items: 3\n", "items: ", ["valid list", "(found 3)"]),
    ],
)
def test_a_wrong_value_says_what_is_allowed_and_what_was_found(
    path: Path, content: str, place: str, mend: list[str]
) -> None:
    message = fault(path, content)
    assert message.startswith(place)
    for part in mend:
        assert part in message


def test_a_rule_of_the_model_speaks_for_itself(path: Path) -> None:
    message = fault(path, "items: [{id: R4, words: 1, turn2: [{silence: 1}, {}]}]\n")
    assert message == "R4: turn2[2]: is either {speech} or {silence}"


def test_a_long_value_is_shortened(path: Path) -> None:
    message = fault(path, f"items: [{{id: R5, words: {'z' * 500}}}]\n")
    assert len(message) < 200
    assert message.endswith("zzz...)")


def test_a_value_over_several_lines_stays_on_one(path: Path) -> None:
    assert "a\\nb" in fault(path, 'items: [{id: R5, words: "a\\nb"}]\n')


def test_the_first_fault_is_told_and_the_others_are_counted(path: Path) -> None:
    message = fault(path, "items: [{id: R6, words: x, kind: y, colour: z}]\n")
    assert message.startswith("R6: words: ")
    assert message.endswith("(and 2 more)")


def test_reading_yaml_imports_nothing_heavy() -> None:
    code = "import dsbeval.yamlfile, sys; print(*sorted({'numpy', 'torch', 'onnxruntime', 'scipy'} & set(sys.modules)))"
    root = Path(dsbeval.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
