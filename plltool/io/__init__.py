"""Reading and writing: alignments, trees, models, result records, and objects of other libraries."""
