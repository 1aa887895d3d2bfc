/// Gradients of FP32 trainings by exponent, as gradient_histogram recorded them and build.sh put them into the page.

/// Kinds of gradients, by the names the records have.
const KINDS = { "weight gradients": "weight", "activation gradients": "activation" };

/// What the module keeps of them: { network: [{ step, loss, weight, activation }, ...] } with the numbers of the counts, in the
/// order of the steps.
export function keepGradients(module, text) {
  const moments = new Map();
  for (const line of text.trim().split("\n")) {
    const [network, step, quantity, octave, ...values] = line.split(",");
    const key = `${network},${step}`;
    if (!moments.has(key)) moments.set(key, { network, step: Number(step), counts: {} });
    const moment = moments.get(key), counts = (moment.counts[KINDS[quantity]] ??= { octaves: [] });
    if (octave === "rest") {
      Object.assign(counts, { zeros: Number(values[0]), nonfinite: Number(values[1]) });
      moment.loss = Number(values[2]);
    } else {
      counts.lowest ??= Number(octave);
      counts.octaves.push(values.map(Number));
      if (Number(values[0]) > 0) counts.largest = 2 ** Number(octave);
    }
  }
  const kept = {};
  for (const { network, step, loss, counts } of moments.values()) {
    const numbers = Object.fromEntries(Object.entries(counts).map(([kind, counted]) => [kind, module.keepCounts(counted)]));
    (kept[network] ??= []).push({ step, loss, ...numbers });
  }
  return kept;
}
