/// An operation: operands and exact result below one another, the bits that fall off, and all roundings.

import { askedValue, coloredFields, element, flags, isFormat, isWhole, numberSaid, table, tried } from "../elements.js";
import { draws, MOST } from "./draws.js";
import { neighbours, shortened } from "./number.js";

export const name = "operation";
/// draws and seed: of stochastic rounding.
export const defaults = { format: "binary16", value: "2048+1", draws: "64", seed: "1" };
export const words = ["tie", "guard", "fma", "flags", "subnormal", "to_odd"];
export const examples = ["2048+1", "0.1*0.1", "fma(245.375, 19.953125, 28688)", "65504+16", "2^-14/3", "1e-4*1e-4", "sqrt(2)", "exp(12)"];

export function allowed(parameter, value, engine) {
  if (parameter === "format") return isFormat(engine, value);
  return parameter === "value" || isWhole(value, parameter === "draws" ? 1 : 0, parameter === "draws" ? MOST : 2 ** 32 - 1);
}

const WIDEST = 72;  // bits that are drawn side by side

export function show(engine, state, texts, go) {
  return element("div", {}, askedValue(engine, state, texts, go, texts("operation.input")),
    element("p", { class: "examples" }, `${texts("operation.examples")}: `, ...examples.map((value) =>
      element("button", { class: "plain", onclick: () => go({ value }) }, value))),
    tried(() => answer(engine, state, texts, go), (message) => numberSaid(message, texts)));
}

function answer(engine, state, texts, go) {
  const found = engine.show(state.format, state.value);
  const isRounded = found.roundings.length > 0;
  return element("div", {}, result(found, texts), why(found, texts), aligned(found, texts), fallen(found, texts),
    roundings(found, texts),
    isRounded ? ways(engine.ways(state.format, state.value), texts) : null,
    isRounded ? draws(engine, state, texts, go) ?? notDrawn(found, texts) : null);
}

/// Why nothing is drawn of what was rounded: stochastic rounding has one result, or one that has no value.
function notDrawn(found, texts) {
  if (!found.flags.includes("inexact")) return null;
  const results = found.roundings.filter(({ rounding }) => rounding === "stochastic").map(({ result }) => result.brief);
  return element("p", {}, texts(results.length === 1 ? "draws.same" : "draws.none", { result: results.at(-1) }));
}

function result(found, texts) {
  const last = found.steps.at(-1);
  const text = last ? last.text : found.input;
  const isOther = text.replaceAll(" ", "") !== found.input.replaceAll(" ", "");
  return element("p", { class: "answer" },
    isOther ? `${texts("operation.operands", { input: found.input, format: found.format })} ` : "",
    element("b", {}, `${text} = ${found.result.brief}`), " ", coloredFields(found.result.fields),
    found.exact_text && found.flags !== "none" ? ` (${texts("operation.exact")}: ${found.exact_text})` : "");
}

/// Why the result is what it is.
function why(found, texts) {
  const { discarded, result } = found;
  if (!discarded || found.flags === "none") return null;
  const [below, above] = neighbours(found);
  const values = { exact: shortened(found.exact_text), below, above, result: result.brief, ulp: discarded.ulp_log2 };
  const isTie = discarded.guard && !discarded.round && !discarded.sticky;
  const sentences = [texts(found.flags.includes("overflow") ? "operation.beyond" : isTie ? "operation.tie" : "operation.nearer",
    values)];
  if (result.kind === "subnormal" || found.flags.includes("underflow")) sentences.push(texts("operation.tiny", values));
  return element("p", {}, sentences.join(" "));
}

/// The same by other ways of computing it.
function ways(rows, texts) {
  if (rows.length < 2) return null;
  return element("div", {}, element("h3", {}, texts("operation.ways")),
    table([texts("operation.way"), texts("operation.step"), texts("operation.result"), texts("number.code"), ""],
      rows.map((row) =>
      [texts(`operation.way_${row.way}`), row.step, row.result, row.code, row.code === rows[0].code ? "" : element("b", {},
        texts("operation.differs"))])));
}

/// { units, log2 } of a hexadecimal number as the engine writes it: units * 2^log2, with odd units; null where it is zero,
/// no number, or goes on.
function units(hexadecimal) {
  const parts = /^-?0x([0-9a-f]+)(?:\.([0-9a-f]+))?p([+-]\d+)$/.exec(hexadecimal ?? "");
  if (!parts) return null;
  const fraction = parts[2] ?? "";
  const number = { units: BigInt(`0x${parts[1]}${fraction}`), log2: Number(parts[3]) - 4 * fraction.length };
  if (number.units === 0n) return null;
  for (; number.units % 2n === 0n; number.units /= 2n) ++number.log2;
  return number;
}

function leading(number) {
  return number.log2 + number.units.toString(2).length - 1;
}

/// Bits of each number, one column for each power of two; those of the exact result are coloured as what becomes of them.
function aligned(found, texts) {
  if (!found.discarded) return null;
  const ulp = found.discarded.ulp_log2, kind = (log2) =>
    (log2 >= ulp ? "kept" : log2 === ulp - 1 ? "guard" : log2 === ulp - 2 ? "round" : "sticky");
  const rows = [...found.operands.map(({ name, number }) => ({ label: name, number: units(number.hexadecimal), last: ulp })),
    { label: texts("operation.exact"), number: units(found.exact.hexadecimal), kind },
    { label: texts("operation.result"), number: units(found.result.hexadecimal), last: ulp }].filter(({ number }) => number);
  if (rows.length < 2) return null;
  const high = Math.max(ulp, ...rows.map(({ number }) => leading(number)));
  const low = Math.min(ulp - 2, ...rows.map(({ number }) => number.log2));
  if (high - low >= WIDEST) return element("p", { class: "notice" }, texts("operation.not_drawn"));
  const line = (row) => element("tr", {}, element("th", { scope: "row" }, row.label),
    ...Array.from({ length: high - low + 1 }, (_, i) => cell(row, high - i)));
  const weights = element("tr", {}, element("th", {}, ""), ...Array.from({ length: high - low + 1 }, (_, i) =>
    element("td", { class: "weight" }, (high - i) % 4 === 0 ? String(high - i) : "")));
  return element("figure", {}, element("figcaption", {}, texts("operation.aligned")),
    element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": texts("operation.aligned") },
      element("table", { class: "aligned" }, ...rows.map(line), weights)));
}

/// Zeros are written from the leading bit down to `last` or to the last one that is set.
function cell({ number, kind, last = number.log2 }, log2) {
  const isInside = log2 <= leading(number) && log2 >= Math.min(last, number.log2);
  const bit = log2 < number.log2 ? 0n : (number.units >> BigInt(log2 - number.log2)) & 1n;
  return element("td", { class: (isInside && kind?.(log2)) ?? "" }, isInside ? String(bit) : "");
}

function fallen(found, texts) {
  const { discarded } = found;
  if (!discarded || found.flags === "none") return element("p", {}, texts("operation.nothing"));
  const entry = (kind, value) => [element("dt", {}, element("span", { class: `key ${kind}` }), texts(`operation.${kind}`)),
    element("dd", {}, value)];
  return element("dl", { class: "facts" }, ...entry("kept", discarded.kept), ...["guard", "round", "sticky"].flatMap((kind) =>
    entry(kind, discarded[kind] ? "1" : "0")), element("dt", {}, texts("flags")), element("dd", {}, flags(found.flags, texts)));
}

function roundings(found, texts) {
  if (found.roundings.length === 0) return null;
  return element("div", {}, element("h3", {}, texts("operation.roundings")),
    table([texts("operation.rounding"), texts("operation.result"), texts("number.code"), texts("operation.chance"),
      texts("flags")],
      found.roundings.map((row) => [texts(`rounding.${row.rounding}`), row.result.brief, row.result.code,
        Number(row.chance.toPrecision(3)).toString(), flags(row.flags, texts)])));
}
