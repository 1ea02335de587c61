"""A book on a Qdrant server or cluster: the same generations, searched there instead of in this process.

    collection_name             an alias: the generation that readers open
    NAME-g000007-1a2b3c4d       the chunks of a generation: never changed once the alias has pointed at it
    NAME-g000007-1a2b3c4d-book  its catalogue: the same SQLite file as on disk, in pieces, and a manifest

An ingest prepares a generation on its own disk, in a mirror of what the server has, and sends it there whole. Readers
fetch the catalogue once for each generation, and search the chunks where they are. Nothing here is imported unless a
server is named.
"""
