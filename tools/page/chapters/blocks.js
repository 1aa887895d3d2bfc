/// Eight and four bits: a row of numbers in blocks that share a scale, and what an outlier does to its neighbours.

import { area, choice, coloredFields, drawn, element, isWhole, numberSaid, rounded, slider, table,
  tried } from "../elements.js";

export const name = "blocks";
/// row: the numbers; place and outlier: which of them is multiplied by 2^outlier; seed: of the next row that is drawn.
export const defaults = { format: "mxfp4", rule: "floor", place: "5", outlier: "0", seed: "1",
  row: "0.31 -0.72 0.18 0.55 -0.04 0.93 -0.27 0.66 0.12 -0.48 0.85 -0.09 0.4 0.22 -0.61 0.77 " +
    "-0.35 0.08 0.5 -0.9 0.15 0.7 -0.2 0.02 0.58 -0.44 0.29 -0.83 0.37 0.64 -0.11 0.99" };

const MOST_LOG2 = 12, HEIGHT = 200;

export const words = ["block", "outlier", "element_names", "saturate"];

export function allowed(parameter, value, engine) {
  if (parameter === "format") return engine.block_formats().formats.some((format) => format.name === value);
  if (parameter === "rule") return engine.block_formats().rules.includes(value);
  if (parameter === "place") return isWhole(value, 0, 63);
  if (parameter === "outlier") return isWhole(value, 0, MOST_LOG2);
  return parameter !== "seed" || isWhole(value, 0, 2 ** 32 - 1);
}

export function show(engine, state, texts, go) {
  return element("div", {}, asked(engine, state, texts, go),
    tried(() => answer(engine, state, texts, go), (message) => numberSaid(message, texts)));
}

function asked(engine, state, texts, go) {
  const { formats, rules } = engine.block_formats();
  const hasRules = !formats.find(({ name }) => name === state.format).has_tensor_scale;
  return element("div", {},
    element("div", { class: "asked" }, area("row", texts("blocks.row"), state.row, (row) => go({ row }))),
    element("div", { class: "asked" },
      choice("format", texts("format"), formats.map((format) => [format.name]), state.format, (format) => go({ format })),
      hasRules ? choice("rule", texts("blocks.rule"), rules.map((rule) => [rule, texts(`blocks.rule_${rule}`)]), state.rule,
        (rule) => go({ rule })) : null,
      element("button", { onclick: () => go({ row: engine.random_row(Number(state.seed)),
        seed: String(Number(state.seed) + 1) }) },
        texts("blocks.random"))));
}

function answer(engine, state, texts, go) {
  const found = engine.blocks(state.format, state.rule, state.row, Number(state.place), Number(state.outlier));
  const { place } = found, block = Math.floor(place / found.format.block_size);
  return element("div", {},
    element("div", { class: "asked" },
      slider("outlier", texts("blocks.outlier"), { min: 0, max: MOST_LOG2, value: state.outlier,
        text: texts("blocks.times", { factor: 2 ** state.outlier, value: found.numbers[place].text }) },
      (outlier) => go({ outlier }, { replace: true })),
      slider("place", texts("blocks.place"), { min: 0, max: found.numbers.length - 1, value: place, text: String(place + 1) },
        (next) => go({ place: next }, { replace: true }))),
    element("p", { class: "answer" }, sentence(found, block, texts)), picture(found, block, place, texts),
    element("h3", {}, texts("blocks.all")), comparison(found, texts, go), element("h3", {}, texts("blocks.codes")),
    codes(found, texts));
}

function lossText(neighbours) {
  return neighbours.relative_error === null ? "-" : `${rounded(100 * neighbours.relative_error)} %`;
}

function sentence(found, block, texts) {
  const { neighbours, format } = found, scale = found.scales[block];
  const values = { scale: scale.value, code: scale.code, tensor_scale: found.tensor_scale, ...neighbours,
    error: lossText(neighbours) };
  const became = neighbours.count === 0 ? "alone" : neighbours.broken > 0 ? "broken" : "neighbours";
  return [format.has_tensor_scale ? "scale_tensor" : "scale_is", became].map((key) => texts(`blocks.${key}`, values)).join(" ");
}

/// Each number as it was given and as it comes back, to the scale of the outlier's neighbours, with the numbers that its block
/// can
/// hold as lines.
function picture(found, block, place, texts) {
  const { numbers, format } = found, first = block * format.block_size;
  const sizes = numbers.filter((_, i) => i !== place).map(({ given }) => Math.abs(given)).filter(Number.isFinite);
  const most = Math.max(...sizes, 0) || 1, width = 1000 / numbers.length;
  const y = (value) => HEIGHT / 2 * (1 - Math.max(-1.1, Math.min(1.1, value / most)) / 1.1);
  const bar = (kind, value, i, left, right) => drawn("rect", { class: kind, x: (i + left) * width,
    width: (right - left) * width,
    y: Math.min(y(value), y(0)), height: Math.max(0, Math.abs(y(value) - y(0))) });
  const levels = [...found.scales[block].levels, ...found.scales[block].levels.map((level) => -level)].filter((level) =>
    Math.abs(level) <= 1.1 * most);
  const lines = levels.map((level) =>
    `M${first * width} ${y(level).toFixed(1)}H${Math.min(numbers.length, first + format.block_size) * width}`);
  const label = texts("blocks.picture", { count: numbers.length, format: format.name, zeros: found.neighbours.zeros });
  return element("figure", {}, element("figcaption", {}, texts("blocks.caption")),
    drawn("svg", { role: "img", "aria-label": label, width: "100%", height: HEIGHT, viewBox: `0 0 1000 ${HEIGHT}`,
      preserveAspectRatio: "none" },
      ...numbers.flatMap(({ given, decoded }, i) => [bar(i === place ? "outlier" : "given", given ?? 0, i, 0.1, 0.9),
        bar("decoded", decoded ?? 0, i, 0.35, 0.65)]),
      drawn("path", { class: "level", d: lines.join("") }), drawn("path", { class: "base", d: `M0 ${y(0)}H1000` })),
    element("p", { class: "note legend" }, ...["given", "decoded", "outlier"].map((kind) =>
      element("span", {}, element("span", { class: `key ${kind}` }), texts(`blocks.legend_${kind}`)))));
}

function comparison(found, texts, go) {
  return table([texts("format"), texts("blocks.zeros"), texts("blocks.loss"), texts("blocks.bits"), texts("blocks.elements"),
    texts("blocks.block")],
    found.all.map(({ format, neighbours }) => [
      element("button", { class: "plain", "aria-pressed": String(format.name === found.format.name), onclick: () =>
        go({ format: format.name }) },
        format.name),
      `${neighbours.zeros + neighbours.broken} / ${neighbours.count}`, lossText(neighbours), String(format.bits_per_value),
      `${format.element} × ${format.scale}`, String(format.block_size)]));
}

function codes(found, texts) {
  return table(["", texts("blocks.legend_given"), texts("blocks.scale"), texts("blocks.element"), texts("number.code"),
    texts("blocks.legend_decoded"), texts("number.error")],
    found.numbers.map((number, i) => {
      const scale = found.scales[Math.floor(i / found.format.block_size)];
      return [String(i + 1), number.text, `${scale.value} (${scale.code})`, element("span", {}, coloredFields(number.fields),
        ` ${number.element}`),
        number.code, number.decoded === null ? "nan" : String(Number(number.decoded.toPrecision(6))),
        number.relative_error === null ? "-" : `${rounded(100 * number.relative_error)} %`];
    }));
}
