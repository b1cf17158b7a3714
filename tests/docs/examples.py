"""The examples of a page: command lines with what they print, and Python.

Lines that begin with `$ ` in a block marked ``console`` are command lines, which a backslash at the end continues. The
lines below one are what it prints, on stdout or on stdout and stderr. A line `...` stands for any lines, `...` within a
line for any text. Numbers need only be near, seconds not even that. A comment ``# exit status 3`` at the end of a
command line says how it ends, if not with 0. The comment ``<!-- needs OpenCL -->`` before a block leaves it out where
there is no device. The blocks marked ``python`` of a page run as one program.
"""

import re
from dataclasses import dataclass, field

BLOCK = re.compile(r"(?:<!-- (?P<need>needs OpenCL) -->\n\n)?^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
STATUS = re.compile(r"\s+# exit status (\d+)$")
NOT_RUN = re.compile(r"(pip install|scripts/quickstart\.sh|scripts/check\.sh|mpiexec)\b")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
SECONDS = re.compile(rf"(?<=seconds: )({NUMBER})|({NUMBER})(?= s\b)")
TOLERANCE = 0.02  # of a number's size: another device, another end of an optimisation


@dataclass
class Command:
    """A command line, the lines shown below it, and its exit status."""

    line: str
    status: int
    needs_opencl: bool
    shown: list[str] = field(default_factory=list)


def blocks(text, kind):
    """(text, whether it needs OpenCL) of the blocks of a kind."""
    return [(found["text"], found["need"] is not None) for found in BLOCK.finditer(text) if found["kind"] == kind]


def commands(text):
    """The command lines of a page, in their order, without those that install or check."""
    found = []
    for block, needs_opencl in blocks(text, "console"):
        for line in re.sub(r" *\\\n *", " ", block).splitlines():
            if line.startswith("$ "):
                status = STATUS.search(line)
                line = STATUS.sub("", line.removeprefix("$ "))
                found.append(Command(line, int(status[1]) if status else 0, needs_opencl))
            else:
                found[-1].shown.append(line)
    return [command for command in found if not NOT_RUN.match(command.line)]


def matches(shown, printed):
    """Whether output is what a page shows."""
    numbers, pattern = [], ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
            continue
        line = SECONDS.sub("...", line)
        for piece in re.split(rf"(\.\.\.(?!\d)|{NUMBER})", line):
            if piece == "...":
                pattern += ".*?"
            elif re.fullmatch(NUMBER, piece):
                numbers.append(float(piece))
                pattern += f"({NUMBER})"
            else:
                pattern += r"\s*" + r"\s+".join(map(re.escape, piece.split())) + r"\s*" if piece else ""
        pattern += r"[ \t]*\n"
    found = re.fullmatch(pattern, printed)
    return found is not None and all(
        abs(float(text) - number) <= max(TOLERANCE * abs(number), 0.01)
        for text, number in zip(found.groups(), numbers, strict=True)
    )
