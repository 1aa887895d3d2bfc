"""One page of HTML that needs nothing else: the answer, what to do, figures, tables."""

import html
import os
import re
from pathlib import Path

from . import advice, figures, words
from .words import number, percent, power, s_is, scale

MOST_ROWS = 100  # of tables

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #5c5c5c; --line: #d8d8d8; --paper: #ffffff; --box: #f3f5f7;
  --one: #0072b2; --two: #d55e00; --flushed: #f9dccf; --subnormal: #fbeccb; --normal: #e0f0e8;
  --flushed-cell: #8c2300; --subnormal-cell: #6e4a00; --normal-cell: #06402c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8a8a8; --line: #444444; --paper: #191919; --box: #24282c;
    --one: #56b4e9; --two: #f08a45; --flushed: #4a2416; --subnormal: #443614; --normal: #173529;
    --flushed-cell: #ffc9ae; --subnormal-cell: #ffe6a6; --normal-cell: #b9f2d6; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2rem 0 0.4rem; font-size: 1.15rem; }
h3 { margin: 0 0 0.5rem; font-size: 1rem; }
p { margin: 0.5rem 0; }
sup { line-height: 0; font-size: 0.75em; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: 0.9em; }
.do { padding: 0.7rem 1rem; border-left: 4px solid var(--one); border-radius: 4px; background: var(--box); }
.do ul { margin: 0.3rem 0; padding-left: 1.2rem; }
.note, figcaption { color: var(--soft); font-size: 0.9rem; }
figure { margin: 1.6rem 0; }
.plot { display: grid; grid-template-columns: 3.6rem minmax(0, 1fr); font-size: 0.8rem; color: var(--soft); }
.map { grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); }
.area { border: 1px solid var(--line); }
.area svg { display: block; width: 100%; height: 100%; }
.ylabels, .ticks { position: relative; }
.ytick { position: absolute; right: 0.4rem; transform: translateY(-50%); white-space: nowrap; }
.ticks { height: 1.4rem; }
.tick { position: absolute; transform: translateX(-50%); white-space: nowrap; padding-top: 0.2rem; }
.names { padding: 1px 0.5rem 0 0; max-width: 17rem; min-width: 0; }
.names div { height: 18px; line-height: 18px; overflow: hidden; text-align: right; white-space: nowrap;
  text-overflow: ellipsis; }
.line { fill: none; vector-effect: non-scaling-stroke; stroke-width: 2; stroke-linecap: round; }
.grid { stroke: var(--line); stroke-width: 1; }
.line.one { stroke: var(--one); } .line.two { stroke: var(--two); }
path.bad { fill: var(--two); opacity: 0.5; }
.zone.flushed { fill: var(--flushed); } .zone.subnormal { fill: var(--subnormal); } .zone.normal { fill: var(--normal); }
.zone, .cell { shape-rendering: crispEdges; }
.cell.flushed { fill: var(--flushed-cell); } .cell.subnormal { fill: var(--subnormal-cell); }
.cell.normal { fill: var(--normal-cell); }
.l0 { opacity: 0.16; } .l1 { opacity: 0.3; } .l2 { opacity: 0.46; } .l3 { opacity: 0.62; } .l4 { opacity: 0.8; }
.axis { text-align: center; }
.legend { margin: 0.2rem 0; }
.key { display: inline-block; width: 0.9em; height: 0.9em; margin: 0 0.35em 0 0.6em; border-radius: 2px;
  vertical-align: -0.08em; }
.legend .key:first-child { margin-left: 0; }
.key.one { background: var(--one); } .key.two, .key.bad { background: var(--two); }
.key.flushed { background: var(--flushed); } .key.subnormal { background: var(--subnormal); }
.key.normal { background: var(--normal); }
.wide { overflow-x: auto; width: max-content; min-width: 100%; max-width: min(100vw - 2rem, 60rem); margin-left: 50%;
  transform: translateX(-50%); }
table { margin: 0.6rem 0; border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.7rem 0.25rem 0; border-bottom: 1px solid var(--line); text-align: right; overflow-wrap: normal; }
td { white-space: nowrap; vertical-align: top; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th:last-child, td:last-child { padding-right: 0; }
th.text, td.text { text-align: left; }
td.name { min-width: min(var(--longest), 38vw); max-width: 22rem; white-space: normal; overflow-wrap: anywhere; }
@media (max-width: 38rem) { h1 { font-size: 1.3rem; } .map { grid-template-columns: 8.6rem minmax(0, 1fr); } }
"""


def _keeps_its_place(path):
    """Devices and pipes are written to, and what /dev/stdout leads to: another file would take their name from all programs."""
    if not path.exists() or not path.is_file():
        return path.exists()
    path = path.absolute()
    while path.is_symlink():
        folder = path.parent.resolve()  # /dev/fd is a link itself
        if str(folder).startswith("/proc/"):
            return True
        path = folder / os.readlink(path)
    return False


def write(page, out):
    """Writes a page under a name of its own first, so that there is never half of one. What is no file keeps its name."""
    out = Path(out)
    if _keeps_its_place(out):
        out.write_text(page, encoding="utf-8")
        return out
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        temporary.write_text(page, encoding="utf-8")
        os.replace(temporary, out)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(out)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return out


def document(title, body):
    """`title` and `body` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{re.sub('<[^>]*>', '', title.replace('<sup>', '^'))}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )


def record_page(found):
    """The page of a whole record."""
    body = advised(advice.to_do(found))
    body += section("Why steps were lost", paragraphs(words.skipped(found) + words.cure(found)))
    if len(found.steps):
        body += section("What FP16 makes of the gradients", paragraphs(words.losses(found.tensors, found.log2_recommended)))
        body += figures.scales_over_steps(found) + figures.heat_map(found.tensors) + figures.shares_over_steps(found)
    body += section("Tensor by tensor", tensor_table(found.tensors, found.log2_recommended))
    body += section("What no loss scale touches", tensor_table(found.others, None, grows="values"))
    body += section("Skipped steps", skip_table(found.lost))
    body += section("What could not be seen", paragraphs(words.unseen(found)))
    return document(words.headline(found), f'{body}<p class="note">{words.provenance(found)}</p>\n')


def arrays_page(tensors):
    """The page of tensors that belong to no run."""
    best = tensors.total.recommended
    sentences = words.losses(tensors, best) + words.zero_before(tensors) + words.not_finite(tensors)
    body = advised(advice.to_do_with(tensors)) + paragraphs(sentences)
    body += figures.heat_map(tensors)
    return document(words.headline_of(tensors), body + section("Tensor by tensor", tensor_table(tensors, best)))


def section(heading, body):
    return f"<h2>{heading}</h2>\n{body}" if body else ""


def paragraphs(sentences):
    return "".join(f"<p>{sentence}</p>\n" for sentence in sentences)


def advised(items):
    return f'<div class="do"><b>What to do</b><ul>{"".join(f"<li>{item}</li>" for item in items)}</ul></div>\n'


def tensor_table(tensors, log2_recommended, grows="S"):
    """What each tensor loses at S = 1, at the S used and at the recommended one; and by how much what `grows` may grow."""
    if not tensors.rows:
        return ""
    scales = {0: f"flushed<br>at {s_is(1)}"}
    if tensors.log2_used is not None:
        scales.setdefault(tensors.log2_used, f"flushed<br>at {s_is(power(tensors.log2_used))}")
    if log2_recommended is not None:
        scales.setdefault(log2_recommended, f"flushed at {power(log2_recommended)},<br>recommended")
    columns = ["!tensor", "!kind", "values", "zeros", *scales.values(), "largest", "octaves to<br>overflow"]
    rows = []
    for row in tensors.by_loss()[:MOST_ROWS]:
        histogram, room = row.forecast.histogram, row.forecast.headroom
        zeros = percent(histogram.zero / histogram.total) if histogram.total else "-"
        shares = [flushed_cell(tensors, row, log2) for log2 in scales]
        left = "-" if room is None else str(room - (tensors.log2_used or 0))
        name = html.escape(row.name or "the model")
        rows.append([name, html.escape(row.kind), str(histogram.total), zeros, *shares, number(histogram.max_abs), left])
    notes = [f"Flushed: of the values that are not zero. Largest: with S divided out. Octaves: that {grows} can still grow."]
    if not tensors.is_truth:
        notes.append("?: cannot be told, since what the run lost was zero before it was counted. ≥: at least.")
    elif tensors.untold:
        notes.append("?: cannot be told, since what was lost was zero before it was counted.")
    if len(tensors.rows) > MOST_ROWS:
        notes.append(f"The {MOST_ROWS} of {len(tensors.rows)} tensors that lose most; the record has all.")
    return table(columns, rows, notes)


def flushed_cell(tensors, row, log2_scale):
    """A run in FP16 tells of scales below its own alone, and of these that at least so much is lost."""
    share = percent(row.forecast.share("flushed", log2_scale))
    if row.forecast.histogram.nonzero_finite == 0:
        return "-" if row.is_truth and not row.is_untold else "?"
    if row.is_truth:
        return share
    return f"≥\N{NO-BREAK SPACE}{share}" if log2_scale < tensors.log2_used else "?"


def skip_table(lost):
    if not lost:
        return ""
    columns = ["step", "S", "!first bad gradient", "!at", "value", "!first module", "!in FP32", "cured by S ="]
    rows = []
    for skip in lost[:MOST_ROWS]:
        forward, weights = skip.get("forward_output"), skip.get("weight_before")
        module = f"{forward}, forward" if forward is not None else skip.get("module_output")
        module = module if weights is None else f"{weights}, before the step"
        index = ", ".join(map(str, skip["index"])) if skip.get("index") else "-"
        value = "-" if skip.get("value") is None else number(skip["value"])
        cured = scale(skip["cured_by"]) if skip.get("cured_by") else "-"
        texts = [html.escape(text) if text else "-" for text in (skip.get("parameter"), index, module, skip.get("twin"))]
        step = f"{skip['step']} (rank {skip['rank']})" if "rank" in skip else str(skip["step"])
        rows.append([step, scale(skip["scale"]), texts[0], texts[1], value, texts[2], texts[3], cured])
    notes = [f"The first {MOST_ROWS} of {len(lost)}; skips.csv has all."] if len(lost) > MOST_ROWS else []
    return table(columns, rows, notes)


def breakable_at(place, row):
    """A row of cells, the name among them with breaks after dots and underscores, lest one come within a word."""
    return [re.sub(r"([._])", r"\1<wbr>", cell) if each == place else cell for each, cell in enumerate(row)]


def table(columns, rows, notes=()):
    """Columns whose names begin with ! hold text; the first of these the names."""
    kinds = [' class="text"' if name.startswith("!") else "" for name in columns]
    named = columns.index(next(name for name in columns if name.startswith("!")))
    cells = list(kinds)
    cells[named] = ' class="text name"'
    longest = max(len(html.unescape(row[named])) for row in rows)
    head = "".join(f"<th{kind}>{name.removeprefix('!')}</th>" for kind, name in zip(kinds, columns))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(cells, breakable_at(named, row))) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table style="--longest:{longest}ch">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
        + "".join(f'<p class="note">{note}</p>\n' for note in notes)
    )
