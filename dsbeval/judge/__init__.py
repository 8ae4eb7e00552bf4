"""Judges: what an agent said is judged apart from when it said it, by a judge that never sees timing.

    case, recording ──► question ──► prompt ──► judge ──► judgement ──► judgements.jsonl ──► rows, tables, agreement
    (rec.json, pack)    (parts,      (text)     (LLM or    (answer, raw,    (every reply
                         schema)                 offline)   tokens, cost)     kept)

Start with :func:`dsbeval.judge.choose.make_judge` and :func:`dsbeval.judge.pas.judge_case`.
"""
