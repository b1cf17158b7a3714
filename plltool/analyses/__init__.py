"""One module for each question that a user asks of an alignment or a tree."""
