"""Reports, tables and pictures of results; read from records alone."""
