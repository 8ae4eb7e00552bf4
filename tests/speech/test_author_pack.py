"""The user's pack folder: what is refused before anything is asked, and a pack with rules of its own."""

from __future__ import annotations

import shlex
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsbeval.ifeval.pack import DEFAULT_PACK
from dsbeval.ifeval.schema import Script
from dsbeval.speech.author import packfile
from tests.servers import OpenAIServer
from tests.speech.author_support import (
    ACCEPT,
    ADDRESS,
    KEY,
    command,
    fresh,
    question,
    refusal,
    reply,
    run,
    unasked,
)
from tests.speech.author_support import elsewhere as elsewhere

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_wrong_names_are_told_with_near_ones() -> None:
    assert unasked(role="R33").startswith("--role: 'R33' is not in the pack; did you mean R3")
    assert "did you mean" in unasked(probe="R3_A_adress_self_correct")
    assert "R3 has no probe 'R1_B_dose_error'" in unasked(probe="R1_B")
    base = ["--role", "R3", "--probe", "R3_A", "--instance", "6"]
    assert refusal(command(*base, "--provider", "opnai")).startswith(
        "--provider: 'opnai' is not known; did you mean openai?"
    )
    assert "begin it with http://" in refusal(command(*base, "--provider", "openai", "--base-url", "localhost:1/v1"))
    assert "with --model" in refusal(command(*base, "--provider", "openai", "--base-url", "http://127.0.0.1:1/v1"))


def test_the_benchmarks_own_pack_is_not_written_to() -> None:
    assert "stays at 1,038 cases; name a folder of your own" in unasked("--pack", str(DEFAULT_PACK))


def test_a_folder_that_is_no_pack_is_not_made_one() -> None:
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_bytes(b"")
    assert "photos holds files but no roles.yaml" in unasked("--pack", "photos")
    assert "is a file; name a folder" in unasked("--pack", "photos/cat.jpg")
    assert [path.name for path in Path("photos").iterdir()] == ["cat.jpg"]


def test_a_link_that_leads_out_of_the_pack_is_refused() -> None:
    unasked("--pack", "p", role="R33")  # makes the folder
    outside = Path("outside.yaml")
    outside.write_text("role: R3\nconversations: []\n", encoding="utf-8")
    Path("p/conversations/R3.yaml").symlink_to(outside.resolve())
    assert "p/conversations/R3.yaml: leads out of the pack's folder; put the file itself there" in unasked(
        "--pack", "p"
    )
    assert outside.read_text(encoding="utf-8") == "role: R3\nconversations: []\n"


def test_a_pack_that_does_not_load_is_told_before_a_script_is_paid_for() -> None:
    unasked("--pack", "p", role="R33")
    path = Path("p/contradictions.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("resolved_action: LISTEN", "resolved_action: HUM", 1))
    said = unasked("--pack", "p")
    assert said.startswith("p/contradictions.yaml: R1/C1: resolved_action: ")


def test_an_instance_that_somebody_wrote_by_hand_is_not_overwritten() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server)
    Path(f"my-pack/authoring/{KEY}.json").unlink()
    assert "is there already; choose another --instance, or remove it there" in unasked()


# A pack with a role, a probe and a language of its own


def own_pack(root: Path, notes: str) -> None:
    """Add a role with one probe of its own to a fresh copy of the rules."""
    unasked("--pack", str(root), role="R33")
    extend(root / "roles.yaml", ["  - {id: R9, name: night porter, persona: p, directive: d, content_rule: c}"])
    extend(
        root / "probes.yaml",
        [
            "  - id: R9_A_lost_key",
            "    name: lost key",
            "    turn2: [{part: lead, seconds: 3.0}, {silence: 2.0}, {part: resume, seconds: 3.0}]",
            "    window: {start: s2.on, end: s2.off}",
        ],
    )
    cells = (root / "cells.yaml").read_text(encoding="utf-8")
    (root / "cells.yaml").write_text(cells.replace("thresholds:", "  R9: {R9_A_lost_key: LISTEN}\nthresholds:"))
    contradiction = ["  - role: R9", "    probe: R9_A_lost_key", "    target: t", "    resolved_action: TAKE_TURN"]
    variants = [f'      - "Variant {k} of the line."' for k in range(5)]
    extend(root / "contradictions.yaml", [*contradiction, "    variants:", *variants])
    if notes:
        (root / "authoring.yaml").write_text(notes, encoding="utf-8")


def extend(path: Path, lines: Iterable[str]) -> None:
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


NOTES = """\
language: German
words_per_second: [1.5, 3.0]
settings:
  R9: a hotel's front desk at night. The person is a guest.
briefs:
  R9_A_lost_key: {realise: the guest is looking for the key., reject: the key is found before the silence.}
forbidden: [Nachtportier, warten]
"""
GERMAN: dict[str, Any] = {
    "situation": "Ein Gast steht nachts ohne Schlüssel vor dem Zimmer.",
    "fact": "Der Schlüssel liegt noch im Zimmer.",
    "turn1": "Guten Abend, ich bin gerade vom Konzert zurückgekommen und stehe jetzt vor meinem Zimmer im dritten "
    "Stock, aber meine Tasche ist leider noch im Taxi geblieben.",
    "turn2": [
        {"speech": "Ich glaube, der Schlüssel war in der", "part": "lead"},
        {"silence": 2.0},
        {"speech": "nein, er liegt auf dem Nachttisch.", "part": "resume"},
    ],
}


def test_a_role_a_probe_and_a_language_of_ones_own() -> None:
    own_pack(Path("p"), NOTES)
    bad = reply(GERMAN, turn1=GERMAN["turn1"].replace("Guten Abend", "Guten Abend, Nachtportier"))
    with OpenAIServer([bad, reply(GERMAN), ACCEPT]) as server:
        result = run(server, "--pack", "p", "--instance", "1", role="R9", probe="R9_A")
    assert result.exit_code == 0, result.output
    assert "says 'nachtportier', which this pack does not allow the user" in result.output
    assert "the guest is looking for the key." in question(server, 1)
    assert "1. speech, part lead, 4 to 9 words" in question(server, 1)
    assert "spoken German" in server.seen[0].body["messages"][0]["content"]
    script = fresh("p").recordings["IFD-R9-R9_A_lost_key-i1"].script
    assert script.turn2[2].speech == "nein, er liegt auf dem Nachttisch."
    assert script.turn1 == GERMAN["turn1"]


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ("", "p/authoring.yaml: settings.R9: is missing; say where the user is and who they are"),
        ("settings: {R9: a hotel.}\n", "p/authoring.yaml: briefs.R9_A_lost_key: is missing; say what turn 2 must"),
        ("words_per_second: [3, 1]\n", "p/authoring.yaml: words_per_second: is [fewest, most] words a second"),
        ("lanugage: German\n", "p/authoring.yaml: lanugage: is not a known field (misspelt?)"),
    ],
)
def test_notes_that_are_missing_or_wrong_are_one_line(notes: str, said: str) -> None:
    own_pack(Path("p"), notes)
    assert unasked("--pack", "p", "--instance", "1", role="R9", probe="R9_A").startswith(said)


def test_a_situation_of_ones_own_reaches_the_writer() -> None:
    with OpenAIServer([reply(), ACCEPT]) as server:
        run(server, "--situation", "A beekeeper whose hives are on fire.")
    assert "The situation: A beekeeper whose hives are on fire." in question(server, 1)


def test_the_commands_of_the_document_work() -> None:
    text = (Path(__file__).parents[2] / "docs" / "authoring.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("dsbeval speech author ")]
    options = shlex.split(line)[3:]
    with OpenAIServer([reply(), ACCEPT]) as server:
        options[options.index("--base-url") + 1] = server.base_url
        result = command(*options)
    assert result.exit_code == 0, result.output
    assert textwrap.indent(result.output, "    ") in text
    by_hand = text.partition("```yaml\n")[2].partition("```")[0]
    assert Path("my-pack/conversations/R3.yaml").read_text(encoding="utf-8") == by_hand


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1).map(
    lambda text: " ".join(text.split()) or "x"
)


@given(situation=TEXT, fact=TEXT, turn1=TEXT, speech=TEXT)
@example(situation="no", fact="#1: {a} 'b' - ", turn1="- # x", speech='"quoted\\')
@example(situation="\U000e0001", fact="\u200d", turn1="\u00e9", speech="\U000e0001")
@example(situation="a: b", fact="~", turn1="| > %", speech="\u2028a\u200db")
@settings(deadline=None, max_examples=12)
def test_whatever_a_script_says_is_in_the_file_as_it_was(situation: str, fact: str, turn1: str, speech: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "p")
        packfile.prepare(root)
        turn2 = [{**segment, "speech": speech} for segment in ADDRESS["turn2"]]
        fields = {
            "probe": "R3_A_address_self_correct",
            "register": {"age": "75+"},
            "situation": situation,
            "fact": fact,
        }
        scripts = [
            Script.model_validate({**fields, "instance": instance, "turn1": turn1, "turn2": turn2})
            for instance in (6, 7)
        ]
        for script in scripts:
            packfile.append(root, "R3", [script])
        assert [r.script for r in packfile.recordings(root, "R3").values()] == scripts
