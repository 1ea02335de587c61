"""Calls to services outside this process.

A request has one absolute `Deadline`, which is passed to every call. An `Upstream` is one service: it limits each call
by the deadline, makes all retries, and has a circuit breaker. The retries of the client libraries are off.

Each adapter translates foreign errors with an `ErrorClassifier`. Those for `openai` and `httpx` are in
`bythebook.upstream.openai` and `bythebook.upstream.classify`. Nothing here imports a client library.
"""
