"""The gate: has an agent got worse than its baseline, surely enough to stop it?"""
