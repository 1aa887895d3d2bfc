/// The library in WebAssembly, as functions of JavaScript. What it throws are Errors with the library's own sentences.

const encoder = new TextEncoder(), decoder = new TextDecoder();

/// The bytes that stand in the page as base64 of gzip, as a promise. Rejected where there is no DecompressionStream.
export async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/// A module of the library from its bytes, as a promise of { call, ask }: functions by name, of which ask reads the answer.
/// Rejected where there is no WebAssembly, or not what the module needs of it.
async function instantiate(bytes) {
  let memory;
  const textAt = (place) => {
    const all = new Uint8Array(memory.buffer);
    return decoder.decode(all.subarray(place, all.indexOf(0, place)));
  };
  const page = { raise(what) { throw new Error(textAt(what)); } };
  // Of files and processes the library asks for environment variables, of which there are none; else only to say why it gives up.
  const noVariables = (...places) => {
    for (const place of places) new DataView(memory.buffer).setUint32(place, 0, true);
    return 0;
  };
  const refuse = (name) => () => { throw new Error(`the engine called ${name}`); };
  const wasi = new Proxy({ environ_sizes_get: noVariables, environ_get: () => 0 }, { get: (known, name) => known[name] ?? refuse(name) });
  const { instance } = await WebAssembly.instantiate(bytes, { page, wasi_snapshot_preview1: wasi });
  const wasm = instance.exports;
  memory = wasm.memory;
  wasm._initialize();

  /// A call with texts and numbers; an exception leaves the engine's stack as it stood, and it is set back.
  const call = (name, ...parameters) => {
    const stack = wasm.__stack_pointer.value, rooms = [];
    const given = parameters.map((parameter) => {
      if (typeof parameter !== "string" && !(parameter instanceof Uint8Array)) return parameter;
      const content = typeof parameter === "string" ? encoder.encode(parameter + "\0") : parameter;
      const room = wasm.engine_allocate(content.length);
      if (room === 0) throw new Error(`there is no room for ${content.length} bytes`);
      rooms.push(room);
      new Uint8Array(memory.buffer).set(content, room);
      return room;
    });
    try {
      return wasm[`engine_${name}`](...given);
    } finally {
      wasm.__stack_pointer.value = stack;
      for (const room of rooms) wasm.engine_free(room);
    }
  };
  return { call, ask: (name, ...parameters) => JSON.parse(textAt(call(name, ...parameters))) };
}

/// Numbers and operations, as a promise.
export async function loadEngine(bytes) {
  const { call, ask } = await instantiate(bytes);
  // Of each function the last answer stays: a chapter asks again when something else of it changes.
  const last = new Map();
  const answer = (name, ...parameters) => {
    const question = JSON.stringify(parameters);
    if (last.get(name)?.question !== question) last.set(name, { question, found: ask(name, ...parameters) });
    return last.get(name).found;
  };

  return {
    formats: () => answer("formats"),
    show: (format, text) => answer("show", format, text),
    lines: (format, low, high, most) => answer("lines", format, low, high, most),
    draws: (format, text, seed, count) => answer("draws", format, text, seed, count),
    ways: (format, text) => answer("ways", format, text),
    series: () => answer("series"),
    sums: (...question) => answer("sums", ...question),
    sum_curve: (...question) => answer("sum_curve", ...question),
    block_formats: () => answer("block_formats"),
    blocks: (...question) => answer("blocks", ...question),
    random_row: (seed) => answer("random_row", seed),
    quiz: (seed) => answer("quiz", seed),
    operations: () => answer("operations"),
    hash: (index, first, count) => BigInt.asUintN(64, call("hash", index, BigInt(first), BigInt(count))),
  };
}

/// Trainings and counts of gradients, as a promise. Rejected where WebAssembly has no SIMD.
export async function loadTraining(bytes) {
  const { call, ask } = await instantiate(bytes);
  return {
    networks: () => ask("networks"),
    begin: (network, policy, scaler, seed) => call("begin_training", network, policy, scaler, BigInt(seed)),
    replaceScaler: (training, scaler) => call("replace_scaler", training, scaler),
    firstScale: (scaler) => call("first_scale", scaler),
    step: (training) => ask("step", training),
    end: (training) => call("end_training", training),
    keepCounts: (recorded) => call("keep_counts", JSON.stringify(recorded)),
    countFile: (name, bytes) => ask("count_file", name, bytes, bytes.length),
    forgetCounts: (number) => call("forget_counts", number),
    counts: (number) => ask("counts", number),
    castCounts: (number, scaleLog2) => ask("cast_counts", number, scaleLog2),
    productHash: (seed) => BigInt.asUintN(64, call("product_hash", BigInt(seed))),
  };
}
