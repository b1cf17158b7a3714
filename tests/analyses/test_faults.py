"""Disks that are full and devices that fail: what happens is a stated rule, and what was reached is saved."""

import errno
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from interruptions import exhausted, lost
from small_alignments import write_fasta

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.sampling.analysis import sample
from plltool.analyses.sampling.settings import SampleOptions
from plltool.analyses.search.analysis import search
from plltool.analyses.supports import ultrafast
from plltool.analyses.supports.alrt import alrt
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.analyses.supports.search_supports import search_supports
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.analyses.topology_tests.analysis import topology_tests
from plltool.engine.opencl.device import forget_contexts
from plltool.engine.opencl.environment import OUTCOMES
from plltool.errors import DeviceError, DeviceLostError
from plltool.io import checkpoint as files
from plltool.run.evaluation import evaluate
from plltool.tree_search.effort import SearchOptions

OPTIONS = SearchOptions("fast", starts=2, radii=(1, 2), perturbations=3)
SETTINGS = {"model": "HKY+G2", "seed": 5, "workers": 1, "threads": 1, "options": OPTIONS}
REPLICATES = SETTINGS | {"replicates": 2, "options": SearchOptions("fast", radii=(1,), perturbations=2)}


@pytest.fixture(autouse=True)
def _every_state_is_written(monkeypatch):
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)


def outcome(result):
    return result.newick, float(result.lnl).hex()


class TestDisks:
    def test_a_full_disk_costs_the_checkpoint_not_the_run(self, few, tmp_path, monkeypatch, caplog):
        expected = search(few, device="numpy", **SETTINGS)
        write, written = files.write_bytes, []

        def write_some(path, content):
            written.append(path)
            if len(written) > 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            write(path, content)

        monkeypatch.setattr(files, "write_bytes", write_some)
        found = search(few, device="numpy", checkpoint=tmp_path / "saved", **SETTINGS)
        assert outcome(found) == outcome(expected)
        assert "could not be saved: [Errno 28] No space left on device" in found.warnings[-1]
        assert caplog.text.count("the run continues and tries again later") == 1
        monkeypatch.setattr(files, "write_bytes", write)
        events = []  # what was written before is still good
        again = search(few, device="numpy", checkpoint=tmp_path / "saved", listener=events.append, **SETTINGS)
        assert outcome(again) == outcome(expected)
        assert events

    def test_a_small_disk_that_fills_up(self, few, tmp_path):
        """A real one: the run ends with one line; the same command resumes it once there is room."""
        disk = tmp_path / "disk"
        disk.mkdir()
        if (
            os.geteuid()
            or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True
            ).returncode
        ):
            pytest.skip("only root may mount a disk, where that is allowed at all")
        try:
            alignment = write_fasta(tmp_path / "few.fasta", few)
            run = [sys.executable, "-c", "from plltool.cli import main; main(prog_name='plltool')", "search"]
            run += [str(alignment), "--device", "numpy", "--effort", "fast", "--prefix", str(disk / "x")]
            ballast = disk / "ballast"
            ballast.write_bytes(bytes((os.statvfs(disk).f_bavail - 4) * os.statvfs(disk).f_frsize))
            full = subprocess.run(run, capture_output=True, text=True, check=False)
            assert full.returncode == 1
            assert "No space left on device" in full.stderr.splitlines()[-1]
            assert "Traceback" not in full.stderr
            assert "internal error" not in full.stderr
            ballast.unlink()
            done = subprocess.run(run, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            left = {path.name for path in disk.iterdir()}
            assert {"x.best.nwk", "x.json", "x.log"} <= left
            assert "x.checkpoint" not in left
        finally:
            subprocess.run(["umount", disk], check=True)

    @pytest.mark.parametrize("obstacle", ["a file", "missing"])
    def test_a_folder_that_cannot_be_made_is_found_first(self, few, tmp_path, obstacle):
        folder = tmp_path / ("saved" if obstacle == "a file" else "nowhere/saved")
        if obstacle == "a file":
            folder.write_text("mine")
        events = []
        with pytest.raises(Exception, match=r"saved: cannot make the folder: "):
            search(few, device="numpy", checkpoint=folder, listener=events.append, **SETTINGS)
        assert not events


TREES = [f"({a},t02,(t03,(t04,({b},(t06,(t07,t08))))));" for a, b in (("t01", "t05"), ("t05", "t01"))]
FITTED = {"model": "HKY+G2", "threads": 1}


def compare_trees(few, device="cpu"):
    found = topology_tests(few, TREES, replicates=20, device=device, **FITTED)
    return found.newicks, found.tests.au.tolist()


def ancestors(few, device="cpu"):
    found = ancestral_states(few, TREES[0], device=device, **FITTED)
    return found.labelled, [part.probabilities.tolist() for part in found.ancestors]


def compare_neighbours(few, device="cpu"):
    best = search(few, "HKY+G2", device="numpy", effort="fast")
    return search_supports(best, ("sh-alrt", "abayes"), device=device, threads=1).supports.newick()


def excursions(few, device="cpu"):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ultrafast, "UFBOOT_STEP", 1)
        patched.setattr(ultrafast, "UFBOOT_MOST", 2)
        return ultrafast_bootstrap(few, TREES[0], replicates=20, device=device, **FITTED).newick()


def site_likelihoods(few, device="cpu"):
    return evaluate(few, TREES[0], site_lnl=True, device=device, **FITTED).site_lnl.tolist()


def likelihood_ratios(few, device="cpu"):
    return alrt(few, TREES[0], replicates=20, device=device, **FITTED).supports.newick()


QUESTIONS = {
    "evaluate": site_likelihoods,
    "alrt": likelihood_ratios,
    "search --supports": compare_neighbours,
    "ufboot": excursions,
    "test": compare_trees,
    "ancestral": ancestors,
}


def split_numbers(answer):
    """What an answer says without its numbers, and these."""
    parts = re.split(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", repr(answer))
    return parts[::2], [float(number) for number in parts[1::2]]


@pytest.mark.opencl
class TestLostDevices:
    @pytest.fixture(autouse=True)
    def _nothing_is_remembered(self):
        kept = OUTCOMES.copy()
        yield
        OUTCOMES.clear()
        OUTCOMES.update(kept)

    @pytest.mark.filterwarnings("ignore:numpy")
    def test_auto_goes_on_elsewhere(self, few, tmp_path, failing, caplog):
        """From the checkpoint on; the tree is that of numpy alone, and the record tells of both."""
        caplog.set_level("INFO", logger="plltool")
        expected = search(few, device="numpy", **SETTINGS)
        failing(60)
        found = search(few, device="auto", checkpoint=tmp_path / "saved", **SETTINGS)
        assert found.newick.split(":")[0] == expected.newick.split(":")[0]
        assert found.lnl == pytest.approx(expected.lnl, abs=1e-6)  # tolerance of the last optimisation
        assert "numpy" in found.device
        assert "lost during the run: " in found.reason
        assert "INVALID_COMMAND_QUEUE; the run continues on the next device" in caplog.text
        assert "resuming the search from" in caplog.text

    @pytest.mark.filterwarnings("ignore:numpy")
    @pytest.mark.parametrize("name", [*QUESTIONS])
    def test_every_question_goes_on(self, few, failing, caplog, name):
        """With the answer of numpy, to the tolerance of the last optimisation; a device asked for by name does not."""
        ask = QUESTIONS[name]
        (expected, numbers), launches = split_numbers(ask(few, "numpy")), failing(10**9)
        ask(few)
        failing(launches[0] - 1)
        with pytest.raises(DeviceError, match="INVALID_COMMAND_QUEUE"):
            ask(few)
        failing(launches[0] - 1)
        found, own = split_numbers(ask(few, "auto"))
        assert found == expected
        assert own == pytest.approx(numbers, abs=2e-3)
        assert caplog.text.count("the run continues on the next device") == 1

    @pytest.mark.filterwarnings("ignore:numpy")
    def test_all_goes_on_without_the_last_device(self, few, tmp_path, failing, monkeypatch):
        monkeypatch.setattr("plltool.engine.several.all_indices", lambda ranked, _: [ranked[0].index])
        failing(60)
        found = search(few, device="all", checkpoint=tmp_path / "saved", **SETTINGS)
        assert "numpy" in found.device
        assert "lost during the run: " in found.reason

    @pytest.mark.filterwarnings("ignore:numpy")
    def test_replicates_go_on(self, few, failing):
        expected = bootstrap(few, device="numpy", **REPLICATES)
        failing(60)
        assert bootstrap(few, device="auto", **REPLICATES).lnls == pytest.approx(expected.lnls, abs=1e-3)

    @pytest.mark.filterwarnings("ignore:numpy")
    def test_chains_go_on_from_their_samples(self, few, tmp_path, failing, always, caplog):
        caplog.set_level("INFO", logger="plltool")
        failing(20)
        found = sample(few, checkpoint=tmp_path / "saved", **SAMPLED | {"device": "auto"})
        assert found.generations == CHAINS.generations
        assert "lost during the run: " in found.reason
        assert "resuming from generation" in caplog.text

    def test_a_lost_device_is_told_of_by_other_processes(self, few, failing):
        failing(5)
        with pytest.raises(DeviceLostError) as found:
            search(few, device="opencl", **SETTINGS)
        again = pickle.loads(pickle.dumps(found.value))
        assert (str(again), again.device) == (str(found.value), found.value.device)

    def test_a_device_asked_for_by_name_ends_the_run(self, few, failing):
        failing(60)
        with pytest.raises(DeviceError, match="INVALID_COMMAND_QUEUE") as found:
            search(few, device="opencl", **SETTINGS)
        assert "cannot be used" not in str(found.value)  # nor is it tried again


@pytest.mark.opencl
class TestDevices:
    def test_a_device_that_disappears_ends_the_run_with_what_was_reached(self, few, tmp_path, failing, monkeypatch):
        expected = search(few, device="cpu", **SETTINGS)
        launches = failing(10**9, lost)
        search(few, device="cpu", **SETTINGS)
        for share in (0.2, 0.6, 0.95):
            run = {"device": "cpu", "checkpoint": tmp_path / f"saved-{share}", **SETTINGS}
            failing(int(share * launches[0]), lost)
            with pytest.raises(DeviceError, match="INVALID_COMMAND_QUEUE") as info:
                search(few, **run)
            assert "\n" not in str(info.value)
            assert (run["checkpoint"] / "best.nwk").exists()
            failing(10**9, lost)
            events = []
            assert outcome(search(few, listener=events.append, **run)) == outcome(expected)

    def test_memory_that_is_short_on_the_way_is_done_with_less(self, few, tmp_path, failing, caplog):
        run = {"device": "cpu", **SETTINGS, "threads": 2}  # a single thread needs the least after the first halving
        expected = search(few, **run)
        failing(40, exhausted, last=41)
        events = []
        found = search(few, listener=events.append, checkpoint=tmp_path / "saved", **run)
        assert outcome(found) == outcome(expected)
        assert caplog.text.count("bytes for conditional likelihoods instead of") == 2
        assert [event.stage for event in events].count("start") == 2, "no climb started over"

    def test_replicates_with_less_memory(self, few, failing, caplog):
        expected = bootstrap(few, device="cpu", **REPLICATES)
        launches = failing(10**9, exhausted)
        bootstrap(few, device="cpu", **REPLICATES)
        failing(launches[0] - 3, exhausted, last=launches[0] - 3)
        found = bootstrap(few, device="cpu", **REPLICATES)
        assert found.lnls == expected.lnls
        assert [tree.ends.tolist() for tree in found.trees] == [tree.ends.tolist() for tree in expected.trees]
        assert caplog.text.count("bytes for conditional likelihoods instead of") == 1

    @pytest.mark.parametrize("name", [*QUESTIONS])
    def test_questions_of_a_tree_with_less_memory(self, few, failing, caplog, name):
        ask = QUESTIONS[name]
        launches = failing(10**9, exhausted)
        expected = ask(few)
        failing(launches[0] - 1, exhausted, last=launches[0] - 1)
        assert ask(few) == expected
        assert caplog.text.count("bytes for conditional likelihoods instead of") == 1

    @pytest.mark.parametrize("asked", [{}, {"site_lnl": True}])
    def test_what_follows_a_search_with_less_memory(self, few, failing, caplog, asked):
        """Identical sequences are put back, and the lnL of sites asked for, by an engine of its own."""
        twins = few | {"twin": next(iter(few.values()))}
        run = {"device": "cpu", **SETTINGS, **asked}
        launches = failing(10**9, exhausted)
        expected = search(twins, **run)
        failing(launches[0], exhausted, last=launches[0])
        found = search(twins, **run)
        assert outcome(found) == outcome(expected)
        assert not asked or np.array_equal(found.site_lnl, expected.site_lnl)
        assert caplog.text.count("bytes for conditional likelihoods instead of") == 1

    def test_memory_that_never_suffices_ends_the_run(self, few, tmp_path, failing):
        failing(40, exhausted)
        with pytest.raises(DeviceError, match="memory: found"):
            search(few, device="cpu", checkpoint=tmp_path / "saved", **SETTINGS)
        failing(10**9, exhausted)
        again = search(few, device="cpu", checkpoint=tmp_path / "saved", **SETTINGS)
        assert outcome(again) == outcome(search(few, device="cpu", **SETTINGS))

    @pytest.mark.parametrize("device", ["auto", "cpu"])
    def test_kernels_that_do_not_build(self, few, monkeypatch, device):
        """By itself plltool takes the next device, in the end numpy; a device that was asked for fails."""
        cl = pytest.importorskip("pyopencl")
        forget_contexts()  # kernels are built for a new one

        def build(self, *_, **__):
            raise cl.RuntimeError("clBuildProgram failed: BUILD_PROGRAM_FAILURE\nline 1: error")

        monkeypatch.setattr(cl.Program, "build", build)
        if device == "auto":
            found = search(few, device=device, **SETTINGS)
            assert found.device.startswith("numpy") or "numpy" in found.reason
            assert "BUILD_PROGRAM_FAILURE" in found.reason
        else:
            with pytest.raises(DeviceError, match=r"kernels do not build on .*BUILD_PROGRAM_FAILURE"):
                search(few, device=device, **SETTINGS)

    def test_what_a_driver_says_of_memory_when_an_engine_is_made(self, few, monkeypatch):
        cl = pytest.importorskip("pyopencl")
        from plltool.engine.opencl.arrays import DeviceArrays

        def keep(self, name, array, sizes):
            raise exhausted(cl)

        monkeypatch.setattr(DeviceArrays, "keep", keep)
        with pytest.raises(DeviceError, match=r"memory: found|ALLOCATION_FAILURE"):
            search(few, device="cpu", **SETTINGS)


CHAINS = SampleOptions(generations=60, chains=2, sample_every=4, burnin=0.5)
SAMPLED = {"model": "HKY+FO+G2", "device": "cpu", "threads": 1, "seed": 4, "options": CHAINS}


@pytest.mark.opencl
@pytest.mark.usefixtures("always")
class TestSampling:
    """Chains on a device that fails: what has been saved goes on, and ends with the same bits."""

    def told(self, found):
        return {name: text for name, text in found.texts().items() if name != "sample.json"}, found.acceptance

    def test_a_device_that_disappears_ends_the_run_which_can_go_on(self, few, tmp_path, failing, caplog):
        caplog.set_level("INFO", "plltool")
        launches = failing(10**9, lost)
        expected = self.told(sample(few, **SAMPLED))
        for share in (0.3, 0.6, 0.99):
            run = {"checkpoint": tmp_path / f"saved-{share}", **SAMPLED}
            failing(int(share * launches[0]), lost)
            with pytest.raises(DeviceError, match="INVALID_COMMAND_QUEUE") as info:
                sample(few, **run)
            assert "\n" not in str(info.value)
            failing(10**9, lost)
            assert self.told(sample(few, **run)) == expected
        assert caplog.text.count("resuming from generation") == 3

    @pytest.mark.parametrize("saved", [True, False])
    def test_memory_that_is_short_on_the_way_is_done_with_less(
        self, few, tmp_path, failing, caplog, saved, monkeypatch
    ):
        """Without walks, which need memory, all samples are the same."""
        monkeypatch.setattr("plltool.analyses.sampling.likelihoods.WALK_WORK", 0)
        launches = failing(10**9, exhausted)
        expected = self.told(sample(few, **SAMPLED))
        middle = launches[0] // 2
        failing(middle, exhausted, last=middle)
        caplog.set_level("INFO", "plltool")
        found = sample(few, checkpoint=tmp_path / "saved" if saved else None, **SAMPLED)
        assert self.told(found) == expected
        assert caplog.text.count("bytes for conditional likelihoods instead of") == 1
        assert caplog.text.count("resuming from generation") == saved

    def test_memory_that_never_suffices_ends_the_run(self, few, failing):
        failing(20, exhausted)
        with pytest.raises(DeviceError, match="memory: found") as info:
            sample(few, **SAMPLED)
        assert "\n" not in str(info.value)
