// Choose or draw the symbols of a rule, and see which memories an ESBN reads.

import { el, paint, percent, randomInteger, replace, reporting } from "./page.js";
import { argmax, decoded, softmax, tensor } from "./networks.js";
import { LENGTH, NUM_SHOWN, rightOption, seenBefore } from "./rules_rules.js";

export const title = "Rules";
export const teaser = "A rule with symbols the network has never seen, or that you draw.";

const COLOURS = ["#4c8dff", "#ff9a3c", "#5cc98a"];
const BRUSH = 1.6; // Pixels of a symbol.
const EMPTY_IMAGE = 0.02; // The share of white below which nothing is drawn.

// Simple symbols for the start page.
const SIGNS = [
  (context) => { context.moveTo(-9, 9); context.lineTo(0, -10); context.lineTo(9, 9); context.closePath(); },
  (context) => { context.arc(0, 0, 9, 0, 2 * Math.PI); },
  (context) => { context.moveTo(-9, -9); context.lineTo(9, 9); context.moveTo(9, -9); context.lineTo(-9, 9); },
];

export function thumbnail(context, seconds) {
  const rows = [[0, 1, 2], [2, 0, 1]];
  const shown = Math.floor((seconds % 6) * 1.2);
  context.lineWidth = 3;
  rows.flat().forEach((sign, i) => {
    const [x, y] = [60 + 60 * (i % 3), 45 + 60 * Math.floor(i / 3)];
    context.save();
    context.translate(x, y);
    context.strokeStyle = "#3a404a";
    context.strokeRect(-19, -19, 38, 38);
    if (i < shown && i < 5) {
      context.strokeStyle = COLOURS[sign];
      context.beginPath();
      SIGNS[sign](context);
      context.stroke();
    } else if (i === 5 && shown >= 5) {
      context.fillStyle = COLOURS[sign];
      context.font = "24px sans-serif";
      context.textAlign = "center";
      context.fillText("?", 0, 9);
      if (shown >= 6) {
        context.clearRect(-17, -17, 34, 34);
        context.strokeStyle = COLOURS[sign];
        context.beginPath();
        SIGNS[sign](context);
        context.stroke();
      }
    }
    context.restore();
  });
}

export async function show(root, page, described) {
  const { question, task, num_trained: numTrained } = described;
  const fillers = decoded(described.fillers);
  const problems = decoded(described.problems);
  const [numSymbols, height, width] = fillers.shape;
  const size = height * width;
  const ownSymbol = numSymbols; // The number of the symbol that is drawn.
  const own = new Uint8Array(size);
  let numbers = Array(LENGTH).fill(0);
  let slot = 0;
  let found = null;

  const rows = el("div");
  const answer = el("p", { id: "answer", class: "answer rules-answer", role: "status" });
  const outside = el("p", { id: "outside", class: "quiet rules-outside" });
  const read = el("div", { id: "read" });
  const words = el("p", { id: "words", class: "rules-words" });
  const palette = el("div", { class: "palette", style: "max-width: 40rem" });
  const drawing = el("canvas", {
    id: "drawing", width, height, tabindex: 0, role: "application",
    "aria-label": "Drawing of a symbol. The arrow keys move, the space bar draws.",
  });
  root.append(
    el("h2", {}, question),
    el("p", {}, "Choose a place of the problem, then the symbol that shall take "
      + `it. The network was trained on the ${numTrained} symbols with orange frames. `
      + "All others are new to it."),
    el("div", { class: "columns" },
      el("div", {}, rows, answer, outside,
        el("button", { id: "next", onclick: reporting(next) }, "Another problem")),
      el("div", {}, el("h3", {}, "All symbols"), palette,
        el("h3", {}, "A symbol of your own"),
        el("div", { class: "row" }, drawing,
          el("div", { class: "rules-tools" },
            el("button", { id: "use", onclick: reporting(useOwn) }, "Use it"),
            el("button", { id: "wipe", onclick: reporting(wipe) }, "Wipe")),
          el("span", { class: "quiet" }, "Draw with the mouse or a finger; or "
            + "with arrow keys and the space bar.")))),
    el("h3", {}, "Which memory each step reads"),
    el("p", { class: "quiet" }, "A row is a step, and a column a memory: darker is "
      + "stronger. The network writes a key of its own for all that it sees. When it "
      + "sees something again, it reads the key that is bound to it, and so it never "
      + "needs to know what the symbol looks like."),
    words, read,
  );

  function pixelsOf(number) {
    return number === ownSymbol ? own : fillers.data.subarray(size * number, size * (number + 1));
  }

  function picture(number) {
    const image = { shape: [1, height, width], data: pixelsOf(number) };
    return paint(el("canvas"), image);
  }

  function nameOf(number) {
    return number === ownSymbol ? "your symbol" : `symbol ${number}`;
  }

  function glyph(number, attributes = {}) {
    const trained = number < numTrained ? " trained" : "";
    return el("button", {
      class: `glyph${trained}`, title: nameOf(number), ...attributes,
    }, picture(number));
  }

  function slotGlyph(place) {
    return glyph(numbers[place], {
      id: `slot${place}`,
      "aria-label": place < NUM_SHOWN
        ? `Place ${place + 1} of the problem: ${nameOf(numbers[place])}`
        : `Option ${place - NUM_SHOWN + 1}: ${nameOf(numbers[place])}`,
      "aria-pressed": `${place === slot}`,
      onclick: () => { slot = place; draw(); },
    });
  }

  function draw() {
    const places = [...Array(LENGTH).keys()];
    replace(rows,
      el("h3", {}, "The problem"),
      el("div", { class: "row" }, ...places.slice(0, 3).map(slotGlyph)),
      el("div", { class: "row", style: "margin-top: 0.5rem" },
        ...places.slice(3, NUM_SHOWN).map(slotGlyph),
        el("div", { class: "question" }, "?")),
      el("h3", {}, "The options"),
      el("div", { class: "row" }, ...places.slice(NUM_SHOWN).map((place) => {
        const share = found?.chances[place - NUM_SHOWN];
        return el("div", { class: "option" }, slotGlyph(place),
          el("div", { class: "quiet" }, share === undefined ? " " : percent(share)));
      })),
    );
    replace(palette,
      ...[...Array(numSymbols).keys()].map((number) => glyph(number, {
        id: `symbol${number}`,
        "aria-pressed": `${number === numbers[slot]}`,
        onclick: reporting(() => choose(number)),
      })),
    );
  }

  async function choose(number) {
    numbers[slot] = number;
    slot = (slot + 1) % LENGTH;
    draw();
    await ask();
  }

  async function next() {
    const problem = randomInteger(problems.shape[0]);
    numbers = Array.from(problems.data.slice(LENGTH * problem, LENGTH * (problem + 1)));
    slot = 0;
    found = null;
    draw();
    await ask();
  }

  async function ask() {
    const pixels = numbers.flatMap((number) => Array.from(pixelsOf(number)));
    const outputs = await page.run({
      fillers: tensor("uint8", [1, LENGTH, height, width], pixels),
    });
    const [, numSteps, numMemories] = outputs.read.shape;
    const weights = [...Array(numSteps).keys()].slice(0, LENGTH).map((step) =>
      Array.from(outputs.read.data.slice(numMemories * step, numMemories * (step + 1))));
    found = { chances: softmax(outputs.logits.data), weights };
    showAnswer();
  }

  function showAnswer() {
    draw();
    const place = argmax(found.chances);
    const right = rightOption(task, numbers);
    const judged = right === null
      ? "By the rule, none of the options is right, or several are."
      : right === place ? "This is right." : `Right would be option ${right + 1}.`;
    answer.textContent = `Option ${place + 1}, ${percent(found.chances[place])}. ${judged}`;
    const isNew = numbers.filter((number) => number >= numTrained).length;
    outside.textContent = (numbers.includes(ownSymbol)
      ? "Outside what it was trained on: a symbol that you drew. " : "")
      + `${isNew} of the nine places have a symbol that is new to the network.`
      + (right === null ? " Problems without one right option are never in training." : "");
    const again = seenBefore(numbers).map((first, step) => [step, first])
      .filter(([step, first]) => first !== null && step < LENGTH);
    words.textContent = again.map(([step, first]) => {
      // An earlier step may have seen it again, and bound another key to it.
      const weight = found.weights[step].slice(0, step).reduce((sum, x, memory) =>
        sum + (numbers[memory] === numbers[step] ? x : 0), 0);
      return `Step ${step + 1} sees the symbol of step ${first + 1} again, and `
        + `${percent(weight)} of what it reads is bound to that symbol.`;
    }).join(" ");
    const header = numbers.map((number) => el("th", { scope: "col", title: nameOf(number) },
      picture(number)));
    read.replaceChildren(el("table", { class: "heat" },
      el("tr", {}, el("th", {}, "read at step"), ...header),
      ...found.weights.map((weights, step) => el("tr", {},
        el("th", { scope: "row" }, `${step + 1}`),
        ...numbers.map((_, memory) => el("td", {
          title: percent(weights[memory] ?? 0),
          style: `background: rgb(47 111 222 / ${weights[memory] ?? 0})`,
        })))),
    ));
  }

  // The drawing: a symbol's pixels, under a brush, and a cursor for the keys.
  let cursor = null;

  function paintDrawing() {
    paint(drawing, { shape: [1, height, width], data: own });
    if (!cursor) return;
    const context = drawing.getContext("2d");
    context.fillStyle = "#e07b1a";
    context.fillRect(cursor.x, cursor.y, 1, 1);
  }

  function dab(x, y) {
    for (let i = 0; i < size; i++) {
      const distance = Math.hypot((i % width) + 0.5 - x, Math.floor(i / width) + 0.5 - y);
      const light = 255 * Math.min(1, Math.max(0, BRUSH + 0.5 - distance));
      own[i] = Math.max(own[i], light);
    }
  }

  function stroke(event) {
    const box = drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    const y = ((event.clientY - box.top) / box.height) * height;
    const steps = last ? Math.ceil(Math.hypot(x - last.x, y - last.y)) : 1;
    for (let i = 1; i <= steps; i++) {
      const share = i / steps;
      dab(last ? last.x + share * (x - last.x) : x, last ? last.y + share * (y - last.y) : y);
    }
    last = { x, y };
    paintDrawing();
  }

  let last = null;
  drawing.onpointerdown = (event) => {
    drawing.setPointerCapture(event.pointerId);
    last = cursor = null;
    stroke(event);
  };
  drawing.onpointermove = (event) => { if (last) stroke(event); };
  drawing.onpointerup = reporting(async () => {
    last = null;
    if (numbers.includes(ownSymbol)) await ask();
  });
  drawing.onpointercancel = () => { last = null; };
  drawing.onkeydown = reporting(async (event) => {
    const moves = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (!(event.key in moves) && event.key !== " ") return;
    event.preventDefault();
    cursor ??= { x: width / 2, y: height / 2 };
    if (event.key === " ") {
      dab(cursor.x + 0.5, cursor.y + 0.5);
    } else {
      const [x, y] = moves[event.key];
      cursor = {
        x: Math.min(width - 1, Math.max(0, cursor.x + x)),
        y: Math.min(height - 1, Math.max(0, cursor.y + y)),
      };
    }
    paintDrawing();
    if (event.key === " " && numbers.includes(ownSymbol)) await ask();
  });

  async function wipe() {
    own.fill(0);
    cursor = null;
    paintDrawing();
    if (numbers.includes(ownSymbol)) await ask();
  }

  // Puts the drawn symbol where the symbol of the chosen place stands.
  async function useOwn() {
    const white = own.reduce((sum, x) => sum + x, 0) / (255 * size);
    if (white < EMPTY_IMAGE) throw new Error("Draw a symbol first, in the black square.");
    const replaced = numbers[slot];
    numbers = numbers.map((number) => (number === replaced ? ownSymbol : number));
    await ask();
  }

  paintDrawing();
  await next();
}
