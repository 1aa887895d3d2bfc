/// A sum: the same terms added up in every order the library has, where a chain stagnates, and what each order loses.

import { area, choice, drawn, element, isFormat, isWhole, numberSaid, rounded, slider, table, tried } from "../elements.js";

export const name = "sum";
/// terms: the series; own: a text of terms; step: how many terms are added up, empty: all; way: that is drawn.
export const defaults = { format: "binary16", terms: "ones", own: "1 0.001", count: "4096", seed: "1", step: "",
  way: "sum.sequential" };
export const words = ["tree", "kahan", "accumulator", "tensor_core"];

const LEAST_LOG2 = 2, MOST_LOG2 = 12, HEIGHT = 240, SECONDS = 5;

export function allowed(parameter, value, engine) {
  if (parameter === "format") return isFormat(engine, value);
  if (parameter === "terms") return engine.series().includes(value);
  if (parameter === "count") return isWhole(value, 2 ** LEAST_LOG2, 2 ** MOST_LOG2);
  if (parameter === "seed") return isWhole(value, 0, 2 ** 32 - 1);
  if (parameter === "step") return value === "" || isWhole(value, 1, 2 ** MOST_LOG2);
  return parameter === "own" || /^[a-z0-9_]+\.[a-z0-9_]+$/.test(value);
}

export function show(engine, state, texts, go) {
  return element("div", {}, asked(engine, state, texts, go),
    tried(() => answer(engine, state, texts, go), (message) => numberSaid(message, texts)));
}

function asked(engine, state, texts, go) {
  const restart = (change) => {
    stop();
    go({ step: "", ...change });
  };
  const formats = engine.formats().filter((format) => format.has_arithmetic).map((format) => [format.name, format.text]);
  return element("div", {}, element("div", { class: "asked" },
    choice("terms", texts("sum.terms"), engine.series().map((series) => [series, texts(`sum.terms_${series}`)]), state.terms,
      (terms) => restart({ terms })),
    choice("format", texts("format"), formats, state.format, (format) => restart({ format })),
    state.terms === "own" ? area("own", texts("sum.own"), state.own, (own) => restart({ own })) : null),
  element("div", { class: "asked" },
    slider("count", texts("sum.count"), { min: LEAST_LOG2, max: MOST_LOG2, value: Math.log2(state.count), text: state.count },
      (log2) => {
      stop();
      go({ count: String(2 ** log2), step: "" }, { replace: true });
    }),
    state.terms === "random" ? element("button", { onclick: () => restart({ seed: String(Number(state.seed) + 1) }) },
      texts("draws.again")) : null));
}

/// What is asked of the engine for these terms.
function question({ format, terms, own, count, seed }) {
  return [format, terms, own, Number(count), Number(seed)];
}

function answer(engine, state, texts, go) {
  const count = Number(state.count), step = state.step === "" ? count : Math.min(count, Number(state.step));
  const found = engine.sums(...question(state), step);
  const chosen = found.ways.find((way) => key(way) === state.way) ?? found.ways[0];
  const curve = engine.sum_curve(...question(state), chosen.family, chosen.name);
  return element("div", {}, element("p", { class: "answer", "aria-live": "off" }, sentence(found, chosen, texts)),
    picture(curve, found, chosen, step, texts), steps(count, step, texts, go), ways(found, chosen, texts, go));
}

function key(way) {
  return `${way.family}.${way.name}`;
}

function wayText(way, texts) {
  return texts(`sum.way_${way.family}`, { name: way.family.startsWith("mma") ? way.name : texts(`sum.order_${way.name}`) });
}

function sentence(found, chosen, texts) {
  const values = { way: wayText(chosen, texts), terms: found.terms, result: chosen.result, exact: found.exact,
    error: rounded(100 * Math.abs(chosen.relative_error)) };
  const is = chosen.is_exact ? "is_exact" : chosen.error === 0 ? "is_nearest" : chosen.relative_error === null ? "is_other"
    : "is_off";
  const befell = key(chosen) === "sum.sequential" ? ["overflows", "stagnates"].filter((what) => found[`${what}_after`]) : [];
  return [texts(`sum.${is}`, values),
    ...befell.map((what) => texts(`sum.${what}`, { after: found[`${what}_after`] }))].join(" ");
}

function rounded6(value) {
  return String(Number(value.toPrecision(6)));
}

/// The sum of the first n terms over n, beside the exact one.
function picture(curve, found, chosen, step, texts) {
  const last = curve.numbers.at(-1), finite = [...curve.exact, ...curve.values, 0].filter(Number.isFinite);
  const low = Math.min(...finite), high = Math.max(...finite), range = high - low || 1;
  const x = (number) => 1000 * number / last, y = (value) => HEIGHT * (high - value) / range;
  const points = (values) => [[0, 0], ...values.map((value, i) => [curve.numbers[i], value])];
  const path = (all) => all.filter(([, value]) => Number.isFinite(value)).map(([number, value], i) =>
    `${i ? "L" : "M"}${x(number).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const done = [...points(curve.values).filter(([number]) => number < step), [step, Number(chosen.result)]];
  const label = texts("sum.picture", { way: wayText(chosen, texts), terms: found.terms, result: chosen.result,
    exact: found.exact });
  return element("figure", {}, element("figcaption", {}, texts("sum.caption", { way: wayText(chosen, texts) })),
    drawn("svg", { role: "img", "aria-label": label, width: "100%", height: HEIGHT + 44 },
      drawn("text", { x: 0, y: 14 }, rounded6(high)),
      drawn("svg", { y: 22, width: "100%", height: HEIGHT, viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none" },
        drawn("path", { class: "base", d: `M0 ${y(0)}H1000` }), drawn("path", { class: "exact", d: path(points(curve.exact)) }),
        drawn("path", { class: "walk thick", d: path(done) }),
          drawn("path", { class: "base step", d: `M${x(step)} 0V${HEIGHT}` })),
      drawn("text", { x: 0, y: HEIGHT + 40 }, rounded6(low)), drawn("text", { x: "100%", y: HEIGHT + 40, "text-anchor": "end" },
        texts("sum.axis", { last }))));
}

let running;

function stop() {
  cancelAnimationFrame(running);
  running = undefined;
}

export function leave() {
  stop();
}

/// Adds up the terms before the reader's eyes; at once where less motion is asked for.
function play(count, from, go) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return go({ step: "" }, { replace: true });
  const first = from < count ? from : 1, begin = performance.now() - 1000 * SECONDS * first / count;
  const tick = (now) => {
    const step = Math.max(1, Math.round(count * (now - begin) / 1000 / SECONDS));
    if (step >= count) stop();
    else running = requestAnimationFrame(tick);
    go({ step: step >= count ? "" : String(step) }, { replace: true });
  };
  running = requestAnimationFrame(tick);
}

function steps(count, step, texts, go) {
  const to = (next) => {
    stop();
    go({ step: String(Math.min(count, Math.max(1, next))) }, { replace: true });
  };
  const toggle = () => {
    if (running === undefined) return play(count, step, go);
    stop();
    go({}, { replace: true });
  };
  return element("div", {},
    element("div", { class: "asked" }, slider("step", texts("sum.step"), { min: 1, max: count, value: step,
      text: `${step} / ${count}` },
      (next) => to(Number(next)))),
    element("div", { class: "buttons" }, element("button", { id: "play", onclick: toggle },
      texts(running === undefined ? "sum.play" : "sum.pause")),
      element("button", { onclick: () => to(step - 1) }, texts("sum.back")), element("button", { onclick: () => to(step + 1) },
        texts("sum.forth"))));
}

function ways(found, chosen, texts, go) {
  const rows = found.ways.map((way) => [
    element("button", { class: "plain", "aria-pressed": String(way === chosen), onclick: () => go({ way: key(way) }) },
      wayText(way, texts)),
    way.result, way.code, way.error === null ? "-" : rounded6(way.error), way.relative_error === null ? "-"
      : `${rounded(100 * way.relative_error)} %`]);
  return element("div", {}, element("h3", {}, texts("sum.ways", { terms: found.terms, exact: found.exact })),
    element("p", { class: "note" }, texts("sum.terms_are", { first: found.first.join(", "), last: found.last })),
    table([texts("sum.way"), texts("operation.result"), texts("number.code"), texts("sum.error"), texts("number.error")],
      rows));
}
