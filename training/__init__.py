"""The entailment model: its data, its training, its export and its figures. README.md has the commands."""
