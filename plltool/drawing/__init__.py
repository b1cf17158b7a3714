"""Pictures of trees: characters, SVG and PDF."""
