/// The library in WebAssembly, as functions of JavaScript. What it throws are Errors with the library's own sentences.

const encoder = new TextEncoder(), decoder = new TextDecoder();

/// The bytes that stand in the page as base64 of gzip, as a promise. Rejected where there is no DecompressionStream.
export async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/// The engine of a module's bytes, as a promise. Rejected where there is no WebAssembly.
export async function loadEngine(bytes) {
  let memory;
  const textAt = (place) => {
    const all = new Uint8Array(memory.buffer);
    return decoder.decode(all.subarray(place, all.indexOf(0, place)));
  };
  const page = { raise(what) { throw new Error(textAt(what)); } };
  // Files and processes, of which the library asks for nothing but to say why it gives up.
  const refuse = (name) => () => { throw new Error(`the engine called ${name}`); };
  const wasi = new Proxy({}, { get: (_, name) => refuse(name) });
  const { instance } = await WebAssembly.instantiate(bytes, { page, wasi_snapshot_preview1: wasi });
  const wasm = instance.exports;
  memory = wasm.memory;
  wasm._initialize();

  /// A call with texts and numbers; an exception leaves the engine's stack as it stood, and it is set back.
  const call = (name, ...parameters) => {
    const stack = wasm.__stack_pointer.value, rooms = [];
    const given = parameters.map((parameter) => {
      if (typeof parameter !== "string") return parameter;
      const text = encoder.encode(parameter + "\0"), room = wasm.engine_allocate(text.length);
      rooms.push(room);
      new Uint8Array(memory.buffer).set(text, room);
      return room;
    });
    try {
      return wasm[`engine_${name}`](...given);
    } finally {
      wasm.__stack_pointer.value = stack;
      for (const room of rooms) wasm.engine_free(room);
    }
  };
  const answer = (...question) => JSON.parse(textAt(call(...question)));

  return {
    formats: () => answer("formats"),
    show: (format, text) => answer("show", format, text),
    operations: () => answer("operations"),
    hash: (index, first, count) => BigInt.asUintN(64, call("hash", index, BigInt(first), BigInt(count))),
  };
}
