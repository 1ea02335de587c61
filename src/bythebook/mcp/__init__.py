"""The MCP server of a book: two read-only tools, and the pages as resources."""
