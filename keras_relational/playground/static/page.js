// What the pages share: elements, questions to the server, and pictures.

// An element, with attributes, properties for handlers, and children.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element[name] = value;
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Replaces what is in an element. The focus stays on the control of its id.
export function replace(element, ...children) {
  const { id } = document.activeElement;
  element.replaceChildren(...children);
  if (id && document.activeElement.id !== id) {
    document.getElementById(id)?.focus({ preventScroll: true });
  }
}

// The page of a preset, while it is shown. What it asks, its keys and what it
// repeats end when it is left, so pages use these, and nothing of the browser's.
export class Page {
  #left = new AbortController();
  #asked = new AbortController();
  #url;

  constructor(preset) {
    this.#url = `presets/${encodeURIComponent(preset)}`;
  }

  leave() {
    this.#left.abort();
  }

  describe() {
    return fetchJson(this.#url, { signal: this.#left.signal });
  }

  // Asks the preset. Only the last question is answered.
  ask(request) {
    this.drop();
    return fetchJson(this.#url, {
      method: "POST",
      body: JSON.stringify(request),
      signal: AbortSignal.any([this.#left.signal, this.#asked.signal]),
    });
  }

  // Gives up the last question.
  drop() {
    this.#asked.abort();
    this.#asked = new AbortController();
  }

  // Calls a handler with each key, unless a control or the browser takes it.
  onKey(handler) {
    document.addEventListener("keydown", (event) => {
      const { target, altKey, ctrlKey, metaKey, shiftKey } = event;
      if (altKey || ctrlKey || metaKey || shiftKey) return;
      if (!target.closest?.("a, button, input, select")) handler(event);
    }, { signal: this.#left.signal });
  }

  // Calls a handler after each pause, until the function returned is called.
  repeat(handler, pause) {
    let goesOn = true;
    (async () => {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, pause));
        if (!goesOn || this.#left.signal.aborted) return;
        await handler();
      }
    })();
    return () => { goesOn = false; };
  }
}

export async function fetchJson(url, options) {
  let reply;
  let content;
  try {
    reply = await fetch(url, options);
    content = await reply.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Has it been stopped?");
  }
  if (!reply.ok) throw new Error(content.error);
  return content;
}

// The bytes of images that the server sends, and their shape.
export function decoded({ shape, bytes }) {
  const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
  return { shape, data };
}

// Draws image number `index` on a canvas of as many pixels.
export function paint(canvas, { shape, data }, index = 0) {
  const last = shape.length - 1;
  const colours = shape[last] === 3 ? 3 : 1;
  const [height, width] = shape[last] <= 3
    ? shape.slice(last - 2, last) : shape.slice(last - 1);
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const start = index * width * height * colours;
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = data[start + i * colours + (c % colours)];
    }
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Draws an image, dimmed, under areas whose colours are as strong as weights.
// An area is [x, y, size, weight, colour], in pixels of the image.
export function paintAttention(canvas, image, areas, scale) {
  const small = paint(document.createElement("canvas"), image);
  canvas.width = small.width * scale;
  canvas.height = small.height * scale;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.globalAlpha = 0.5;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  for (const [x, y, size, weight, colour] of areas) {
    context.globalAlpha = 0.75 * weight;
    context.fillStyle = colour;
    context.fillRect(x * scale, y * scale, size * scale, size * scale);
  }
  return canvas;
}

export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

export function say(text) {
  document.getElementById("message").textContent = text;
}

// Runs a handler, and shows its error. A question that is given up is none.
export function reporting(handler) {
  return async (...args) => {
    try {
      say("");
      await handler(...args);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
  };
}
