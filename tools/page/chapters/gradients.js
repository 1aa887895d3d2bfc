/// Gradients: where those of a network lie, what FP16 can hold of them, and what a loss scale saves.

import { choice, drawn, element, isWhole, rounded, slider, table } from "../elements.js";
import { trainingModule } from "../training_module.js";

export const name = "gradients";
/// network: or "file", the reader's own, of which `tensor` is shown; moment: early, middle or late; scale: log2 of S.
export const defaults = { network: "autoencoder", moment: "2", kind: "weight", tensor: "0", scale: "0" };
export const words = ["gradient", "loss_scale", "norm", "subnormal"];

const FILE = "file", NETWORKS = ["mlp", "autoencoder", "cnn", "ssd", "transformer", "lstm"];
const MOMENTS = ["early", "middle", "late"], KINDS = ["weight", "activation"];
const LEAST_LOG2 = -20, MOST_LOG2 = 40, EXAMPLE_LOG2 = 10, MOST_BYTES = 2 ** 28, MOST_TENSORS = 10000, HEIGHT = 220;
/// Of binary16: up to 2^flushed all becomes zero, from 2^normal on numbers are normal, from 2^infinite on infinite.
const BORDERS = { flushed: -25, normal: -14, infinite: 16 };

/// The reader's file, { name, tensors }, why the last one was not read, and what reads one while the chapter is shown.
let file, problem, open;

export function allowed(parameter, value) {
  if (parameter === "network") return value === FILE || NETWORKS.includes(value);
  if (parameter === "kind") return KINDS.includes(value);
  if (parameter === "moment") return isWhole(value, 0, MOMENTS.length - 1);
  if (parameter === "tensor") return isWhole(value, 0, MOST_TENSORS);
  return isWhole(value.replace(/^-/, ""), 0, value.startsWith("-") ? -LEAST_LOG2 : MOST_LOG2);
}

export function leave() {
  problem = open = undefined;
}

export function drop(dropped) {
  open?.(dropped);
}

export function show(engine, state, texts, go) {
  const module = trainingModule(texts, () => go({}, { replace: true }));
  if (!module) return element("p", { role: "status", "data-loading": true }, texts("training.loading"));
  open = (opened) => read(opened, module, texts, go);
  return element("div", {}, asked(state, texts, go),
    problem ? element("p", { class: "wrong", role: "alert" }, problem) : null, answer(module, state, texts, go));
}

function asked(state, texts, go) {
  const names = NETWORKS.map((network) => [network, texts(`gradients.${network}`)]);
  const ask = (change) => {
    problem = undefined;
    go(change);
  };
  const isFile = state.network === FILE;
  return element("div", { class: "asked" },
    choice("network", texts("gradients.network"), [...names, [FILE, texts("gradients.file")]], state.network,
      (network) => ask({ network })),
    isFile ? tensors(state, texts, go) : choice("moment", texts("gradients.moment"),
      MOMENTS.map((moment, i) => [String(i), texts(`gradients.${moment}`)]), state.moment, (moment) => ask({ moment })),
    isFile ? null : choice("kind", texts("gradients.kind"), KINDS.map((kind) => [kind, texts(`gradients.${kind}`)]), state.kind,
      (kind) => ask({ kind })),
    element("label", {}, texts("gradients.own"), element("input", { id: "file", type: "file", accept: ".npy,.safetensors",
      onchange: ({ target }) => open(target.files[0]) })));
}

function tensors(state, texts, go) {
  if (!file) return null;
  const names = file.tensors.map((tensor, i) => [String(i), tensorText(tensor, texts)]);
  return choice("tensor", texts("gradients.tensor"), names, state.tensor, (tensor) => go({ tensor }));
}

function tensorText({ name, shape, format }, texts) {
  return name ? `${name} ${shape} ${format}` : texts("gradients.all");
}

/// Reads a file that was chosen or dropped; nothing of it leaves the page.
async function read(opened, module, texts, go) {
  if (!opened) return;
  problem = undefined;
  try {
    const size = rounded(opened.size / 1e9);
    if (opened.size > MOST_BYTES) throw new Error(texts("gradients.too_large", { name: opened.name, size }));
    const bytes = new Uint8Array(await opened.arrayBuffer());
    const tensors = module.countFile(opened.name, bytes), before = file?.tensors ?? [];
    file = { name: opened.name, tensors };
    for (const { number } of before) module.forgetCounts(number);
  } catch (error) {
    const { name } = opened, { message } = error;
    problem = message.includes(name) ? message : texts("gradients.broken", { name, message });
  }
  go(problem ? {} : { network: FILE, tensor: "0" }, { replace: Boolean(problem) });
}

/// Of the state: the number of its counts, and what they are, in words; nothing where the file is not here.
function chosen(module, state, texts) {
  if (state.network !== FILE) {
    const moment = module.gradients[state.network][Number(state.moment)];
    return { number: moment[state.kind], text: texts("gradients.of_network", { network: texts(`gradients.${state.network}`),
      kind: texts(`gradients.${state.kind}`), step: moment.step, loss: rounded(moment.loss) }) };
  }
  const tensor = file?.tensors[Number(state.tensor)] ?? file?.tensors[0];
  return tensor && { number: tensor.number,
    text: texts("gradients.of_file", { name: file.name, tensor: tensorText(tensor, texts) }) };
}

function answer(module, state, texts, go) {
  const found = chosen(module, state, texts), log2 = Number(state.scale);
  if (!found) return element("p", { class: "answer" }, texts("gradients.no_file"));
  const counts = module.counts(found.number), { zeros, nonfinite } = counts;
  const at = module.castCounts(found.number, log2), before = module.castCounts(found.number, 0);
  const said = sentence(log2, at, before, nonfinite, texts);
  return element("div", {}, scale(log2, at, texts, go), element("p", { class: "answer" }, said),
    histogram(found, counts, log2, said, texts), outcomes(log2, at, before, { zeros, nonfinite }, texts),
    element("p", { class: "note" }, texts("gradients.rule")));
}

function scale(log2, at, texts, go) {
  const button = (to, text) =>
    element("button", { "aria-pressed": String(to === log2), onclick: () => go({ scale: String(to) }) }, text);
  return element("div", {}, element("div", { class: "asked" },
    slider("scale", texts("gradients.scale"), { min: LEAST_LOG2, max: MOST_LOG2, value: log2, text: `2^${log2}` },
      (to) => go({ scale: to }, { replace: true }))),
  element("div", { class: "buttons" }, button(0, "S = 1"), button(EXAMPLE_LOG2, `S = 2^${EXAMPLE_LOG2}`),
    greatest(at.greatest, button, texts)));
}

/// The largest scale without an infinity: to choose, or told alone where the slider ends before it; null where there is none.
function greatest(log2, button, texts) {
  if (log2 === null) return null;
  const isOnSlider = LEAST_LOG2 <= log2 && log2 <= MOST_LOG2, values = { scale: `2^${log2}` };
  return isOnSlider ? button(log2, texts("gradients.greatest", values))
    : element("span", { class: "note" }, texts("gradients.greatest_beyond", values));
}

/// To three digits, and what is not all or nothing never as all or nothing.
function percent(part, whole) {
  const share = whole === 0 ? 0 : 100 * part / whole;
  return `${share < 100 && Number(rounded(share)) === 100 ? "> 99.9" : rounded(share)} %`;
}

function sentence(log2, at, before, nonfinite, texts) {
  const values = { scale: `2^${log2}`, flushed: percent(at.flushed, at.nonzero),
    before: percent(before.flushed, before.nonzero), saved: percent(before.flushed - at.flushed, at.nonzero),
    more: percent(at.flushed - before.flushed, at.nonzero),
    norm: percent(at.norm_flushed, 1), norm_before: percent(before.norm_flushed, 1), infinite: at.overflowed,
    greatest: `2^${at.greatest}`, nonfinite };
  const kind = at.nonzero === 0 ? "none" : log2 === 0 ? "at_one" : at.flushed <= before.flushed ? "saves" : "loses";
  const said = [texts(`gradients.${kind}`, values)];
  if (at.overflowed > 0) said.push(texts(`gradients.${at.greatest === null ? "overflow_always" : "overflow"}`, values));
  if (nonfinite > 0) said.push(texts("gradients.nonfinite_skip", values));
  return said.join(" ");
}

/// Values by octave, over what FP16 makes of them: the borders move against the slider.
function histogram(found, counts, log2, label, texts) {
  const highest = counts.lowest + counts.octaves.length, low = Math.min(counts.lowest, BORDERS.flushed) - 2;
  const high = Math.max(highest, BORDERS.infinite) + 2, most = Math.max(1, ...counts.octaves);
  const bar = (values) => Math.max(1.5, (HEIGHT - 10) * values / most).toFixed(2);
  const bars = counts.octaves.map((values, i) =>
    (values === 0 ? "" : `M${counts.lowest + i + 0.08} ${HEIGHT}v-${bar(values)}h.84V${HEIGHT}Z`)).join("");
  const within = (octave) => Math.min(high, Math.max(low, octave - log2));
  const zone = (kind, from, to) =>
    drawn("rect", { class: kind, x: from, y: 0, width: Math.max(0, to - from), height: HEIGHT });
  const [flushed, normal, infinite] = [within(BORDERS.flushed), within(BORDERS.normal), within(BORDERS.infinite)];
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((octave) => octave % 20 === 0);
  return element("figure", {}, element("figcaption", {}, `${found.text} ${texts("gradients.caption", { most })}`),
    drawn("svg", { role: "img", "aria-label": label, width: "100%", height: HEIGHT + 24 },
      drawn("svg", { width: "100%", height: HEIGHT, viewBox: `${low} 0 ${high - low} ${HEIGHT}`, preserveAspectRatio: "none" },
        zone("zero", low, flushed), zone("subnormal", flushed, normal), zone("even", normal, infinite),
        zone("beyond", infinite, high), drawn("path", { class: "bars", d: bars })),
      ...ticks.map((octave) => drawn("text", { x: `${(100 * (octave - low) / (high - low)).toFixed(2)}%`, y: HEIGHT + 18,
        "text-anchor": "middle" }, `2^${octave}`))));
}

function outcomes(log2, at, before, others, texts) {
  const kinds = [["zero", "flushed"], ["subnormal", "subnormal"], ["even", "normal"], ["beyond", "overflowed"]];
  const casts = log2 === 0 ? [{ said: "S = 1", ...at }] : [{ said: "S = 1", ...before }, { said: `S = 2^${log2}`, ...at }];
  const rows = kinds.map(([color, kind]) => [
    element("span", {}, element("span", { class: `key ${color}` }), texts(`gradients.${kind}`)),
    ...casts.map((cast) => percent(cast[kind], cast.nonzero)), String(at[kind])]);
  rows.push([texts("gradients.norm_flushed"), ...casts.map((cast) => percent(cast.norm_flushed, 1)), ""]);
  for (const [kind, count] of Object.entries(others))
    rows.push([texts(`gradients.${kind}`), ...casts.map(() => ""), String(count)]);
  const { said } = casts.at(-1);
  return table([texts("gradients.becomes"), ...casts.map((cast) => cast.said), texts("gradients.values", { said })], rows);
}
