"""The door for other programs: the book as an MCP server, with two tools that only read, and its pages."""
