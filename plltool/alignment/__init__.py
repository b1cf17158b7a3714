"""Character states, alignments and site patterns."""
