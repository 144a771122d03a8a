// What the pages share: elements, the network of a page, and pictures.

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

// The page of a preset, while it is shown. What it runs, its keys and what it
// repeats end when it is left, so pages use these, and nothing of the browser's.
export class Page {
  #left = new AbortController();
  #asked = 0;
  #last = Promise.resolve();
  #network;

  constructor(network) {
    this.#network = network;
  }

  leave() {
    this.#left.abort();
  }

  // Runs the network. Of the questions that wait, only the last is answered;
  // an AbortError ends the others, and all when the page is left: what fails
  // then is no matter of the page that is shown.
  async run(inputs) {
    this.#asked += 1;
    const number = this.#asked;
    const check = () => {
      if (this.#left.signal.aborted || number !== this.#asked) {
        throw new DOMException("Another question came.", "AbortError");
      }
    };
    const before = this.#last;
    let done;
    this.#last = new Promise((resolve) => { done = resolve; });
    try {
      await before;
      check();
      return await this.#network(inputs);
    } finally {
      done();
      check(); // Before an answer is returned, or an error is thrown.
    }
  }

  // Gives up the last question.
  drop() {
    this.#asked += 1;
  }

  // Calls a handler with each key, unless a control or the browser takes it.
  onKey(handler) {
    this.on(document, "keydown", (event) => {
      const { target, altKey, ctrlKey, metaKey, shiftKey } = event;
      if (altKey || ctrlKey || metaKey || shiftKey) return;
      const isLetter = event.key.length === 1 && event.key !== " ";
      const takers = isLetter ? "input, select" : "a, button, input, select";
      if (!target.closest?.(takers)) handler(event);
    });
  }

  // Calls a handler with each event of an element until the page is left.
  on(element, name, handler) {
    element.addEventListener(name, handler, { signal: this.#left.signal });
  }

  // Waits for some milliseconds. An AbortError ends it when the page is left.
  async pause(milliseconds) {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    this.#left.signal.throwIfAborted();
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

// Draws image number `index` of a tensor on a canvas of as many pixels.
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

// Whether the reader wants nothing to move.
export const isStill = matchMedia("(prefers-reduced-motion: reduce)");

// For the clicks on controls after which keys shall go to the page. A click by a
// key has no detail, and keeps the focus.
export function letGo({ detail, target }) {
  if (detail) target.closest("a, button")?.blur();
}

export function percent(share) {
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

// A random integer from 0 to below a number.
export function randomInteger(below) {
  return Math.floor(Math.random() * below);
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
