"""Questions about the machine: its devices, their speed, and whether they agree."""
