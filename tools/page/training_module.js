/// The second module of the page, and the gradients that were recorded, unpacked when a chapter first needs them.

import packedGradients from "gradients.csv.gz";
import packed from "training.wasm.gz";
import { loadTraining, unpacked } from "./engine.js";
import { keepGradients } from "./recorded_gradients.js";

let loading, loaded, hasFailed = false;

async function load() {
  const [module, text] = await Promise.all([unpacked(packed).then(loadTraining), unpacked(packedGradients)]);
  return { ...module, gradients: keepGradients(module, new TextDecoder().decode(text)) };
}

/// The module with `gradients`, or null as long as it is not there, when `then` is called once it is. Throws where the browser
/// cannot run it.
export function trainingModule(texts, then) {
  if (hasFailed) throw new Error(texts("training.needs_simd"));
  if (!loaded) {
    loading ??= load().then((module) => { loaded = module; }, () => { hasFailed = true; });
    loading.then(then);
  }
  return loaded ?? null;
}
