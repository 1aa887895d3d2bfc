"""What the tests of pages share: a page read as strictly as a browser need not."""

import html.parser
import re

VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}
BLOCKS = {"p", "h1", "h2", "h3", "li", "tr", "th", "td", "figcaption", "title", "div"}
INSIDE = {"sup": "^", "br": " "}


class Page(html.parser.HTMLParser):
    """The text of a page, block by block. A tag that is not closed where it was opened is an error."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.open, self.tags, self.attributes, self._text = [], [], [], []
        self.feed(self.source)
        self.close()
        if self.open:
            raise ValueError(f"{self.open} is never closed")
        self.text = re.sub(r"[ \N{NO-BREAK SPACE}]+", " ", "".join(self._text))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag in BLOCKS:
            self._text.append("\n")
        elif tag in INSIDE:
            self._text.append(INSIDE[tag])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> at {self.getpos()} closes another")

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self._text.append(data)

    @property
    def title(self):
        return next(line.strip() for line in self.text.split("\n") if line.strip())

    def references(self):
        """All that a browser might load from elsewhere or run."""
        found = [value for name, value in self.attributes if name in ("src", "href", "xlink:href", "data", "action")]
        found += [name for name, _ in self.attributes if name.startswith("on")]
        return found + re.findall(r"https?:|url\(|@import|<script|<iframe|<link", self.source)
