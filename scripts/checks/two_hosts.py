#!/usr/bin/env python3
"""Try MPI runs over two hosts: network namespaces of this machine, which nothing but a link of their own joins.

Needs root, the command ip, and the extra mpi. It compares the results over two hosts with those of one, to the byte,
and counts what goes over the link by round. Then, during a search, it cuts the link, and lets one host die: the run
must end with one line that says so, and go on with one rank less, to the end that it has undisturbed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HOSTS = {"10.77.0.1": "plltool1", "10.77.0.2": "plltool2"}  # addresses and namespaces
LINK = "wire0"  # name of the network interface in both namespaces
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
# mpiexec calls this in place of ssh: options, the host, a command
REMOTE = """#!/bin/sh
while case "$1" in -*) true;; *) false;; esac; do shift; done
case "$1" in {cases} esac
shift
exec ip netns exec "$name" unshare --uts sh -c "hostname $name; exec $*"
"""
# Ranks of one machine would exchange through its memory, and seconds are enough on a machine that is not busy
TRANSPORT = ("-genv", "UCX_TLS", "tcp,self")
LAUNCHER_PATIENCE = 60.0  # seconds within which mpiexec may end by itself, longer than ranks need
PATIENT = "from plltool.processes import ranks; ranks.BEAT, ranks.PATIENCE = 1.0, {patience}; "
PROGRAM = "from plltool.cli import main; main(prog_name='plltool')"
SETTINGS = ("--model", "GTR+F+G4", "--seed", "7", "--device", "numpy", "--threads", "1", "--redo")


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@contextmanager
def two_hosts():
    """Two namespaces, which a link joins; they are removed at the end, with all their processes."""
    first, second = HOSTS.values()
    remove_hosts()
    try:
        for name in HOSTS.values():
            ip("netns", "add", name)
        ip("link", "add", LINK, "netns", first, "type", "veth", "peer", "name", LINK, "netns", second)
        for address, name in HOSTS.items():
            ip("-n", name, "addr", "add", f"{address}/24", "dev", LINK)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", LINK, "up")
        while any(own["operstate"] != "UP" for own in link_ends()):
            time.sleep(0.05)
        yield
    finally:
        remove_hosts()


def remove_hosts() -> None:
    for name in HOSTS.values():
        if name in ip("netns", "list").split():
            kill_host(name)
            ip("netns", "del", name)


def cut_link() -> None:
    ip("-n", next(iter(HOSTS.values())), "link", "set", LINK, "down")


def kill_host(name: str) -> None:
    """End all processes of a host."""
    for process in ip("netns", "pids", name).split():
        subprocess.run(["kill", "-9", process], capture_output=True)


def fail_host() -> None:
    """The second host loses its power: nothing that it would still say comes through."""
    cut_link()
    kill_host(tuple(HOSTS.values())[1])


def link_ends() -> list[dict]:
    """What ip says of both ends of the link."""
    return [json.loads(ip("-n", name, "-s", "-j", "link", "show", LINK))[0] for name in HOSTS.values()]


def bytes_sent() -> int:
    """What both hosts have sent over the link so far, with the headers of all packets."""
    return sum(own["stats64"]["tx"]["bytes"] for own in link_ends())


class Runs:
    """Commands of plltool in a folder, over both hosts or on one."""

    def __init__(self, folder: Path, patience: float):
        self.folder = folder
        self.program = PATIENT.format(patience=patience) + PROGRAM
        self.remote = folder / "remote"
        self.remote.write_text(REMOTE.format(cases=" ".join(f"{own}) name={name};;" for own, name in HOSTS.items())))
        self.remote.chmod(0o755)

    def start(self, *arguments: str, ranks: int = 2) -> subprocess.Popen:
        """plltool on some ranks of both hosts in turn; mpiexec runs on the first."""
        launcher = ("-launcher", "ssh", "-launcher-exec", str(self.remote), "-hosts", ",".join(HOSTS), "-ppn", "1")
        first = next(iter(HOSTS.values()))
        inside = ("ip", "netns", "exec", first, "unshare", "--uts", "sh", "-c", f'hostname {first}; exec "$@"', "sh")
        own = (sys.executable, "-P", "-c", self.program, *arguments)
        command = [*inside, MPIEXEC, *launcher, *TRANSPORT, "-n", str(ranks), *own]
        return self._popen(command)

    def _popen(self, command: list[str]) -> subprocess.Popen:
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=environment, text=True, **pipes)

    def on_one_host(self, *arguments: str, ranks: int) -> str:
        """plltool on some ranks of this machine; what it said."""
        return self.finish(
            self._popen([MPIEXEC, "-n", str(ranks), sys.executable, "-P", "-c", self.program, *arguments])
        )

    def finish(self, process: subprocess.Popen) -> str:
        said = process.communicate()[1]
        if process.returncode:
            sys.exit(f"exit status {process.returncode}: {said}")
        return said

    def record(self, prefix: str) -> dict:
        return json.loads((self.folder / f"{prefix}.json").read_text())


def compare(runs: Runs, data: str, name: str, *extra: str, ranks: int) -> None:
    """The same search over two hosts and on this machine."""
    before, began = bytes_sent(), time.monotonic()
    process = runs.start("search", data, *SETTINGS, *extra, "--prefix", "two", ranks=ranks)
    assert process.stderr is not None
    for line in process.stderr:
        if " lnL " in line:
            print(f"{bytes_sent() - before:9d} bytes {line.rstrip()}")
    runs.finish(process)
    seconds, sent = time.monotonic() - began, bytes_sent() - before
    runs.on_one_host("search", data, *SETTINGS, *extra, "--prefix", "one", ranks=ranks)
    trees = [(runs.folder / f"{prefix}.best.nwk").read_bytes() for prefix in ("one", "two")]
    records = [runs.record(prefix) for prefix in ("one", "two")]
    same = trees[0] == trees[1] and records[0]["lnl"] == records[1]["lnl"]
    rounds, counters = len(records[1]["trace"]), records[1]["counters"]
    print(
        f"{name}: {seconds:.1f} s, {sent} bytes over the link in {rounds} rounds, sums {counters.get('exchanges', 0)}"
    )
    print(f"{name}: {'the same bytes as on one host' if same else 'NOT THE SAME AS ON ONE HOST'}", flush=True)
    if not same:
        sys.exit(1)


def end_by_itself(process: subprocess.Popen) -> tuple[str, bool]:
    """What mpiexec says before it ends, and whether it does so only when it is interrupted."""
    for wait in (LAUNCHER_PATIENCE, 1.0):
        try:
            return process.communicate(timeout=wait)[1], wait < LAUNCHER_PATIENCE
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    return process.communicate()[1], True


def disturb(runs: Runs, data: str, name: str, harm, *extra: str, ranks: int) -> None:
    """A search that is disturbed as soon as it has a checkpoint, and goes on with one rank less."""
    process = runs.start("search", data, *SETTINGS, *extra, "--prefix", "harmed", ranks=ranks)
    while not list((runs.folder / "harmed.checkpoint").glob("*.state")):
        if process.poll() is not None:
            sys.exit(f"{name}: the search ended before it had a checkpoint: {process.communicate()[1]}")
        time.sleep(0.05)
    harm()
    harmed = time.monotonic()
    said, is_stuck = end_by_itself(process)
    lines = [line for line in said.splitlines() if "error" in line and line.startswith("plltool")]
    after = "when interrupted twice, as it waited for the lost host" if is_stuck else "by itself"
    print(f"{name}: mpiexec ended {after}, {time.monotonic() - harmed:.0f} s later: {' | '.join(lines)}")
    resumed = runs.on_one_host("search", data, *SETTINGS[:-1], *extra, "--prefix", "harmed", ranks=ranks - 1)
    runs.on_one_host("search", data, *SETTINGS, *extra, "--prefix", "whole", ranks=ranks - 1)
    difference = runs.record("harmed")["lnl"] - runs.record("whole")["lnl"]
    fine = process.returncode and len(lines) == 1 and "resuming the search" in resumed and abs(difference) < 1e-6
    print(f"{name}: resumed on one rank less, lnL {difference:+.1e} to that of a whole search", flush=True)
    if not fine:
        sys.exit(f"{name}: NOT AS EXPECTED: {said[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", nargs="?", default=REPOSITORY / "data" / "hard.fasta", type=Path)
    parser.add_argument("--patience", type=float, default=10.0, help="seconds after which a rank is lost")
    asked = parser.parse_args()
    data = str(asked.alignment.resolve())
    with tempfile.TemporaryDirectory(prefix="two-hosts-") as folder:
        runs = Runs(Path(folder), asked.patience)
        with two_hosts():
            compare(runs, data, "patterns over ranks", "--effort", "fast", ranks=2)
        with two_hosts():
            compare(runs, data, "--workers mpi", "--effort", "fast", "--starts", "2", "--workers", "mpi", ranks=3)
        for name, harm in (("link cut", cut_link), ("host dies", fail_host)):
            for extra, ranks in (((), 2), (("--workers", "mpi", "--starts", "2"), 3)):
                with two_hosts():
                    disturb(runs, data, " ".join([name, *extra[:2]]), harm, *extra, ranks=ranks)


if __name__ == "__main__":
    main()
