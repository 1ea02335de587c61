import os

project = "The Kiln"
release = "2.1"
extensions = ["sphinx.ext.todo", "myst_parser"]
exclude_patterns = ["_build"]
exclude_patterns += ["firing/old*"]
html_baseurl = "https://kiln.example/en/"
templates_path = ["_templates"]
html_theme = "alabaster"
rst_epilog = ".. |clay| replace:: white clay"
if os.environ.get("NEVER_SET"):
    html_baseurl = "https://elsewhere.example/"
