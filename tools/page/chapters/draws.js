/// Stochastic rounding as draws: the share of those that went away from zero settles where the exact value lies.

import { drawn, element, rounded, slider } from "../elements.js";

const MOST_LOG2 = 12, HEIGHT = 150;
export const MOST = 2 ** MOST_LOG2;

function down(share) {
  return HEIGHT * (1 - share);
}

function picture(found, count, label, texts) {
  const across = (number) => 1000 * Math.log2(number) / Math.max(1, Math.log2(count));
  const path = found.numbers.map((number, i) =>
    `${across(number).toFixed(1)} ${down(found.away[i] / number).toFixed(1)}`).join("L");
  const line = (kind, y) => drawn("path", { class: kind, d: `M0 ${y}H1000` });
  const text = (y, said) => drawn("text", { x: 0, y: 20 + y }, said);
  const axis = drawn("text", { x: "100%", y: HEIGHT + 55, "text-anchor": "end" }, texts("draws.axis", { count }));
  return drawn("svg", { role: "img", "aria-label": label, width: "100%", height: HEIGHT + 60 }, text(-6, found.far),
    drawn("svg", { y: 20, width: "100%", height: HEIGHT, viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none" },
      line("base", 0.5), line("base", HEIGHT - 0.5), line("exact", down(found.chance)),
        drawn("path", { class: "walk", d: `M${path}` })),
    text(HEIGHT + 15, found.near), axis);
}

export function draws(engine, state, texts, go) {
  const count = Number(state.draws);
  const found = engine.draws(state.format, state.value, Number(state.seed), count);
  if (!found) return null;
  const away = found.away.at(-1);
  const said = texts("draws.said", { count, away, rest: count - away, near: found.near, far: found.far,
    mean: String(found.mean),
    exact: found.exact.length > 30 ? `${found.exact.slice(0, 28)}...` : found.exact });
  return element("div", {}, element("h3", {}, texts("draws.title")),
    element("figure", {}, element("figcaption", {},
      texts("draws.caption", { far: found.far, chance: rounded(100 * found.chance) })),
      picture(found, count, said, texts)),
    element("p", { class: "answer", "aria-live": "polite" }, said),
    element("div", { class: "asked" }, slider("draws", texts("draws.number"), { min: 0, max: MOST_LOG2, value: Math.log2(count),
      text: String(count) },
      (exponent) => go({ draws: String(2 ** exponent) }, { replace: true }))),
    element("div", { class: "buttons" }, element("button", { onclick: () => go({ seed: String(Number(state.seed) + 1) },
      { replace: true }) },
      texts("draws.again"))));
}
