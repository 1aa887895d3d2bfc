/// A number: its bits to click, its neighbours, and what it is in every format.

import { askedValue, element, flags, isFormat, numberSaid, rounded, table, tried, word } from "../elements.js";
import { isAllowed, numberLine } from "./number_line.js";

export const name = "number";
/// centre and zoom: of the number line, empty where they follow from the number.
export const defaults = { format: "binary16", value: "0.1", centre: "", zoom: "" };
export const words = ["binary16", "significand", "subnormal", "spacing", "flags"];

export function allowed(parameter, value, engine) {
  if (parameter === "format") return isFormat(engine, value);
  return parameter === "value" || isAllowed(parameter, value);
}

export function show(engine, state, texts, go) {
  return element("div", {}, askedValue(engine, state, texts, go, texts("number.input")),
    tried(() => answer(engine, state, texts, go), (message) => numberSaid(message, texts)));
}

function answer(engine, state, texts, go) {
  const found = engine.show(state.format, state.value);
  const { result } = found;
  return element("div", {},
    element("p", { class: "answer" }, sentence(found, engine, texts)),
    bits(found, texts, (value) => go({ value })),
    facts(found, texts),
    element("h3", {}, texts("number.line")),
    numberLine(engine, state, found, texts, go),
    element("h3", {}, texts("number.formats")),
    table([texts("format"), texts("number.is"), texts("number.code"), texts("flags"), texts("number.error")],
      found.formats.map((row) => [
        element("button", { class: "plain", onclick: () => go({ format: row.format, value: asked(found) }) }, row.format),
        row.number.brief, row.number.code, flags(row.flags, texts), error(row, texts)])));
}

/// A button for each bit, which changes the code.
function bits(found, texts, go) {
  const code = BigInt(found.result.code), parts = found.result.fields.split(" ");
  const kinds = parts.length === 3 ? ["sign", "exponent", "significand"] : ["exponent", "significand"].slice(0, parts.length);
  const width = parts.join("").length, digits = found.result.code.length;
  let place = width;
  const groups = parts.map((part, i) => element("span", { class: `group ${kinds[i]}` }, ...[...part].map((bit) => {
    place -= 1;
    const changed = code ^ (1n << BigInt(place));
    const label = texts("number.bit", { place, field: texts(`number.${kinds[i]}`), value: bit });
    return element("button", { class: "bit", "data-place": place, "aria-label": label, "aria-pressed": String(bit === "1"),
      onclick: () => go(`0x${changed.toString(16).padStart(digits - 2, "0")}`) }, bit);
  }), element("small", {}, texts(`number.${kinds[i]}`))));
  return element("div", { class: "bitrow", role: "group", "aria-label": texts("number.bits") }, ...groups);
}

function facts(found, texts) {
  const { result } = found;
  const rows = [[texts("number.value"), result.exact]];
  if (found.exact_text && found.flags !== "none") rows.unshift([texts("number.asked"), found.exact_text]);
  if (result.shortest !== result.exact) rows.push([texts("number.shortest"), result.shortest]);
  rows.push([texts("number.code"), result.code], [texts("number.kind"), word(texts, "kind", result.kind)]);
  if (found.below) rows.push([texts("number.below"), found.below.brief]);
  if (found.above) rows.push([texts("number.above"), found.above.brief]);
  if (found.ulp_log2 !== null) rows.push([texts("number.ulp"), `2^${found.ulp_log2}`]);
  return element("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [element("dt", {}, key),
    element("dd", {}, value)]));
}

/// What became of what was asked for.
function sentence(found, engine, texts) {
  const format = engine.formats().find(({ name }) => name === found.format), { result } = found;
  const values = { asked: isEndless(found) ? found.input : shortened(found.exact_text || found.input), format: format.text,
    result: result.brief, kind: word(texts, "kind", result.kind) };
  if (found.flags === "none") return texts("number.is_one", values);
  if (found.flags.includes("invalid")) return texts("number.is_none", values);
  if (found.flags.includes("overflow")) return texts("number.is_beyond", { ...values, largest: format.largest });
  if (!found.discarded) return texts("number.is_none", values);
  if (result.kind === "zero") return texts("number.is_lost", { ...values, smallest: rounded(format.smallest) });
  const [below, above] = neighbours(found);
  const error = found.formats.find((row) => row.format === found.format).relative_error;
  const said = texts(error < 0 ? "number.is_smaller" : "number.is_larger", { ...values, below, above,
    error: rounded(Math.abs(100 * error)) });
  const bits = found.discarded.kept.replace(".", "").length;
  return isEndless(found) ? `${said} ${texts("number.is_endless", { ...values, bits })}` : said;
}

/// The numbers on both sides of what was rounded.
export function neighbours(found) {
  return ["toward_negative", "toward_positive"].map((direction) => found.roundings.find(({ rounding }) =>
    rounding === direction).result.brief);
}

/// What was asked for, to be asked for again.
function asked(found) {
  return isEndless(found) ? found.input : found.exact_text || found.result.shortest;
}

/// Whether the digits of what was asked for have no end.
function isEndless(found) {
  return Boolean(found.exact?.hexadecimal.includes("..."));
}

export function shortened(digits) {
  return digits.length <= 40 ? digits : `${digits.slice(0, 36)}...`;
}

function error(row, texts) {
  if (row.relative_error === null) return "-";
  return row.relative_error === 0 ? texts("exact") : rounded(row.relative_error);
}
