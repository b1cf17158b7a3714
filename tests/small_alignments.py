"""Small alignments that several test folders read, as name to sequence, and names that are hard to keep."""

STRANGE_NAMES = (
    "Foo_bar", "Foo bar", "foo_bar", "it's", "été:(x)", "a,b", "T. rex [1]", '{x}="y"/🌳', "n" * 990 + " '[(;:,)]"
)  # fmt: skip

PRIMATES_TREE = (
    "((Saimiri_sciureus,((Hylobates,(Pongo,(Gorilla,(Homo_sapiens,Pan)))),(M_sylvanus,((M_mulatta,Macaca_fuscata),"
    "M_fascicularis)))),Lemur_catta,Tarsius_syrichta);"
)


def primates(data_dir, n_taxa=12, n_sites=898):
    """The first taxa and sites of the primates."""
    rows = [line.split() for line in (data_dir / "primates.phy").read_text().splitlines()[1 : n_taxa + 1]]
    return {name: sequence[:n_sites] for name, sequence in rows}


def hard_taxa(data_dir, n_taxa, n_sites=None):
    """The first taxa and sites of an alignment whose best tree is hard to find."""
    records = (data_dir / "hard.fasta").read_text().split(">")[1 : n_taxa + 1]
    return {name: "".join(lines)[:n_sites] for name, *lines in map(str.split, records)}


def variable(rows):
    """The columns in which two sequences cannot have the same base; gaps may be anything."""
    kept = [site for site, column in enumerate(zip(*rows.values(), strict=True)) if len(set(column) & set("ACGT")) > 1]
    return {name: "".join(row[site] for site in kept) for name, row in rows.items()}


def write_fasta(path, rows):
    """The path of a FASTA file that has now these sequences."""
    path.write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()), encoding="utf-8")
    return path
