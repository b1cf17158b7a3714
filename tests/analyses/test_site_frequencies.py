"""Frequencies of each site (+SSF), and their posterior means under profiles (PMSF): oracle and another program."""

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import PROTEIN_SEQUENCES
from oracles.likelihood import derivative, dna_columns, pruning
from oracles.substitution import gamma_category_means, q_matrix

from plltool.cli import main
from plltool.errors import DeviceError, InputError
from plltool.io.table_reader import format_frequencies, read_frequencies
from plltool.model import mixtures
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs, with_site_frequencies
from plltool.run.likelihood import Likelihood

TREE = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"
DNA = {"a": "ACGTAACGTRA-A", "b": "ACGTAAGGTAA-A", "c": "ACTTACCGTAAAA", "d": "CCTAACCGGAANA", "e": "CATAGCTGGAAAA"}
EXCHANGEABILITIES = [1.5, 4.0, 0.8, 1.2, 5.0, 1.0]
GTR = "GTR{1.5/4/0.8/1.2/5/1}"
TWO = "LG+FMIX{C10pi1:1:0.119,C10pi2:1:0.881}+G4{0.7}"
RTOL = 1e-11  # the order of sums differs


def frequencies_of(n_sites, n_states, n_distinct=7):
    """Frequencies of a formula (n_sites, n_states) with 6 digits, as a file has them; every seventh site the same."""
    rows = 1 + (7 * (np.arange(n_sites)[:, None] % n_distinct) + 3 * np.arange(n_states)) % 11
    return (rows / rows.sum(axis=1, keepdims=True)).round(6)


def oracle(likelihood, rows, rates, site):
    """lnL of a site of DNA under its frequencies, as a function of the lengths."""
    tree, pi = likelihood.tree, rows[site] / rows[site].sum()
    q = q_matrix(EXCHANGEABILITIES, pi)
    columns = dna_columns(DNA, tree.names, [site])
    components = [(weight, pi, rate * q) for rate, weight in rates]
    return lambda lengths: pruning(tree.ends.tolist(), lengths, columns, components)[0]


@pytest.fixture
def made():
    """Data, models and frequencies of DNA; the sixth site and the last have equal columns and other frequencies."""
    rows = frequencies_of(13, 4)
    return (*with_site_frequencies(*resolve_inputs(DNA, f"{GTR}+I{{0.2}}+G4{{0.5}}"), rows), rows)


RATES = [(0.0, 0.2), *((rate / 0.8, 0.2) for rate in gamma_category_means(0.5, 4))]


def test_lnl_and_slopes_are_those_of_each_site_at_its_frequencies(made):
    data, models, rows = made
    with Likelihood(data, TREE, models, device="numpy") as likelihood:
        of_sites = [oracle(likelihood, rows, RATES, site) for site in range(13)]
        lengths = likelihood.lengths
        assert likelihood.site_lnl() == pytest.approx([lnl(lengths) for lnl in of_sites], rel=RTOL)
        _, slopes, curves = likelihood.derivatives()
        for edge in range(len(lengths)):

            def at(length, edge=edge):
                return sum(lnl(np.where(np.arange(len(lengths)) == edge, length, lengths)) for lnl in of_sites)

            d1, d2 = derivative(at, lengths[edge], 1e-3)
            # limits of the central differences
            assert slopes[edge] == pytest.approx(d1, rel=1e-6, abs=1e-6)
            assert curves[edge] == pytest.approx(d2, rel=1e-4, abs=1e-4)


def test_equal_columns_with_other_frequencies_are_separate_patterns(made):
    data, *_ = made
    assert len({"".join(column) for column in zip(*DNA.values(), strict=True)}) < data.patterns[0].n_patterns
    site_pattern, sites = data.patterns[0].site_pattern, data.parts[0].sites.tolist()
    pattern_of = dict(zip(sites, site_pattern.tolist(), strict=True))
    assert pattern_of[4] != pattern_of[12]
    assert pattern_of[4] != pattern_of[10]


def test_gradient_of_free_parameters():
    rows, step = frequencies_of(13, 4), 1e-4
    data, models = with_site_frequencies(*resolve_inputs(DNA, "GTR+I+G4"), rows)
    with Likelihood(data, TREE, models, device="numpy") as likelihood:
        vector = likelihood.vector(lengths=False)
        assert len(vector) == 5 + 2  # exchangeabilities, alpha, pinv; no frequencies

        def at(k, change):
            """lnL by the oracle where an element of the vector has changed."""
            likelihood.set_vector(vector + change * (np.arange(len(vector)) == k), lengths=False)
            [model] = likelihood.models
            rates = list(zip(*model.sites.categories(), strict=True))
            tree, total = likelihood.tree, 0.0
            for site, row in enumerate(rows):
                pi = row / row.sum()
                q = q_matrix(model.exchangeabilities, pi)
                columns = dna_columns(DNA, tree.names, [site])
                components = [(weight, pi, rate * q) for rate, weight in rates]
                total += pruning(tree.ends.tolist(), tree.lengths, columns, components)[0]
            return total

        expected = [(at(k, step) - at(k, -step)) / (2 * step) for k in range(len(vector))]
        likelihood.set_vector(vector, lengths=False)
        assert likelihood.gradient(lengths=False) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_posterior_means_against_the_oracle(tmp_path):
    """Classes weighted by their share of the likelihood of a site; invariable sites do not count."""
    weights, profiles, _ = mixtures.read_profiles("C10")
    exchangeabilities = Model(parse_model("LG")).exchangeabilities
    with Likelihood(PROTEIN_SEQUENCES, TREE, "LG+C10+I{0.1}+G2{0.5}", device="numpy") as likelihood:
        tree, found = likelihood.tree, likelihood.site_frequencies()
        rates = gamma_category_means(0.5, 2) / 0.9
        order = "ARNDCQEGHILKMFPSTWYV"
        sets = {letter: 1 << k for k, letter in enumerate(order)}
        sets |= {"B": sets["N"] | sets["D"], "Z": sets["Q"] | sets["E"], "X": (1 << 20) - 1, "-": (1 << 20) - 1}
        columns = [[sets[PROTEIN_SEQUENCES[name][site]] for name in tree.names] for site in range(26)]
        by_class = np.empty((10, 26))
        for k, (weight, pi) in enumerate(zip(weights, profiles, strict=True)):
            q = q_matrix(exchangeabilities, pi)
            components = [(0.5, pi, rate * q) for rate in rates]
            by_class[k] = np.log(weight) + pruning(tree.ends.tolist(), tree.lengths, columns, components)
    shares = np.exp(by_class - by_class.max(axis=0))
    expected = (shares / shares.sum(axis=0)).T @ profiles
    assert found == pytest.approx(expected, rel=RTOL)
    path = tmp_path / "own.sitefreq"
    path.write_text(format_frequencies(found))
    assert np.array_equal(read_frequencies(path, 26, tuple(order)), found)


# IQ-TREE 2.0.7: -m LG+G4{0.7} -fs FILE -te TREE -blfix; then -ft TREE with the model TWO, which prints six digits of
# frequencies, here of the second site, and 3 digits of the lnL under the mixture
def test_another_programs_likelihood():
    rows = frequencies_of(26, 20, n_distinct=26)
    result = evaluate(PROTEIN_SEQUENCES, TREE, "LG+G4{0.7}", fixed=True, site_frequencies=rows)
    assert result.lnl == pytest.approx(-201.9716, abs=1e-4)
    assert result.model == "LG+SSF+G4{0.7}"
    mixture = evaluate(PROTEIN_SEQUENCES, TREE, TWO, fixed=True, pmsf=True, device="numpy")
    assert mixture.lnl == pytest.approx(-198.975, abs=1e-3)
    second = (
        "0.104075 0.0417232 0.0212775 0.0155578 0.0150513 0.0439132 0.0418299 0.0143409 0.0158356 0.106208 0.112781"
    )
    second += " 0.0434742 0.0436285 0.0180223 0.0223977 0.0534509 0.107994 0.0045035 0.0136967 0.160239"
    assert mixture.pmsf[1] == pytest.approx(np.array(second.split(), dtype=float), abs=1e-5)
    result = evaluate(PROTEIN_SEQUENCES, TREE, TWO, fixed=True, site_frequencies=mixture.pmsf)
    assert result.lnl == pytest.approx(-193.0788, abs=2e-4)  # frequencies there have six digits


def test_rates_of_sites(made):
    data, models, rows = made
    with Likelihood(data, TREE, models, device="numpy") as likelihood:
        found, tree = likelihood.site_rates(), likelihood.tree
        for site in range(13):
            own = [oracle(likelihood, rows, [pair], site)(tree.lengths) for pair in RATES]
            shares = np.exp(own)
            assert found[site] == pytest.approx(shares @ [rate for rate, _ in RATES] / shares.sum(), rel=RTOL)


def test_optimised_lengths_and_record():
    rows = frequencies_of(26, 20, n_distinct=26)
    result = evaluate(PROTEIN_SEQUENCES, TREE, "LG+G4{0.7}", site_frequencies=rows)
    assert result.lnl == pytest.approx(-178.4732, abs=0.02)  # IQ-TREE, which stops when a round gains less than 0.01
    with Likelihood(result.data, result.tree, result.models, device="numpy") as likelihood:
        assert likelihood.lnl() == pytest.approx(result.lnl, rel=1e-9)  # lengths are as printed
    assert result.parameters["spec"] == "LG+SSF+G4{0.7}"
    assert list(result.parameters["frequencies"].values()) == pytest.approx(rows.mean(axis=0), abs=1e-5)  # six digits


def test_what_cannot_be_used(tmp_path):
    rows, path = frequencies_of(26, 20), tmp_path / "sites"
    lines = format_frequencies(rows).splitlines()
    broken = {
        "line 1: found 'x', expected the number of a site, 1 to 26": ["x 1", *lines[1:]],
        "line 27: site 3 is given twice": [*lines, lines[2]],
        "line 2: found 19 numbers, expected 20 frequencies": [lines[0], lines[1].rsplit(" ", 1)[0], *lines[2:]],
        "found no frequencies of site 26": lines[:-1],
        "site 4: state frequencies must sum to 1": [*lines[:3], "4" + 20 * " 0.1", *lines[4:]],
        "line 1: could not convert string to float: 'y'": ["1 y", *lines[1:]],
    }
    for message, text in broken.items():
        path.write_text("\n".join(text))
        with pytest.raises(InputError, match=message):
            evaluate(PROTEIN_SEQUENCES, TREE, "LG", site_frequencies=path)
    with pytest.raises(InputError, match="an array of shape"):
        evaluate(PROTEIN_SEQUENCES, TREE, "LG", site_frequencies=rows[1:])
    with pytest.raises(InputError, match="found no frequencies of sites, expected --site-frequencies"):
        evaluate(PROTEIN_SEQUENCES, TREE, "LG+SSF+G4")
    for model in ("LG4X", "LG+PSR", "NONREV", "LG+COV"):
        with pytest.raises(InputError, match="cannot have frequencies of each site"):
            evaluate(PROTEIN_SEQUENCES, TREE, model, site_frequencies=rows)
    with pytest.raises(InputError, match="expected a mixture such as"):
        evaluate(PROTEIN_SEQUENCES, TREE, "LG+G4", fixed=True, pmsf=True)
    with pytest.raises(DeviceError, match="expected auto or numpy"):
        evaluate(PROTEIN_SEQUENCES, TREE, "LG", site_frequencies=rows, device="gpu")


def test_commands_write_and_read_them(tmp_path):
    alignment, tree, sites = (tmp_path / name for name in ("a.fasta", "a.nwk", "a.sitefreq"))
    alignment.write_text("".join(f">{name}\n{row}\n" for name, row in PROTEIN_SEQUENCES.items()))
    tree.write_text(TREE)
    shared = ["evaluate", str(alignment), str(tree), "--model", TWO, "--fixed", "--device", "numpy"]
    for more in (["--pmsf", str(sites)], ["--site-frequencies", str(sites)]):
        done = CliRunner().invoke(main, [*shared, *more])
        assert done.exit_code == 0, done.output
    assert "lnL: -193.078" in done.output  # IQ-TREE's, see above
    assert "model: LG+SSF+G4{0.7}" in done.output
