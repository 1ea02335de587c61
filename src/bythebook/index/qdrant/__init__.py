"""The index on a Qdrant server or cluster: the same generations, searched there instead of in this process.

    collection_name             an alias for the current generation
    NAME-g000007-1a2b3c4d       the chunks of a generation: immutable once the alias has pointed at it
    NAME-g000007-1a2b3c4d-book  its catalog: the same SQLite file as on disk, in blocks, and a manifest

An ingest builds a generation in a local mirror of the server's index and pushes it as a whole. Readers fetch the
catalog once for each generation and search the chunks on the server. This package is only imported if a server is
configured.
"""
