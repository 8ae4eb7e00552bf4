"""Two runs of one set of cases: what they may be compared by, how they differ, and how sure that is."""
