"""Small questions: simulated data, checks, trees as files, pictures, the report."""
