"""Benchmarks: how fast and how small, each as a ratio taken in one run."""
