"""Tables of dates: every form of a date, the columns, and errors with their line."""

import datetime

import pytest
from refusals import refused

from plltool.io.table_reader import decimal_year, parse_date, read_dates


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2011.37", 2011.37, 2011.37),
        ("-350", -350.0, -350.0),
        ("2011-01-01", 2011 + 0.5 / 365, 2011 + 0.5 / 365),
        ("2011-1-1", 2011 + 0.5 / 365, 2011 + 0.5 / 365),  # TreeTime 0.12.1 has the same
        ("2012-12-31", 2012 + 365.5 / 366, 2012 + 365.5 / 366),
        ("2011-02-XX", 2011 + 31.5 / 365, 2011 + 58.5 / 365),
        ("2012-02", 2012 + 31.5 / 366, 2012 + 59.5 / 366),
        ("2011-XX-XX", 2011 + 0.5 / 365, 2011 + 364.5 / 365),
        ("2011-xx-xx", 2011 + 0.5 / 365, 2011 + 364.5 / 365),
        ("[2011.2:2011.5]", 2011.2, 2011.5),
        ("[2011-01-01:2011.5]", 2011 + 0.5 / 365, 2011.5),
        ("[2010-XX-XX:2011-12-31]", 2010 + 0.5 / 365, 2011 + 364.5 / 365),
        ("2011-2013.5", 2011.0, 2013.5),
        ("b(2011,2013.5)", 2011.0, 2013.5),
        ("b(2011-XX-XX, 2013.5)", 2011 + 0.5 / 365, 2013.5),
        ("2011/02/01", 2011 + 31.5 / 365, 2011 + 31.5 / 365),
        ("2011.2.1", 2011 + 31.5 / 365, 2011 + 31.5 / 365),
        ("20110201", 2011 + 31.5 / 365, 2011 + 31.5 / 365),
        ("2011-02-01 00:00:00", 2011 + 31.5 / 365, 2011 + 31.5 / 365),
        ("2011-02-01T12:30Z", 2011 + 31.5 / 365, 2011 + 31.5 / 365),
        ("1-Feb-2011", 2011 + 31.5 / 365, 2011 + 31.5 / 365),  # GenBank
        ("FEB-2012", 2012 + 31.5 / 366, 2012 + 59.5 / 366),
    ],
)
def test_every_form(text, first, last):
    assert parse_date(text) == pytest.approx((first, last), rel=1e-15)


@pytest.mark.parametrize("text", ["", "?", "NA", "n/a", "Unknown", "XXXX-XX-XX"])
def test_unknown(text):
    assert parse_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "2011-13-01",
        "2011-02-30",
        "2011-XX-05",
        "17/05/2011",
        "2011/05-17",
        "2011/05",
        "20111301",
        "1-Foo-2011",
        "31-Feb-2011",
        "[2011.2]",
        "[a:b]",
        "nan",
        "inf",
        "May",
        "0000-01-01",
        "b(2011)",
        "2011-201",
    ],
)
def test_no_date(text):
    with refused("as a date, expected a year such as 2011.37, a day such as 2011-05-17"):
        parse_date(text)


def test_a_range_that_runs_backwards():
    with refused("found a range from 2012 to 2011, expected the earlier date first"):
        parse_date("[2012:2011]")
    with refused("found a range from 2012 to 2011, expected the earlier date first"):
        parse_date("2012-2011")


def test_days_are_those_of_treetime():
    utils = pytest.importorskip("treetime.utils")
    for day in (datetime.date(1999, 12, 31), datetime.date(2000, 2, 29), datetime.date(2001, 3, 1)):
        assert decimal_year(day) == utils.numeric_date(day)


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_columns_are_found_by_their_names(write, separator):
    rows = [
        ("accession", "country", "Strain", "Collection_Date"),
        ("X1", "FI", "a", "2001-01-XX"),
        ("X2", "", "b", "?"),
    ]
    path = write("\n".join(separator.join(row) for row in rows) + "\n\n", "dates.txt")
    found = read_dates(path)
    assert [(row.line, row.name, row.date is None) for row in found] == [(2, "X1", False), (3, "X2", True)]
    assert [row.name for row in read_dates(path, "Strain")] == ["a", "b"]


NO_TAXA = "found columns 'a', 'b', '2001', expected one of taxa called name, strain, accession or taxon, or"
NO_DATES = "found columns 'name', 'day', expected one of dates called year, or with the word date in its"


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("name\tdate\na\t2001\nb\t31.12.2001", None, "line 3: taxon 'b': found '31.12.2001' as a date, expected"),
        ("name\tdate\na\t2001\na\t2002", None, "line 3: taxon 'a': is on line 2, too; expected one date"),
        ("name\tdate\na", None, "line 2: taxon 'a': found 1 fields, expected 2"),
        ("a\tb\t2001\nb\tb\t2002", None, NO_TAXA),
        ("a\t2001\nb\t2002", "2001", NO_TAXA.replace("'b', ", "")),
        ("name\tday\na\t2002", None, NO_DATES),
        ("name\tdate\na\t2001", "day", "found columns 'name', 'date', expected one called 'day'"),
        ("", None, "found no names of columns"),
    ],
)
def test_refused(write, text, column, problem):
    path = write(text + "\n" * bool(text), "d.tsv")
    with refused("", f"{path}: {problem}"):
        read_dates(path, None, column)


@pytest.mark.parametrize(
    ("text", "name", "first"),
    [
        ("taxon,year\na,2001", "a", 2001),
        ("Taxa,Year\na,2001", "a", 2001),
        ("taxon,name,year\nb,a,2005", "a", 2005),
        ("name,year,date\na,2001,2005", "a", 2005),
        ('name,date\n"A/Perth, 16",2009.5', "A/Perth, 16", 2009.5),
    ],
)
def test_columns_that_other_programs_use(write, text, name, first):
    """Where both kinds of names are there, TreeTime's win."""
    (row,) = read_dates(write(f"{text}\n", "d.csv"))
    assert (row.name, row.date.first) == (name, first)


@pytest.mark.parametrize(
    "text",
    [
        "name;date;country\na;2011,5;'FI, south'\nb;2012;FI",  # a spreadsheet where commas are decimal
        "a\t2011.5\nb\t2012",  # BEAST's dates of tips have no names of columns
        "a 2011.5\nb   2012  ",
        "2\na 2011.5\nb 2012",  # LSD2
    ],
)
def test_tables_of_other_programs(write, text):
    found = read_dates(write(f"{text}\n", "dates.txt"))
    assert [(row.name, row.date) for row in found] == [("a", (2011.5, 2011.5)), ("b", (2012, 2012))]
    assert found[1].line - found[0].line == 1
    assert found[1].line == len(text.split("\n"))
