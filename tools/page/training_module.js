/// The second module of the page, unpacked when a chapter first needs it.

import packed from "training.wasm.gz";
import { loadTraining, unpacked } from "./engine.js";

let loading, loaded, hasFailed = false;

/// The module, or null as long as it is not there, when `then` is called once it is. Throws where the browser cannot run it.
export function trainingModule(texts, then) {
  if (hasFailed) throw new Error(texts("training.needs_simd"));
  if (!loaded) {
    loading ??= unpacked(packed).then(loadTraining).then((module) => { loaded = module; }, () => { hasFailed = true; });
    loading.then(then);
  }
  return loaded ?? null;
}
