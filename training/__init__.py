"""An evidence model, made and measured: README.md says how, from what, and what came out."""
