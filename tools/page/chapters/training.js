/// A training: FP32 and FP16 side by side, what the loss scale does to the second, and which of its layers get zeros alone.

import { choice, drawn, element, isWhole, rounded, slider } from "../elements.js";
import { trainingModule } from "../training_module.js";
import { courseText, readCourse, scalerAt, TrainingPair, withScaler } from "../training_pair.js";

export const name = "training";
/// course: from which step on which scaler, see training_pair.js; step: how many both have made.
export const defaults = { network: "autoencoder", course: "0:none", step: "0" };
export const words = ["loss", "gradient", "loss_scale", "scalers", "autocast"];

const NETWORKS = ["autoencoder", "mlp"], SCALERS = ["none", "static", "dynamic", "adaptive"], SEED = 1;
const MOST_STEPS = 2000, SPANS = [200, 400, 800, 1200, MOST_STEPS], MOST_LOG2 = 30, MEAN = 20;
const SLICE = 12, PAUSE = 100, CALM_PAUSE = 1000;  // ms: training at one go, between two drawings, and with less motion
const HEIGHT = 200, STAIRS = 90, STRIP = 26;

/// The trainings stay when the chapter is left. They go on until `wanted` steps are made, or `playing` ends.
let pair, playing = false, wanted = 0, isWorking = false, redraw, drawnAt = 0;

export function allowed(parameter, value) {
  if (parameter === "network") return NETWORKS.includes(value);
  if (parameter === "course") return readCourse(value) !== null;
  return isWhole(value, 0, MOST_STEPS);
}

export function leave() {
  playing = false;
  wanted = 0;
  redraw = undefined;
}

export function show(engine, state, texts, go) {
  const module = trainingModule(texts, () => go({}, { replace: true }));
  if (!module) return element("p", { role: "status", "data-loading": true }, texts("training.loading"));
  if (pair?.network !== state.network) {
    pair?.end();
    pair = new TrainingPair(module, state.network, SEED);
  }
  pair.follow(readCourse(state.course));
  redraw = () => {
    const change = playing ? { step: String(pair.done) } : {};
    playing &&= pair.done < MOST_STEPS;
    go(change, { replace: true });
  };
  if (!playing) wanted = Number(state.step);
  work();
  const shown = shownStep(state);
  return element("div", {}, controls(state, texts, go, shown), sentence(shown, texts), losses(shown, texts),
    stairs(shown, texts), layers(shown, texts), sizes(module, state, texts));
}

/// A step that was asked for may lie before those that were made.
function shownStep(state) {
  return playing ? pair.done : Math.min(pair.done, Number(state.step));
}

/// The step that is shown, from which the next one goes on: FP16 forgets those that it made after it.
function returned(state) {
  const shown = shownStep(state);
  if (shown < pair.done) pair.rewind(shown);
  return shown;
}

/// Trains on in slices, between which the page does what else is asked of it.
function work() {
  if (isWorking || pair.done >= wanted) return;
  isWorking = true;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    if (pair.done < wanted) slice();
    isWorking = pair.done < wanted;
    if (isWorking) port2.postMessage(null);
    else port1.close();
    draw();
  };
  port2.postMessage(null);
}

function slice() {
  const begin = performance.now();
  let longest = 0, now = begin;
  do {
    const before = now;
    pair.advance();
    now = performance.now();
    longest = Math.max(longest, now - before);
  } while (pair.done < wanted && now - begin + longest < SLICE);
  performance.measure("training slice", { start: begin, end: now });
}

/// Shows the chapter anew, at a step where it has moved on, now and then, and at the end.
function draw() {
  const now = performance.now(), isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (isWorking && now - drawnAt < (isCalm ? CALM_PAUSE : PAUSE)) return;
  drawnAt = now;
  requestAnimationFrame(() => redraw?.());
}

function controls(state, texts, go, shown) {
  const present = scalerAt(pair.course, shown), [kind] = present.split("."), log2 = scaleLog2(shown);
  const choose = (scaler, options) => {
    const step = String(returned(state));
    go({ course: courseText(withScaler(pair.course, pair.narrow.steps.length, scaler)), step }, options);
  };
  const scale = { min: 0, max: MOST_LOG2, value: Math.min(MOST_LOG2, Math.max(0, log2)), text: `2^${log2}` };
  const scalers = SCALERS.map((scaler) => element("button", { "aria-pressed": String(scaler === kind),
    onclick: () => choose(scaler === "static" ? `static.${scale.value}` : scaler) }, texts(`training.${scaler}`)));
  return element("div", {}, steps(state, shown, present, texts, go),
    element("div", { class: "asked" },
      slider("scale", texts("training.scale"), scale, (value) => choose(`static.${value}`, { replace: true })),
      choice("network", texts("training.network"), NETWORKS.map((each) => [each, texts(`training.${each}`)]), state.network,
        (network) => {
          playing = false;
          go({ network, step: "0" });
        })),
    element("div", { class: "buttons", role: "group", "aria-label": texts("training.scalers") }, ...scalers));
}

function steps(state, shown, present, texts, go) {
  const play = () => {
    const step = returned(state);
    playing = !playing;
    wanted = playing ? MOST_STEPS : step;
    go({ step: String(step) }, { replace: true });
  };
  const one = () => {
    const step = shownStep(state) + 1;
    playing = false;
    go({ step: String(Math.min(MOST_STEPS, step)) }, { replace: true });
  };
  const restart = () => {
    playing = false;
    go({ course: courseText([{ step: 0, scaler: present }]), step: "0" });
  };
  const isAtEnd = shown >= MOST_STEPS;
  return element("div", { class: "buttons" },
    element("button", { id: "play", onclick: play, disabled: isAtEnd }, texts(playing ? "training.pause" : "training.run")),
    element("button", { onclick: one, disabled: isAtEnd }, texts("training.one")),
    element("button", { onclick: restart }, texts("training.restart")));
}

/// log2 of S of the coming step, rounded.
function scaleLog2(shown) {
  const [kind, log2] = scalerAt(pair.course, shown).split(".");
  if (kind === "static") return Number(log2);
  const isNew = shown === 0 || pair.narrow.steps[shown - 1].scaler.split(".")[0] !== kind;
  return Math.round(Math.log2(isNew ? pair.firstScale(kind) : pair.narrow.steps[shown - 1].next));
}

/// The mean over the last steps, of which a batch's own luck is no part.
function means(training, shown) {
  const sums = [0];
  for (let i = 0; i < shown; ++i) sums.push(sums[i] + (training.steps[i].loss ?? NaN));
  return Array.from({ length: shown }, (_, i) => (sums[i + 1] - sums[Math.max(0, i + 1 - MEAN)]) / Math.min(MEAN, i + 1));
}

/// The layer whose gradient has the most zeros that FP32's has not.
function poorest(shown) {
  const wide = pair.wide.steps[shown - 1].layers;
  const rows = pair.narrow.steps[shown - 1].layers.map((layer, i) => ({ ...layer, wide: wide[i].zero }));
  return rows.reduce((worst, row) => (row.zero - row.wide > worst.zero - worst.wide ? row : worst));
}

function percent(share) {
  return `${rounded(100 * share)} %`;
}

function power(scale) {
  return `2^${rounded(Math.log2(scale))}`;
}

function lossValues(shown) {
  const [narrow, wide] = [pair.narrow, pair.wide].map((training) => rounded(means(training, shown).at(-1)));
  return { steps: shown, narrow, wide };
}

function sentence(shown, texts) {
  if (shown === 0) return element("p", { class: "answer" }, texts("training.begin", { scale: `2^${scaleLog2(shown)}` }));
  const skipped = pair.narrow.steps.slice(0, shown).filter((step) => step.skipped).length, layer = poorest(shown);
  const values = { scale: power(pair.narrow.steps[shown - 1].scale), layer: layer.name, zero: percent(layer.zero),
    wide_zero: percent(layer.wide) };
  const last = pair.narrow.steps[shown - 1].skipped ? "overflowed" : layer.zero - layer.wide > 0.01 ? "dead" : "alive";
  const said = [texts("training.losses", lossValues(shown)), texts(`training.${last}`, values)];
  if (skipped > 0) said.push(texts("training.skipped", { skipped }));
  if (shown >= MOST_STEPS) said.push(texts("training.ended", { steps: MOST_STEPS }));
  return element("p", { class: "answer" }, said.join(" "));
}

/// How many steps the drawings have room for.
function span(shown) {
  return SPANS.find((steps) => shown <= steps);
}

/// Through the values that are numbers, from the first on.
function path(values, x, y, first = 0) {
  const points = values.map((value, i) => [i, value]).filter(([i, value]) => i >= first && Number.isFinite(value));
  return points.map(([i, value], place) => `${place ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

/// A drawing over the steps, with the values at its upper and its lower edge.
function plot({ height, high, low, label }, shown, texts, ...inside) {
  return drawn("svg", { role: "img", "aria-label": label, width: "100%", height: height + 42 },
    drawn("text", { x: 0, y: 14 }, high),
    drawn("svg", { y: 20, width: "100%", height, viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none" },
      drawn("path", { class: "base", d: `M0 0V${height}H1000` }), ...inside),
    drawn("text", { x: 0, y: height + 36 }, low),
    drawn("text", { x: "100%", y: height + 36, "text-anchor": "end" }, texts("training.steps", { steps: span(shown) })));
}

function losses(shown, texts) {
  const wide = means(pair.wide, shown), narrow = means(pair.narrow, shown), first = shown > 2 * MEAN ? MEAN : 0;
  const seen = [...wide.slice(first), ...narrow.slice(first)].filter(Number.isFinite);
  const high = seen.length ? 1.02 * Math.max(...seen) : 1, low = seen.length ? 0.98 * Math.min(...seen) : 0;
  const x = (step) => 1000 * (step + 1) / span(shown), y = (loss) => HEIGHT * (high - loss) / (high - low);
  const label = shown ? texts("training.losses", lossValues(shown)) : texts("training.no_steps");
  return element("figure", {}, element("figcaption", {}, texts("training.loss_caption", { mean: MEAN })), legend(texts),
    plot({ height: HEIGHT, high: rounded(high), low: rounded(low), label }, shown, texts,
      drawn("path", { class: "exact thick", d: path(wide, x, y, first) }),
      drawn("path", { class: "walk thick", d: path(narrow, x, y, first) })));
}

function legend(texts) {
  const line = (kind) => drawn("svg", { width: 28, height: 12, "aria-hidden": "true" },
    drawn("path", { class: kind, d: "M0 6H28" }));
  return element("div", { class: "legend" }, element("span", {}, line("exact thick"), ` ${texts("training.wide")}`),
    element("span", {}, line("walk thick"), ` ${texts("training.narrow")}`));
}

/// S of every step, and a mark where a step was skipped.
function stairs(shown, texts) {
  const steps = pair.narrow.steps.slice(0, shown), logs = steps.map(({ scale }) => Math.log2(scale));
  const high = Math.max(MOST_LOG2, ...logs), low = Math.min(0, ...logs);
  const x = (step) => 1000 * step / span(shown), y = (log2) => 4 + (STAIRS - 8) * (high - log2) / (high - low);
  const stair = logs.map((log2, i) => `${i ? "V" : "M0 "}${y(log2).toFixed(1)}H${x(i + 1).toFixed(1)}`).join("");
  const skips = steps.map(({ skipped }, i) => (skipped ? `M${x(i + 0.5).toFixed(1)} 0V${STAIRS}` : ""));
  const label = shown ? texts("training.stairs_label", { first: power(steps[0].scale), last: power(steps.at(-1).scale),
    skipped: skips.filter((skip) => skip).length }) : texts("training.no_steps");
  return element("figure", {}, element("figcaption", {}, texts("training.stairs_caption")),
    plot({ height: STAIRS, high: `2^${rounded(high)}`, low: `2^${rounded(low)}`, label }, shown, texts,
      drawn("path", { class: "skip", d: skips.join("") }), drawn("path", { class: "walk thick", d: stair })));
}

/// For each layer the share of zeros in the gradient of its weights: over the steps, and now.
function layers(shown, texts) {
  if (shown === 0) return null;
  const rows = pair.narrow.steps[0].layers.map(({ name }, i) => {
    const [narrow, wide] = [pair.narrow, pair.wide].map(({ steps }) =>
      steps.slice(0, shown).map(({ layers }) => layers[i].zero));
    return element("div", { class: "strip" }, element("span", {}, name), strip(narrow, wide, shown),
      element("span", {}, texts("training.share", { narrow: percent(narrow.at(-1)), wide: percent(wide.at(-1)) })));
  });
  return element("figure", {}, element("figcaption", {}, texts("training.layers_caption")), ...rows);
}

function strip(narrow, wide, shown) {
  const x = (step) => 1000 * (step + 1) / span(shown), y = (share) => STRIP * (1 - share);
  const size = { width: "100%", height: STRIP, viewBox: `0 0 1000 ${STRIP}`, preserveAspectRatio: "none" };
  return drawn("svg", { ...size, "aria-hidden": "true" },
    drawn("path", { class: "area", d: `${path(narrow, x, y).replace("M", `M0 ${STRIP}L`)}V${STRIP}Z` }),
    drawn("path", { class: "exact", d: path(wide, x, y) }), drawn("path", { class: "level", d: `M0 ${STRIP}H1000` }));
}

function sizes(module, { network }, texts) {
  const found = module.networks().find((row) => row.name === network);
  return element("p", { class: "note" }, texts("training.sizes", { network: texts(`training.${network}`),
    widths: found.widths.join("-"), parameters: found.parameters, batch: found.batch, optimizer: found.optimizer,
    rate: found.learning_rate }));
}
