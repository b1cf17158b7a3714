"""States of ancestors."""
