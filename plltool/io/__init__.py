"""Reading and writing: alignments, Newick, result records, and the dendropy bridge."""
