"""Measuring: how well the book finds, answers and refuses, on questions other people wrote.

Everything is measured through the code that serves readers; nothing is implemented a second time here.
"""
