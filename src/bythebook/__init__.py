"""By the Book: answers from a book's pages, each sentence proven with a quote."""
