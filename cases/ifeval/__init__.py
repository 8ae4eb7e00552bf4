"""DSB-IFEval as pytest items."""
