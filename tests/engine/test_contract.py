"""The contract between host and kernels: parameter lists in C, macros, and what the wrapper refuses."""

import re

import numpy as np
import pytest
from engine_kinds import Kind
from helpers import program_to_branch, random_codes, random_ends, random_mixture

from plltool.engine import program as prog
from plltool.engine.contract import (
    ARRAYS,
    INSTRUCTION_WORDS,
    KERNELS,
    LAUNCH_SIZES,
    OPCODES,
    RECORDS,
    SPAN_WORDS,
    TRACK_WORDS,
    WRITTEN,
    macros,
)
from plltool.engine.layout import Layout
from plltool.errors import EngineError

LAYOUT = Layout(4, 2, 5, (70, 9), 4)


@pytest.fixture(scope="module")
def sources(kernel_folder):
    """The text of every kernel file, without comments."""
    files = [path for path in kernel_folder.iterdir() if path.suffix in (".cl", ".h")]
    return {path.name: re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in files}


@pytest.fixture(scope="module")
def kernel_folder():
    from plltool.engine.opencl.kernels import find_kernel_folder

    return find_kernel_folder()


def in_c(kernel, argument):
    """The parameter as C declares it."""
    if argument.shape is None:
        return f"const {argument.ctype} {argument.name}"
    const = "" if argument.name in WRITTEN[kernel] else "const "
    return f"{const}__global {argument.ctype} *{argument.name}"


def test_parameter_lists_are_those_of_the_contract(sources):
    """Names, types and order of every kernel."""
    found = {}
    for text in sources.values():
        for name, parameters in re.findall(r"__kernel\s+void\s+(\w+)\s*\(([^)]*)\)", text):
            found[name] = [" ".join(parameter.split()) for parameter in parameters.split(",")]
    expected = {name: [in_c(name, argument) for argument in arguments] for name, arguments in KERNELS.items()}
    assert found == expected


def test_arrays_come_before_numbers():
    for kernel, arguments in KERNELS.items():
        are_arrays = [argument.shape is not None for argument in arguments]
        assert are_arrays == sorted(are_arrays, reverse=True), kernel


def test_kernels_define_no_macro_of_the_contract_again(sources):
    defined = {name for text in sources.values() for name in re.findall(r"#define\s+(\w+)", text)}
    assert not defined & macros().keys()


def test_kernels_read_every_word_by_name(sources):
    """Each word of every record, and no plain numbers as indices."""
    text = sources["traverse.cl"] + sources["buffers.cl"]
    for record, words in RECORDS.items():
        assert f"{record}_WORDS" in text
        for word in words:
            assert f"[{record}_{word}]" in text
    assert not re.findall(r"\b(?:span|track|word|steps|queries)\[\d", text)


def test_macros_have_names_of_their_own():
    names = [option.partition("=")[0] for option in LAYOUT.macros()]
    assert len(names) == len(set(names))
    assert {f"-D{opcode}" for opcode in OPCODES} <= set(names)


def test_words_and_opcodes_are_numbered_without_gaps():
    for numbers in (OPCODES, *RECORDS.values()):
        assert list(numbers.values()) == list(range(len(numbers)))


def test_every_dimension_is_known():
    used = {size for argument in ARRAYS.values() for size in argument.shape if isinstance(size, str)}
    assert {size for size in used if not hasattr(LAYOUT, size)} <= LAUNCH_SIZES.keys()
    assert not any(hasattr(LAYOUT, size) for size in LAUNCH_SIZES)


def test_shapes_by_hand():
    """79 patterns in two parts: 18 + 3 blocks of 4 lanes, each a tile."""
    sizes = {"n_psets": 2, "n_branches": 7, "n_held_tiles": 21, "n_slots": 3, "want_slopes": 1}
    expected = {
        "clas": (21, 3, 1, 2, 4, 4),
        "scales": (21, 3, 1, 2, 4),
        "tips": (21, 5, 1, 4),
        "weights": (84,),
        "model": (2, 2, 4 + 16 + 16 + 1),
        "eigen": (2, 2, 4 + 16 + 16),
        "matrices": (2, 7, 2 * 16 + 2 * 16 * 4),  # and a vector for each set of states
        "slopes": (1, 2, 7, 2, 2, 16),
    }
    assert {name: LAYOUT.arrays[name].shape(sizes) for name in expected} == expected
    assert LAYOUT.arrays["slopes"].n_bytes(sizes | {"want_slopes": 0}) == 0


# --- what the wrapper refuses -------------------------------------------------------------------------------


@pytest.fixture
def engine(make_engine):
    """One that has answered a request, and what it asks."""
    rng = np.random.default_rng(2)
    ends, lengths = random_ends(rng, 5)
    codes = random_codes(rng, 5, 40)
    made = make_engine(Kind("vector", 4), 3, codes, np.ones(40), [random_mixture(rng, 4, 2)])
    program, a, b = program_to_branch(ends, 5, 0)
    made.execute(prog.Request(np.concatenate([program, prog.evaluate(0, a, b, 0)]), 1), lengths)
    return made


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("do", "name", "wrong", "message"),
    [
        ("keep", "weights", np.ones(3), "weights is float64 (3,), expected float64 (40,), which is WIDE (n_lanes)"),
        ("keep", "weights", np.ones(40, np.float32), "weights is float32 (40,), expected float64 (40,)"),
        ("keep", "bad_pattern", np.zeros(1), "bad_pattern is float64 (1,), expected int32 (1,)"),
        ("send", "program", np.zeros((2, 7), np.int32), "program is int32 (2, 7), expected int32 (2, 8)"),
    ],
)
def test_arrays_of_the_wrong_type_or_shape(engine, do, name, wrong, message):
    with pytest.raises(EngineError, match=re.escape(message)):
        getattr(engine._arrays, do)(name, wrong, {"n_instructions": 2})


@pytest.mark.opencl
def test_arrays_of_a_parcel_are_what_was_put_in_last(engine):
    """Of several lengths, in one copy; some change while others between them stay; then one outgrows its place."""
    arrays, rng, latest = engine._arrays, np.random.default_rng(3), {}

    def put(**rows):
        for name, n in rows.items():
            dtype, width, size = {
                "spans": (np.int32, (SPAN_WORDS,), "n_spans"),
                "tracks": (np.int32, (TRACK_WORDS,), "n_tracks"),
                "program": (np.int32, (INSTRUCTION_WORDS,), "n_instructions"),
                "at_tips": (np.uint8, (), "n_branches"),
            }[name]
            latest[name] = rng.integers(0, 99, (n, *width)).astype(dtype)
            arrays.send(name, latest[name], {size: n})
        sent = engine.counters.bytes_to_device
        arrays.post()
        for name, array in latest.items():
            assert np.array_equal(arrays.receive(np.empty_like(array), name), array)
        return engine.counters.bytes_to_device - sent

    put(spans=2, at_tips=7, tracks=1, program=5)
    assert put(tracks=1) == 4 * TRACK_WORDS
    put(at_tips=3, program=4)
    put(program=300, spans=1)
    put(tracks=50)
    assert put() == 0


@pytest.mark.opencl
def test_an_array_that_is_too_small_for_a_launch(engine):
    """The kernel is not enqueued, and the message names the array and both sizes."""
    numbers = engine._fixed | {"first_made": 0, "n_values": 10**6}
    rows = engine._sums.n_rows
    found = rf"kernel add_rows: argument partial has {engine._arrays.held['partial'].size} bytes"
    expected = rf"expected at least {rows * 8 * 10**6}: float64 \({rows}, 1000000\), which is WIDE_SUM"
    with pytest.raises(EngineError, match=f"{found}, {expected}"):
        engine._kernels.add_rows(engine._queue, (64, 1), (64, 1), engine._arrays.held, numbers)


@pytest.mark.opencl
@pytest.mark.parametrize("missing", ["partial", "n_groups", "n_values"])
def test_arguments_that_are_missing(engine, missing):
    numbers = engine._fixed | {"first_made": 0, "n_values": 1}
    arrays = {name: array for name, array in engine._arrays.held.items() if name != missing}
    numbers.pop(missing, None)
    with pytest.raises(EngineError, match=f"kernel add_rows: '{missing}' is missing"):
        engine._kernels.add_rows(engine._queue, (64, 1), (64, 1), arrays, numbers)
