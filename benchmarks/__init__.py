"""Performance, measured as ratios; run by hand, never as tests."""
