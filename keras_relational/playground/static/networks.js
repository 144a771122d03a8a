// Networks: in the browser by ONNX Runtime Web, or on the local server.
// A tensor is {dtype, shape, data}, and data a typed array.

const ARRAYS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };

export async function fetchJson(url, options) {
  let reply;
  let content;
  try {
    reply = await fetch(url, options);
    content = await reply.json();
  } catch {
    throw new Error(`No answer from ${url}. Is the server still there?`);
  }
  if (!reply.ok) throw new Error(content.error);
  return content;
}

export function tensor(dtype, shape, data) {
  return { dtype, shape, data: ARRAYS[dtype].from(data) };
}

// An array that Python has sent as JSON.
export function decoded({ dtype, shape, bytes }) {
  const { buffer } = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
  return { dtype, shape, data: new ARRAYS[dtype](buffer) };
}

function encoded({ dtype, shape, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { dtype, shape, bytes: btoa(text) };
}

// Exchanges the values of an object's entries.
function mapped(object, change) {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value)]),
  );
}

// The network of a preset on the local server.
async function onServer(name) {
  const url = `presets/${encodeURIComponent(name)}`;
  return async (inputs) => {
    const body = JSON.stringify(mapped(inputs, encoded));
    return mapped(await fetchJson(url, { method: "POST", body }), decoded);
  };
}

let runtime = null;

async function onnxRuntime() {
  runtime ??= import("./onnxruntime/ort.wasm.min.mjs").then((ort) => {
    // One thread needs no special headers from the server of the page.
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = new URL("./onnxruntime/", import.meta.url).href;
    return ort;
  });
  runtime.catch(() => { runtime = null; });
  return runtime;
}

// The network of a preset in this browser.
async function inBrowser(name) {
  const ort = await onnxRuntime();
  const url = `presets/${encodeURIComponent(name)}.onnx`;
  const session = await ort.InferenceSession.create(url);
  return async (inputs) => {
    const outputs = await session.run(mapped(inputs, ({ dtype, shape, data }) =>
      new ort.Tensor(dtype, data, shape)));
    return mapped(outputs, (x) => ({ dtype: x.type, shape: x.dims, data: x.data }));
  };
}

const loaded = new Map();

// A function of named tensors to named tensors, which is loaded once.
export function network(runner, name) {
  if (!loaded.has(name)) {
    const load = runner === "onnx" ? inBrowser : onServer;
    const promise = load(name);
    promise.catch(() => loaded.delete(name));
    loaded.set(name, promise);
  }
  return loaded.get(name);
}

export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (x) => Math.exp(x - most));
  const total = powers.reduce((a, b) => a + b);
  return powers.map((x) => x / total);
}

// The index of the largest number.
export function argmax(numbers) {
  return numbers.indexOf(Math.max(...numbers));
}
