"""The search for the best tree."""
