"""DSB-IFEval: one fixed user recording under several system prompts; does the agent do what its role implies?"""
