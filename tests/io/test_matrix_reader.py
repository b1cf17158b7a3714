"""State spaces of the user's own: files, model strings, likelihoods."""

import numpy as np
import pytest
from oracles.likelihood import brute_force, pruning
from oracles.substitution import q_matrix
from refusals import refused

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.toolbox.simulate import simulate
from plltool.errors import InputError
from plltool.io.model_reader import read_model
from plltool.model.model import Model
from plltool.run.evaluation import evaluate

FREQUENCIES = np.array([0.5, 0.3, 0.2])
EXCHANGE = np.array([[0, 1.0, 0.25], [1.0, 0, 0.5], [0.25, 0.5, 0]])
RATES = EXCHANGE * FREQUENCIES  # reversible by construction
STATES = "N north\nS\ne the east  # a comment\n"
TREE = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"
BRANCHES = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)]
LENGTHS = [0.1, 0.2, 0.1, 0.3, 0.2, 0.2, 0.1]
DATA = dict(zip("abcde", ("NNSe?N", "NNSeNS", "NSSe-N", "eSSNEn", "eSSNNe"), strict=True))


def text_of(rates=RATES, states=STATES):
    rows = ["\t".join("-" if i == j else repr(float(r)) for j, r in enumerate(row)) for i, row in enumerate(rates)]
    return "\n".join([states, "Matrix", *rows, ""])


@pytest.fixture
def model(write):
    return f"MATRIX{{{write(text_of())}}}"


@pytest.fixture
def one_way(write):
    return f"MATRIX{{{write(text_of(ONE_WAY))}}}"


def test_values_of_a_file(model):
    spec = read_model(f"{model}+G2")
    assert (spec.symbols, spec.data, spec.frequency_mode) == (("N", "S", "e"), "states NSe", "given")
    found = Model(spec)
    assert found.exchangeabilities == pytest.approx([1.0, 0.25, 0.5], rel=1e-12)
    assert found.frequencies == pytest.approx(FREQUENCIES, rel=1e-12)
    assert found.free_parameters == ("alpha",)
    assert read_model(str(spec)) == spec
    assert str(read_model(f"{model.replace('MATRIX', 'matrix')}+FO")) == str(spec).split("+")[0] + "+FO"


SETS = {"N": 1, "n": 1, "S": 2, "e": 4, "E": 4, "?": 7, "-": 7}
COLUMNS = [[SETS[c] for c in column] for column in zip(*DATA.values(), strict=True)]


def test_likelihood_is_the_oracles(model):
    expected = pruning(BRANCHES, LENGTHS, COLUMNS, [(1.0, FREQUENCIES, q_matrix([1.0, 0.25, 0.5], FREQUENCIES))]).sum()
    result = evaluate(DATA, TREE, model, fixed=True, device="numpy")
    assert result.lnl == pytest.approx(expected, rel=1e-12)
    again = evaluate(DATA, TREE, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(expected, rel=1e-12)


def test_rates_that_are_not_reversible(one_way, device):
    """The root has stationary frequencies; here each state leads to the next one, and not back."""
    q = ONE_WAY - np.diag(ONE_WAY.sum(axis=1))
    stationary = np.linalg.svd(q.T)[2][-1]
    stationary /= stationary.sum()
    q /= -(stationary * np.diag(q)).sum()
    branches = [(5, 6), (5, 7), (6, 0), (6, 1), (7, 2), (7, 8), (8, 3), (8, 4)]
    lengths = [0.1, 0.15, 0.1, 0.2, 0.3, 0.2, 0.2, 0.1]
    expected = brute_force(branches, lengths, COLUMNS, [(1.0, stationary, q)]).sum()
    tree = "((a:0.1,b:0.2):0.1,(c:0.3,(d:0.2,e:0.1):0.2):0.15);"
    result = evaluate(DATA, tree, one_way, fixed=True, device=device)
    assert result.lnl == pytest.approx(expected, rel=1e-9)  # rates of 1e-12 in place of 0
    again = evaluate(DATA, result.newick, result.model, fixed=True, device=device)
    assert again.lnl == pytest.approx(expected, rel=1e-9)


def test_strings_that_are_not_reversible(one_way):
    spec = read_model(f"{one_way}+G2")
    assert not spec.is_reversible
    assert spec.pairs == ("NS", "Ne", "SN", "Se", "eN", "eS")
    assert read_model(str(spec)) == spec
    reversible = [str(read_model(f"MATRIX{{NSe}}{{{rates}}}")) for rates in ("1/2/4", "2/0/1/1/0/2")]
    assert reversible == ["MATRIX{NSe}{0.25/0.5/1.0}", "MATRIX{NSe}{1.0/1e-12/0.5/0.5/1e-12/1.0}"]
    with pytest.raises(InputError, match=r"frequencies of MATRIX.* follow from its rates"):
        read_model(f"{one_way}+FO")


def test_simulated_shares_are_stationary(one_way):
    columns = simulate("((a:9,b:9):9,c:9);", one_way, 4000, seed=1).sequences[0]
    q = ONE_WAY - np.diag(ONE_WAY.sum(axis=1))
    shares = np.array([columns.count(symbol) for symbol in "NSe"]) / 4000
    assert shares @ q == pytest.approx(np.zeros(3), abs=0.05)


def test_equal_rates_are_mk():
    digits = {name: row.translate(str.maketrans("NSenE", "01202")) for name, row in DATA.items()}
    found = [evaluate(DATA, TREE, "MATRIX{NSe}{1/1/1}", fixed=True, device="numpy").lnl]
    found.append(evaluate(digits, TREE, "MULTI3_MK", fixed=True, device="numpy").lnl)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_symbols_are_written(model):
    assert set("".join(simulate(TREE, model, 200, seed=1).sequences)) == set("NSe")
    assert set("".join(ancestral_states(DATA, TREE, model, device="numpy").sequences().values())) <= set("NSe")


def test_both_cases_may_be_states():
    data = dict(zip("abcd", ("aAb", "aAB", "AAb", "aab"), strict=True))
    sets = {"a": 1, "A": 2, "B": 4, "b": 4}
    columns = [[sets[c] for c in column] for column in zip(*data.values(), strict=True)]
    components = [(1.0, [1 / 3] * 3, q_matrix([1, 1, 1], [1 / 3] * 3))]
    expected = pruning([(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [0.1] * 5, columns, components).sum()
    tree = "((a:0.1,b:0.1):0.1,c:0.1,d:0.1);"
    found = evaluate(data, tree, "MATRIX{aAB}{1/1/1}", fixed=True, device="numpy").lnl
    assert found == pytest.approx(expected, rel=1e-12)


def test_many_states(write):
    """62 states, of which the alignment has few; all sets of a table."""
    symbols = "".join(map(chr, [*range(48, 58), *range(65, 91), *range(97, 123)]))
    states = "".join(f"{symbol} state{symbol}\n" for symbol in symbols)
    model = f"MATRIX{{{write(text_of(1.0 - np.eye(62), states))}}}"
    assert len(read_model(model).symbols) == 62
    assert evaluate(DATA, TREE, model, fixed=True, device="numpy").lnl < 0


ONE_WAY = np.array([[0, 2, 0.3], [0, 0, 1.0], [0.7, 0.1, 0]])
APART = np.kron(np.eye(2), ONE_WAY)
TRAP = np.array([[0, 1, 1.0], [1, 0, 1.0], [0, 0, 0.0]])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rates": APART, "states": "N\nS\ne\nn\nw\nt\n"}, "found no way from state N to state n"),
        ({"rates": TRAP}, "is left for ever, expected rates that lead to every state"),
        ({"rates": RATES[:2]}, "found 2 rows of rates, expected 3, one for each state"),
        ({"rates": RATES[:, :2]}, "line 6: state 'north': found 2 rates, expected 3, with anything on the diagonal"),
        ({"rates": -RATES}, "line 6: state 'north': rate to 'S': found '-0.3', expected 0, or 1e-09 to 1e+09"),
        ({"text": "N\nS\nmatrix\n- x\n1 -\n"}, "line 4: state 'N': rate to 'S': found 'x', expected 0, or"),
        ({"text": "N\nS\n- 1\n1 -\n"}, "found no line 'matrix', expected a line for each state"),
        ({"text": ""}, "found no line 'matrix'"),
        ({"states": "N\nS\nN\n"}, "the state 'N' is listed twice"),
        ({"states": "N\nS\n?\n"}, "found '?' as the name of a state, expected a letter or digit, and"),
        ({"states": "north|south\nS\nE\n"}, "found 'north|south' as the name of a state, expected a letter or digit"),
        ({"text": "N\nmatrix\n-\n"}, "found 1 states, expected 2 to 128"),
        ({"states": "".join(f"s{k}\n" for k in range(129))}, "found 129 states, expected 2 to 128"),
    ],
)
def test_errors_of_files(write, more, message):
    path = write(more["text"] if "text" in more else text_of(**more))
    with refused(message, path):
        read_model(f"MATRIX{{{path}}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MATRIX", "expected a file, MATRIX{FILE}, or MATRIX{STATES}{rate/rate/...}"),
        ("MATRIX{NSE}{1/2}", "expected 3 exchangeabilities, or 6 rates of a model that is not reversible, found 2"),
        ("MATRIX{NSE}{0/0/0}", "expected one of the exchangeabilities above 0, found none"),
        ("MATRIX{NSE}{1/1/1/1/0/0}", "found no way from state E to state N, expected rates that lead there"),
        ("MATRIX{NSE}{1/-2/1}", "exchangeabilities must be numbers, from 0 to"),
        ("MATRIX{NSE}{1/2/3}{4}", "expected a file"),
        ("MATRIX{NN}{1}", "the state 'N' is listed twice"),
        ("MATRIX{wet|}{1}", "found '' as the name of a state"),
        ("MATRIX{wet|a b}{1}", "found 'a b' as the name of a state"),
    ],
)
def test_errors_of_strings(text, message):
    with refused(message):
        read_model(text)


def test_characters_that_are_no_states():
    with refused("taxon 'a', site 2: found 'W', expected states NSe, that is one of ENS"):
        evaluate(DATA | {"a": "NWSe?N"}, TREE, "MATRIX{NSe}{1/1/1}", device="numpy")
