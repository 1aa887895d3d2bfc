// The engine of the page gives in WebAssembly what the same sources give natively: hashes of all operations, answers, errors.
// node engine_test.mjs ENGINE.wasm NATIVE_ENGINE ; HALFLAB_PAGE_SAMPLES: of operations whose operands cannot all be tried
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { loadEngine } from "../../../tools/page/engine.js";

const [module, native] = process.argv.slice(2);
const samples = Number(process.env.HALFLAB_PAGE_SAMPLES || 1000000);
const asked = [
  ["show", "binary16", "2048+1"], ["show", "binary16", "0.1"], ["show", "e4m3", "fma(3, 5, 0.1)"],
  ["show", "bfloat16", "sqrt(2)"], ["show", "binary32", "1/3"], ["show", "e2m1", "0x7"], ["show", "binary16", "-nan"],
  ["show", "binary64", "1e-400"], ["show", "e8m0", "1+1"], ["show", "binary16", "2048+"], ["show", "half", "1"],
  ["show", "binary16", ""], ["show", "binary16", "0x12345"], ["formats"], ["lines", "binary16", -(2 ** -22), 2 ** -22, 400],
  ["lines", "binary64", 0.0999, 0.1001, 400], ["lines", "e8m0", -1, 1000, 400], ["lines", "e4m3_fnuz", -1e300, 1e300, 400],
  ["lines", "binary16", 1, 1, 400], ["draws", "binary16", "2048+0.3", 7, 4096], ["draws", "e4m3", "0.1", 1, 100],
  ["draws", "binary16", "-2^-24/3", 2, 1000], ["draws", "binary16", "1+1", 1, 10], ["draws", "binary16", "0x3c00", 1, 10],
  ["series"], ["sums", "binary16", "ones", "", 4096, 0, 4096], ["sums", "e4m3", "random", "", 300, 5, 299],
  ["sums", "binary64", "tenths", "", 1000, 0, 10], ["sums", "bfloat16", "alternating", "", 4096, 0, 4096],
  ["sums", "binary16", "own", "1, 2^3", 4, 0, 4], ["sums", "binary16", "own", "65504 1;-inf", 4, 0, 2],
  ["sums", "e8m0", "ones", "", 4, 0, 4], ["sum_curve", "binary16", "random", "", 4096, 9, "mma_binary16", "hopper"],
  ["sum_curve", "e2m1", "ones", "", 5, 0, "sum", "kahan"], ["random_row", 3], ["quiz", 1], ["quiz", 2], ["quiz", 3],
  ["block_formats"], ["blocks", "mxfp4", "floor", "1 -2.5 3e-3 100", 0, 3],
  ["blocks", "nvfp4", "floor", "0.1, 0.2;-0.3 1e30", 9, 0], ["blocks", "mxfp8_e4m3", "even", "1 nan 2", 0, 0],
  ["blocks", "mxfp6_e3m2", "rceil", "0 -0 1e-40", 2, -3], ["blocks", "mxfp5", "floor", "1", 0, 0],
  ["blocks", "mxfp4", "up", "1", 0, 0], ["blocks", "mxfp4", "floor", "1 2 drei", 0, 0],
  ["blocks", "mxfp4", "floor", "1 2,5", 0, 0], ["sums", "bfloat16", "own", "1 1e-30", 4, 0, 4],
  ["sums", "binary64", "own", "-1e308", 64, 0, 64], ["sums", "e4m3", "own", "100", 64, 0, 64],
  ["draws", "binary16", "1/3", 1, 10],
  ["ways", "binary16", "fma(245.375, 19.953125, 28688)"], ["ways", "binary64", "1/3"], ["ways", "e5m2", "0.1"],
];

const engine = await loadEngine(readFileSync(module));
const expected = execFileSync(native, [String(samples), ...asked.map((question) => JSON.stringify(question))],
  { encoding: "utf8", maxBuffer: 1 << 26 }).trimEnd().split("\n");
let failures = 0;
const check = (what, found, wanted) => {
  if (found === wanted) return;
  ++failures;
  console.log(`${what}: found ${found.slice(0, 300)}, expected ${String(wanted).slice(0, 300)}`);
};

const operations = engine.operations();
operations.forEach(({ name, is_countable }, i) => {
  const hash = engine.hash(i, 0, is_countable ? 65536 : samples).toString(16).padStart(16, "0");
  check(name, `${name} ${hash}`, expected[i]);
});
asked.forEach(([name, ...parameters], i) => {
  let found;
  try {
    found = JSON.stringify(engine[name](...parameters));
  } catch (error) {
    found = error.message;
  }
  const wanted = expected[operations.length + i];  // JavaScript writes 1.0 as 1
  check(JSON.stringify(asked[i]), found, /^([{["]|null$)/.test(wanted) ? JSON.stringify(JSON.parse(wanted)) : wanted);
});
if (operations.length < 100 || expected.length !== operations.length + asked.length)
  check("the number of answers", String(expected.length), "all");
console.log(`${operations.length} operations, ${samples} samples of those that cannot all be tried, ${asked.length} answers: ` +
  `${failures} differ`);
process.exit(failures ? 1 : 0);
