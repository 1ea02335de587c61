"""Benchmarks of speed and size, each as a ratio measured in one run."""
