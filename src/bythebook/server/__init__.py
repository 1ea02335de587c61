"""The door for the network: HTTP, streams of events, sessions. `create_app` in `app.py` makes it of a book."""
