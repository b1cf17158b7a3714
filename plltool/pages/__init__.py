"""The report of a run, made from its records: a page for browsers and a page of text."""
