"""The pages of the documentation."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def name_of(page):
    """A page's path within the repository."""
    return page.relative_to(REPOSITORY).as_posix()
