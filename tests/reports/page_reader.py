"""A page as a test reads it: its elements, the text of each, its pictures, and what it would load."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

SVG = "{http://www.w3.org/2000/svg}"


class PageReader(HTMLParser):
    """Collects (name, attributes, text) of every element; raises AssertionError where tags do not match."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self._open = []

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        if tag not in ("meta", "input"):
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> without a start"
        assert self._open.pop()[0] == tag, f"</{tag}> ends another element"

    def handle_data(self, data):
        for element in self._open:
            element[2] += data


def read_page(html):
    reader = PageReader()
    reader.feed(html)
    reader.close()
    assert not reader._open, "an element without an end"
    return reader.elements


def texts_of(elements, tag):
    return [text for name, _, text in elements if name == tag]


def pictures_of(html):
    """All pictures of a page."""
    found = re.findall(r"<svg.*?</svg>", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL), re.DOTALL)
    return [ET.fromstring(text) for text in found]


def columns_of(picture):
    """How far from the left each text of a picture stands, by the text."""
    return {text.text: float(text.get("x")) for text in picture.iter(f"{SVG}text")}
