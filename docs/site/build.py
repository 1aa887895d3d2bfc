#!/usr/bin/env python3
"""Makes the site of documentation, by Doxygen, which works offline and has one box to search pages and headers:

    docs/site/build.py FOLDER

Pages are README.md, those of docs/ and others of the root; FOLDER/html/index.html is the first. A link that leads nowhere, or
anything else that Doxygen warns of, ends it with exit code 1. An earlier site in FOLDER is replaced; folders html or sources
there that are of nothing made here are left, with exit code 2.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
FOLDERS = ("sources", "html")
MARK = ".halflab-site"  # in a folder whose FOLDERS were made here


def name_of(page):
    return "index" if page.name == "README.md" else page.stem.lower()


def anchor_of(page, heading):
    """As GitHub names a heading, and apart from those of other pages."""
    words = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).strip().replace(" ", "-")
    return f"{name_of(page)}-{words}"


class Page:
    """One page in Doxygen's words: headings with anchors, links by these, pictures by where they are copied to."""

    def __init__(self, file, html):
        self.file, self.html, self.level = file, html, 0

    def text(self):
        text = re.sub(r"<!--.*?-->\n?", "", self.file.read_text(), flags=re.DOTALL)
        parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(part if part.startswith("```") else self.prose(part) for part in parts)

    def prose(self, text):
        text = re.sub(r"^(#+) (.*)$", self.heading, text, flags=re.MULTILINE)
        text = re.sub(r'<img src="([^"]+)" ([^>]*)>', lambda found: self.picture(found[1], found[2]), text)
        text = re.sub(r"!\[([^]]*)\]\(([^)]+)\)", lambda found: self.picture(found[2], f'alt="{found[1]}"'), text)
        return re.sub(r"\[([^]]+)\]\(([^)\s]+)\)", lambda found: self.link(found[1], found[2]), text)

    def heading(self, found):
        text = found[2]
        self.level = min(len(found[1]), self.level + 1)  # what leaves a level out is no page to Doxygen
        if self.level > 1:
            return f"{self.level * '#'} {text} {{#{anchor_of(self.file, text)}}}"
        title = text.replace("`", "")  # the tree of pages shows it as it is
        return f"# {title} {{#{'mainpage' if name_of(self.file) == 'index' else name_of(self.file)}}}"

    def picture(self, source, attributes):
        """A copy of its own in the site, lest two of one name meet."""
        file = (self.file.parent / source).resolve()
        name = str(file.relative_to(ROOT)).replace("/", "-")
        shutil.copy(file, self.html / name)
        return f'<img src="{name}" {attributes}>'

    def link(self, text, target):
        """Links to pages and their headings stay; what they say of other files stays as text."""
        if re.match(r"\w+:", target):
            return f"[{text}]({target})"
        path, _, anchor = target.partition("#")
        file = (self.file.parent / path).resolve() if path else self.file
        if file not in PAGES:
            return text
        if not anchor:
            return f"[{text}](@ref {'mainpage' if name_of(file) == 'index' else name_of(file)})"
        return f"[{text}](@ref {name_of(file)}-{anchor})"


def header_text(file):
    """The comment that begins a header is the header's, and in comments < and # are what they are, but for backticks."""
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        if not (found := re.match(r"(\s*///)(.*)", line)):
            continue
        parts = re.split(r"(`[^`]*`)", found[2])
        plain = "".join(part if part.startswith("`") else re.sub(r"([<#]|::)", r"\\\1", part) for part in parts)
        plain = re.sub(r" \.\.$", " ...", plain)  # two dots would end a list
        begins = number > 0 and lines[number - 1] == "#pragma once"
        lines[number] = ("/// \\file\n" if begins else "") + found[1] + plain
    return "\n".join(lines) + "\n"


def begin(site):
    """Empty FOLDERS in a folder that has none, or those of an earlier site."""
    for folder in FOLDERS:
        if (site / folder).exists() and not (site / MARK).exists():
            print(f"docs/site/build.py: {site / folder} is not of an earlier site; name another folder, or remove it",
                  file=sys.stderr)
            sys.exit(2)
    site.mkdir(parents=True, exist_ok=True)
    (site / MARK).touch()
    for folder in FOLDERS:
        shutil.rmtree(site / folder, ignore_errors=True)
        (site / folder).mkdir()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = pathlib.Path(sys.argv[1]).resolve()
    begin(site)
    for page in PAGES:
        (site / "sources" / page.name).write_text(Page(page, site / "html").text())
    for header in [*ROOT.glob("fp16/**/*.h"), *ROOT.glob("sim/**/*.h")]:
        copy = site / "sources" / header.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(header_text(header))
    version = re.search(r"project\(halflab VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    made = subprocess.run(["doxygen", "docs/site/Doxyfile"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, HALFLAB_SITE=str(site), HALFLAB_VERSION=version))
    shutil.rmtree(site / "sources")
    # Doxygen looks for the class of which a specialization in another namespace is.
    warnings = [line for line in made.stderr.splitlines() if line and "Internal inconsistency: scope for class" not in line]
    print("\n".join(warnings), file=sys.stderr, end="\n" if warnings else "")
    sys.exit(1 if made.returncode != 0 or warnings else 0)


main()
