"""What the tests of the command line read: a few primates, and names that are hard to keep."""

STRANGE_NAMES = (
    "Foo_bar", "Foo bar", "foo_bar", "it's", "été:(x)", "a,b", "T. rex [1]", '{x}="y"/🌳', "n" * 990 + " '[(;:,)]"
)  # fmt: skip


def small_records(data_dir, n_taxa, n_sites=300):
    """(name, sequence) of the first taxa and sites of the primates."""
    rows = [line.split() for line in (data_dir / "primates.phy").read_text().splitlines()[1 : n_taxa + 1]]
    return [(name, sequence[:n_sites]) for name, sequence in rows]
