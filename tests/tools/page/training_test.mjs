// Trainings have in WebAssembly the very bits that the same sources have natively: losses, scales, counts of every gradient.
// node training_test.mjs TRAINING.wasm NATIVE_TRAINING
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { loadTraining } from "../../../tools/page/engine.js";

const [module, native] = process.argv.slice(2);
// network, policy, scaler, seed, steps, scalers from later steps on
const courses = [
  ["autoencoder", "fp32", "none", 0, 40, {}],
  ["autoencoder", "amp", "none", 0, 40, { 20: "static:scale=1024" }],
  ["autoencoder", "amp", "dynamic:growth_interval=2:init_scale=16777216", 3, 40, { 30: "adaptive" }],
  ["autoencoder", "fp16", "static:scale=1e12", 0, 4, { 2: "none" }],
  ["mlp", "fp32", "none", 7, 20, {}],
  ["mlp", "amp", "adaptive", 7, 20, { 10: "dynamic:growth_interval=1" }],
  ["mlp", "bf16", "none", 1, 5, {}],
  ["perceptron", "amp", "none", 0, 1, {}], ["mlp", "amp", "static:scale=-1", 0, 1, {}], ["mlp", "amp", "ada_loss", 0, 1, {}],
  ["mlp", "fp17", "none", 0, 1, {}], ["mlp", "amp", "none", 0, 2, { 1: "statik" }],
];

const engine = await loadTraining(readFileSync(module));
function* answers() {
  for (const [network, policy, scaler, seed, steps, later] of courses) {
    try {
      const training = engine.begin(network, policy, scaler, seed);
      for (let step = 0; step < steps; ++step) {
        if (later[step]) engine.replaceScaler(training, later[step]);
        yield JSON.stringify(engine.step(training));
      }
      engine.end(training);
    } catch (error) {
      yield error.message;
    }
  }
  yield JSON.stringify(engine.networks());
  yield engine.productHash(1).toString(16).padStart(16, "0");
}

const output = execFileSync(native, courses.map((course) => JSON.stringify(course)), { encoding: "utf8", maxBuffer: 1 << 26 });
const expected = output.trimEnd().split("\n"), found = [...answers()];
let failures = found.length === expected.length ? 0 : 1;
found.forEach((answer, i) => {
  const wanted = expected[i] ?? "nothing";
  if (answer === (/^[{[]/.test(wanted) ? JSON.stringify(JSON.parse(wanted)) : wanted)) return;
  ++failures;
  console.log(`answer ${i}: found ${answer.slice(0, 300)}, expected ${wanted.slice(0, 300)}`);
});
const skips = found.filter((answer) => answer.includes('"skip"')).length;
if (skips === 0) console.log("no step was skipped: the courses must be such that some are");
console.log(`${found.length} answers, ${skips} of them of skipped steps: ${failures} differ`);
process.exit(failures || skips === 0 ? 1 : 0);
