"""The author's gate: one claim a line, each proven by a run or a comparison of things made apart."""
