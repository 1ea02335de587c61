"""Minilm."""
