"""Gaps: what readers asked and the book could not answer, and where the answer would belong."""
