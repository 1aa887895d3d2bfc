/// The number line: a window of it with the numbers of the format, their spacing and the present number, and the same window in
/// every other format. A wheel, two fingers, keys and buttons zoom; a pointer drags.

import { counted, drawn, element, rounded, slider } from "../elements.js";

const MOST = 400;  // numbers that are drawn one by one
const NUMBERS_AT_FIRST = 12;
const MAIN = { top: 48, height: 34, total: 136 }, ROW = { height: 36, strip: 12 };

/// { centre, zoom, low, high, scale }: what is seen; `zoom` is log2 of its width. Without a choice, the number and some beside
/// it.
function windowOf(state, found, format) {
  const bounds = { min: Math.floor(Math.log2(format.smallest)) + 1,
    max: Math.min(1022, Math.ceil(Math.log2(format.largest)) + 1) };
  const number = asked(found) ?? 0;
  const byNumber = Math.log2(NUMBERS_AT_FIRST) + (found.ulp_log2 ?? bounds.max - 8);
  const centre = Math.min(format.largest, Math.max(-format.largest, state.centre === "" ? number : Number(state.centre)));
  const finest = Math.max(bounds.min, Math.log2(Math.abs(centre)) - 50);  // doubles are no closer
  const zoom = Math.min(bounds.max, Math.max(finest, state.zoom === "" ? byNumber : Number(state.zoom)));
  const half = 2 ** (zoom - 1);
  return { ...bounds, zoom, centre, low: centre - half, high: centre + half,
    scale: (value) => 1000 * ((value - centre) / half + 1) / 2 };
}

/// What was asked for, before it was rounded; null where that is no finite number.
function asked(found) {
  const value = Number(found.exact_text.replace("≈ ", "") || found.result.exact);
  return Number.isFinite(value) ? value : null;
}

export function isAllowed(name, value) {
  return value === "" || Number.isFinite(Number(value)) && (name !== "zoom" || Math.abs(Number(value)) <= 1100);
}

/// Of a value, with digits enough to tell it from others in the window.
function label(value, view) {
  const exact = String(value);
  if (exact.length <= 8) return exact;
  const digits = Math.ceil(Math.log10(Math.max(Math.abs(view.low), Math.abs(view.high)) / 2 ** view.zoom)) + 3;
  return String(Number(value.toPrecision(Math.min(17, Math.max(3, digits)))));
}

function percent(place) {
  return `${place / 10}%`;
}

/// A part of the drawing whose width of 1000 is that of the page, whatever that is.
function strip(y, height, ...children) {
  return drawn("svg", { x: 0, y, width: "100%", height, viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none" },
    ...children);
}

function ticks(line, view, heightOf, bottom) {
  return line.values.map((value, i) => `M${view.scale(value).toFixed(2)} ${bottom}v${-heightOf(line.ranks[i])}`).join("");
}

/// { place, value } of labels: the ends, the number's own, zero, then others of high rank, far enough from one another.
function labelled(line, view, number) {
  const ranked = line.values.map((value, i) => ({ value, rank: line.ranks[i] })).sort((a, b) => b.rank - a.rank);
  const taken = [{ place: 0, value: view.low }, { place: 1000, value: view.high }];
  for (const value of [number, 0, ...ranked.map((each) => each.value)]) {
    const place = view.scale(value);
    if (value !== null && taken.every((each) => Math.abs(place - each.place) > 270) && place > 0 &&
      place < 1000) taken.push({ place, value });
  }
  return taken;
}

function anchor(place) {
  return place === 0 ? "start" : place === 1000 ? "end" : "middle";
}

function zone(kind, from, to, view, y, height) {
  const low = Math.max(0, view.scale(from)), high = Math.min(1000, view.scale(to));
  return low < high ? drawn("rect", { class: kind, x: low, y, width: high - low, height }) : null;
}

function mainLine(line, stretches, view, number, wanted) {
  const { top, height } = MAIN, bottom = top + height;
  const most = Math.max(1, ...line.ranks), base = Math.min(most, ...line.ranks);
  const marks = [];
  if (number !== null && Math.abs(view.scale(number) - 500) <= 500)
    marks.push(drawn("circle", { class: "present", cx: percent(view.scale(number)), cy: bottom, r: 6 }));
  if (wanted !== null && wanted !== number && Math.abs(view.scale(wanted) - 500) <= 500)
    marks.push(drawn("circle", { class: "wanted", cx: percent(view.scale(wanted)), cy: bottom, r: 6 }));
  return [
    strip(top, height + 32,
      zone("zero", -line.smallest / 2, line.smallest / 2, view, 0, height),
      zone("beyond", line.largest, Infinity, view, 0, height), zone("beyond", -Infinity, line.lowest, view, 0, height),
      ...stretches.map((each, i) => zone(each.is_subnormal ? "subnormal" : each.spacing_log2 % 2 === 0 ? "even" : "odd",
        each.low, each.high, view,
        height + 12, 18)),
      line.values.length === 0 && line.count > 0 ? zone("dense", line.lowest, line.largest, view, 6, height - 6) : null,
      drawn("path", { class: "tick", d: ticks(line, view, (rank) => 10 + (height - 10) * Math.min(1, (rank - base) / Math.min(6,
        most - base || 1)), height) }),
      drawn("path", { class: "base", d: `M0 ${height}H1000` })),
    ...labelled(line, view, number).map(({ place, value }) => drawn("text", { x: percent(place), y: top - 8,
      "text-anchor": anchor(place) }, label(value, view))),
    ...stretches.filter((each) => view.scale(each.high) - view.scale(each.low) > 110).map((each) => {
      const from = Math.max(0, view.scale(each.low)), to = Math.min(1000, view.scale(each.high));
      return to - from < 110 ? null : drawn("text", { class: "spacing", x: percent((from + to) / 2), y: bottom + 25,
        "text-anchor": "middle" }, `2^${each.spacing_log2}`);
    }), ...marks];
}

function row(line, i, view, texts, state) {
  const y = MAIN.total + i * ROW.height;
  const count = counted(line.count, state.language, 4);
  const isDense = line.values.length === 0 && line.count > 0;
  return [drawn("text", { class: line.format === state.format ? "chosen" : "", x: 0, y: y + 14 }, texts("number.line_row",
    { format: line.format, count })),
    strip(y + 18, ROW.strip, isDense ? zone("dense", line.lowest, line.largest, view, 2, ROW.strip - 4) : null,
      drawn("path", { class: "tick", d: ticks(line, view, () => ROW.strip, ROW.strip) }),
      drawn("path", { class: "base", d: `M0 ${ROW.strip}H1000` }))];
}

const pointers = new Map();  // that are down, by their id: places on the line from 0 to 1

function controls(view, move) {
  const zoomed = (change, place = 0.5) => {
    const zoom = Math.min(view.max, Math.max(view.min, view.zoom + change));
    move(view.centre + (2 ** view.zoom - 2 ** zoom) * (place - 0.5), zoom);
  };
  const panned = (part) => move(view.centre + part * 2 ** view.zoom, view.zoom);
  const place = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.max(0.02, Math.abs(a - b));
  };
  return { zoomed, panned, listeners: {
    onwheel: (event) => {
      event.preventDefault();
      zoomed(event.deltaY / 200, place(event));
    },
    onpointerdown: (event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
    },
    onpointermove: (event) => {
      if (!pointers.has(event.pointerId)) return;
      const before = pointers.get(event.pointerId), after = place(event);
      if (pointers.size === 2) {
        const width = spread();
        pointers.set(event.pointerId, after);
        zoomed(Math.log2(width / spread()), after);
      } else {
        pointers.set(event.pointerId, after);
        panned(before - after);
      }
    },
    onpointerup: ({ pointerId }) => pointers.delete(pointerId),
    onpointercancel: ({ pointerId }) => pointers.delete(pointerId) } };
}

export function numberLine(engine, state, found, texts, go) {
  const formats = engine.formats(), format = formats.find(({ name }) => name === state.format);
  const view = windowOf(state, found, format);
  const { lines, stretches } = engine.lines(state.format, view.low, view.high, MOST);
  const line = lines.find((each) => each.format === state.format);
  const move = (centre, zoom) => go({ centre: String(centre), zoom: String(Number(zoom.toFixed(3))) }, { replace: true });
  const { zoomed, panned, listeners } = controls(view, move);
  const number = Number(found.result.exact), value = Number.isFinite(number) ? number : null;
  const alternative = texts("number.line_text", { format: state.format, low: label(view.low, view),
    high: label(view.high, view),
    count: counted(line.count, state.language), value: found.result.brief });
  const isSeen = { subnormal: stretches.some((each) => each.is_subnormal),
    zero: view.low < line.smallest / 2 && view.high > -line.smallest / 2,
    beyond: view.high > line.largest || view.low < line.lowest };
  const keys = { ArrowLeft: () => panned(-0.1), ArrowRight: () => panned(0.1), "+": () => zoomed(-1), "-": () => zoomed(1),
    0: () => move(0, view.zoom) };
  const button = (key, onclick) => element("button", { onclick }, texts(`number.${key}`));
  return element("figure", { class: "numberline" }, element("figcaption", {}, texts("number.line_caption")),
    drawn("svg", { role: "img", tabindex: 0, "aria-label": alternative, width: "100%",
      height: MAIN.total + lines.length * ROW.height,
      ...listeners, onkeydown: (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
        event.preventDefault();
        keys[event.key]();
      } },
      ...mainLine(line, stretches, view, value, asked(found)), ...lines.flatMap((each, i) => row(each, i, view, texts, state))),
    element("p", { class: "note legend" }, ...["subnormal", "zero", "beyond"].filter((kind) => isSeen[kind]).map((kind) =>
      element("span", {}, element("span", { class: `key ${kind}` }), texts(`number.zone_${kind}`)))),
    element("div", { class: "asked" }, slider("zoom", texts("number.zoom"), { min: view.min, max: view.max, step: "any",
      value: view.zoom,
      text: rounded(2 ** view.zoom) }, (zoom) => move(view.centre, Number(zoom)))),
    element("div", { class: "buttons" }, button("zoom_in", () => zoomed(-1)), button("zoom_out", () => zoomed(1)),
      button("left", () => panned(-0.25)), button("right", () => panned(0.25)),
      button("to_number", () => go({ centre: "", zoom: "" })),
      button("to_zero", () => go({ centre: "0", zoom: String(view.min + 3) })),
      button("to_normal", () => go({ centre: String(format.smallest_normal),
        zoom: String(Math.log2(format.smallest_normal) + 2) })),
      button("to_all", () => go({ centre: "0", zoom: String(view.max) }))));
}
