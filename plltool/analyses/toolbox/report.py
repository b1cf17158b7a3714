"""`report` makes a report of the runs whose records share a prefix."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from plltool.errors import InputError
from plltool.io.files import read_content, write_text
from plltool.progress import log
from plltool.registry import name_file
from plltool.reports.records import Records
from plltool.reports.sections import HTML_BEGIN, TEXT_BEGIN, describe_runs, write_html_page, write_text_page


@dataclass(frozen=True, repr=False)
class Report:
    """A report of the runs that share a prefix: one page that loads nothing, and the same as plain text."""

    prefix: Path
    html: str
    text: str

    def __repr__(self) -> str:
        return f"<Report: {self.prefix}>"

    def write(self) -> list[Path]:
        """Write PREFIX.html and PREFIX.txt, and return the paths of those written; InputError if that fails.

        They replace earlier reports. A file of such a name that is no report stays, with a warning.
        """
        written = []
        for ending, text, begin in (("html", self.html, HTML_BEGIN), ("txt", self.text, TEXT_BEGIN)):
            path = name_file(self.prefix, ending)
            if path.exists() and not read_content(path).startswith(begin.encode()):
                problem = "because the existing file is not a plltool report; choose another --prefix"
                log.warning("%s: not written, %s", path, problem)
                continue
            write_text(path, text)
            written.append(path)
        return written


def report(prefix: str | PathLike[str]) -> Report:
    """A report of the runs whose records share a prefix, made from these files alone.

    It shows the tree, the data, the model, the search, supports, tests of trees, concordance, placements, ancestral
    states, dates, samples of a posterior distribution, warnings, device and versions, and a paragraph of methods with
    the references that the runs owe.

    Parameters
    ----------
    prefix : as of `plltool search`: PREFIX.json, PREFIX.support.json, PREFIX.test.json, PREFIX.select-model.json,
        PREFIX.alrt.json, PREFIX.date.json, PREFIX.evaluate.json, PREFIX.place.json, PREFIX.jplace,
        PREFIX.ancestral.json, PREFIX.mutations.tsv, PREFIX.cf.json, PREFIX.genes.tsv, PREFIX.sample.json and
        PREFIX.bootstraps.nwk are read, if they exist

    Raises InputError if there is none of these files, or one cannot be read.
    """
    records = Records.read(Path(prefix))
    for line in records.left_out:
        log.warning("report: %s", line)
    try:
        sections = describe_runs(records)
        name = Path(prefix).name
        return Report(Path(prefix), write_html_page(name, sections), write_text_page(name, sections))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = f"found {type(error).__name__}: {error}"
        raise InputError(f"{prefix}: {found} in a record, expected records as plltool writes them") from error
