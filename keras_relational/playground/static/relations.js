// Place and drag objects on a board, or draw two, and ask a model about them.

import { argmax, softmax, tensor } from "./networks.js";
import { el, percent, randomInteger, replace, reporting } from "./page.js";
import {
  centre, isSpread, paintBoard, paintHeads, paintLine, paintMaps,
} from "./relations_pictures.js";
import {
  SIZE, TILE, equal, example, forms, images, inColour, isOnTile, onTile, origin, outside,
  render, rightAnswer, tileOf, turned,
} from "./relations_rules.js";

export { thumbnail } from "./relations_pictures.js";
export const first = "predinet_between";
export const title = "Relations";
export const teaser =
  "Drag shapes on a board. Is one between two that are the same?";

const NUM_HEADS = 4;
const LAST = SIZE - 9; // The last pixel at which an object can begin.
const TILES = [
  "top left", "top middle", "top right",
  "middle left", "centre", "middle right",
  "bottom left", "bottom middle", "bottom right",
];
const ARROWS = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
};
const MECHANISMS = {
  CoRelNet: "This model is a CoRelNet. It has no heads that choose two places: "
    + "it compares each tile with every other tile, and decides from the table "
    + "of these similarities alone.",
  DualAttentionBlock: "This model is a Dual Attention Transformer. Its entities "
    + "are the nine tiles, and each one attends to all. Half of its heads take "
    + "along what they see there, the other half only how the two tiles relate.",
};
const OTHERWISE = "This model has no heads that compare two places.";

export async function show(root, page, described) {
  const { tasks, answers, shapes, colours } = described;
  const palettes = [
    ["pentominoes", "Shapes of training"],
    ["hexominoes", "New shapes: training never shows them"],
  ].map(([name, text]) => [text, forms(shapes[name]).map(([mask]) => mask)]);
  let task = 0;
  let objects = [];
  let [, [mask]] = palettes[0];
  let colour = 11;
  const third = inColour(palettes[0][1][5], 3);
  let drawings = null; // The cells of two objects, while these are drawn.
  let carried = null; // What keys move: {object, before}.
  let dragged = null; // What the pointer moves.
  let found = null; // The last answer.
  let deciding = []; // The heads that are shown.

  const view = elements();
  const heads = Array.from({ length: NUM_HEADS }, headCard);
  const ask = newest(reporting(askBoard));
  root.append(view.choice, view.question, view.columns);
  drawQuestions();
  drawTools();
  listen();
  await anExample();
  if (!found) return;
  view.ofHeads.hidden = !found.heads;
  root.append(el("section", { class: "relations-heads" }, ...aboutHeads()));

  // The parts of the page that stay.
  function elements() {
    const canvas = el("canvas", { width: 720, height: 720 });
    const tiles = TILES.map((_, tile) => el("button", { id: `tile${tile}` }));
    const board = el("div", {
      class: "board", id: "board", role: "group", "aria-label": "board",
    }, canvas, ...tiles);
    const [snap, shown] = [["snap", "Snap to tiles"], ["shown", "Show the heads"]]
      .map(([id, text]) => {
        const box = el("input", { type: "checkbox", id, checked: "" });
        return { box, label: el("label", {}, box, ` ${text}`) };
      });
    const answer = el("b", { id: "answer" });
    const bar = el("div");
    const probability = el("span", { id: "probability" });
    const truth = el("p", { id: "truth" });
    const warning = el("p", { id: "outside" });
    const spoken = el("p", { class: "unseen", role: "status" });
    const tools = el("div", { id: "tools" });
    const columns = el("div", { class: "columns relations" },
      board,
      el("div", { class: "side" },
        el("div", { class: "verdict" }, answer,
          el("div", { class: "bar" }, bar), probability),
        truth, warning, spoken,
        el("div", { class: "row" },
          el("button", { id: "example", onclick: anExample }, "Another example"),
          el("button", { id: "clear", onclick: clear }, "Clear"),
          snap.label, shown.label),
        tools));
    return {
      canvas, tiles, board, columns, answer, bar, probability, truth, warning,
      spoken, tools, snap: snap.box, shown: shown.box,
      ofHeads: shown.label,
      question: el("h2", { id: "question" }),
      choice: el("div", { class: "row relations-choice" }, ...choices()),
    };
  }

  // ---- Questions and answers

  // Buttons for the two modes of `between`, or for the questions of a model.
  function choices() {
    if (tasks.length > 1) {
      return tasks.map((name, number) => el("button", {
        class: "pattern",
        id: `task${number}`,
        onclick: () => { task = number; if (found) showAnswer(); },
      }, name.replaceAll("_", " "), el("small", {}, "\u00a0")));
    }
    return tasks[0] !== "between" ? [] : [
      el("button", { id: "place", onclick: () => draw(null) }, "Place shapes"),
      el("button", {
        id: "draw", onclick: () => draw(drawings ?? firstDrawings()),
      }, "Draw two shapes"),
    ];
  }

  function drawQuestions() {
    view.question.textContent = drawings
      ? "Two drawn shapes. Are they the same?" : described.questions[task];
    const pressed = tasks.length > 1 ? task : Number(Boolean(drawings));
    [...view.choice.children].forEach((button, number) => {
      button.ariaPressed = `${number === pressed}`;
      if (tasks.length === 1 || !found) return;
      const [, chance] = softmax(found.logits[number]);
      button.lastChild.textContent = `${answers[1]} ${percent(chance)}`;
    });
  }

  // Asks all questions of the model about the board as it is.
  async function askBoard() {
    const asked = objects.map((object) => ({ ...object }));
    const drawn = drawings?.map((cells) => [...cells]);
    const pixels = render(asked, colours);
    const count = tasks.length;
    const all = new Uint8Array(count * pixels.length);
    tasks.forEach((_, number) => all.set(pixels, number * pixels.length));
    const inputs = { image: tensor("uint8", [count, SIZE, SIZE, 3], all) };
    if (count > 1) inputs.task = tensor("uint8", [count], tasks.keys());
    const { logits, maps, effects, differences } = await page.run(inputs);
    found = {
      objects: asked,
      drawings: drawn,
      logits: tasks.map((_, number) => row(logits, number)),
      heads: maps && tasks.map((_, number) => {
        const first = number * maps.shape[1];
        return Array.from({ length: maps.shape[1] }, (_, head) => ({
          head,
          places: [0, 1].map((i) => placeOf(row(maps, 2 * (first + head) + i, 3))),
          changes: row(effects, first + head, 2),
          difference: differences.data[first + head],
        }));
      }),
    };
    showAnswer();
  }

  function showAnswer() {
    drawQuestions();
    const chances = softmax(found.logits[task]);
    const number = argmax(chances);
    const names = found.drawings ? ["Different", "Same"] : answers;
    const right = found.drawings ? Number(equal(...found.drawings))
      : rightAnswer(tasks[task], found.objects);
    view.answer.textContent = names[number];
    view.answer.style.minWidth = `${Math.max(...names.map((x) => x.length))}ch`;
    view.bar.style.width = `${100 * chances[number]}%`;
    view.probability.textContent = percent(chances[number]);
    const onTiles = found.objects.every(isOnTile) ? "" : ", by the nearest tiles";
    view.truth.textContent = right === null
      ? "The question does not fit this board, so no answer is right."
      : `Right answer${onTiles}: ${names[right]}. `
        + `The model is ${right === number ? "right" : "wrong"}.`;
    const strange = outside(tasks[task], found.objects, shapes);
    const asInTest = `${strange}` === "new shapes" ? ", as in its test" : "";
    view.warning.textContent = strange.length
      ? `Outside what it was trained on: ${strange.join(", ")}${asInTest}.`
      : "Training has boards like this one.";
    view.warning.className = strange.length && !asInTest ? "strange" : "quiet";
    if (!dragged) {
      view.spoken.textContent = `${names[number]}, ${view.probability.textContent}. `
        + `${view.truth.textContent} ${view.warning.textContent}`;
    }
    chooseHeads(number, names);
    drawBoard();
  }

  // ---- Heads

  // Those with the largest effects. While something moves, a head keeps its card.
  function chooseHeads(number, names) {
    if (!found.heads) return;
    const all = found.heads[task].map((head) => ({
      ...head, push: pushOf(head.changes, number),
    }));
    const size = ({ push }) => Math.abs(push);
    const most = [...all].sort((a, b) => size(b) - size(a)).slice(0, NUM_HEADS);
    if (dragged || carried) {
      const rest = most.filter(({ head }) =>
        !deciding.some((old) => old.head === head));
      deciding = deciding.map((old) =>
        most.find(({ head }) => head === old.head) ?? rest.shift());
    } else {
      deciding = most;
    }
    const largest = Math.max(...deciding.map(size));
    for (const head of deciding) head.strength = size(head) / (largest || 1);
    deciding.forEach((head, i) => heads[i].draw(head, number, names));
  }

  function aboutHeads() {
    if (!found.heads) {
      return [el("h3", {}, "What it compares"),
        el("p", {}, MECHANISMS[described.mechanism] ?? OTHERWISE)];
    }
    return [
      el("h3", {}, "The heads that decide"),
      el("p", {}, "Each head looks at two places, a ", el("b", { class: "first" },
        "blue"), " and an ", el("b", { class: "second" }, "orange"), " one, and "
        + "compares what is there. These four push the answer most: without them, "
        + "it would change most. A hollow dot: it looks at several places, mostly "
        + "there."),
      el("div", { class: "cards" }, ...heads.map(({ card }) => card)),
      el("p", { class: "quiet" }, "A push is how much the answer’s logit, less "
        + "the others’, would fall if the head said only what it says on average. "
        + "On the scale, “same” is no difference at all between the two places. "
        + "“Different” is as much as two objects that differ have on median, or "
        + "more, on 500 boards of new shapes. Where the places are does not count."),
    ];
  }

  function headCard() {
    const canvas = el("canvas", { width: 288, height: 288, "aria-hidden": "true" });
    const [name, push] = [el("b"), el("div")];
    const needle = el("i");
    const gauge = el("div", { class: "gauge", role: "img" }, needle);
    const places = [el("div", { class: "first" }), el("div", { class: "second" })];
    return {
      card: el("figure", {}, canvas, el("figcaption", {}, name, push,
        gauge, el("div", { class: "scale" }, el("span", {}, "same"),
          el("span", {}, "different"))), el("div", { class: "places" }, ...places)),
      draw(head, number, names) {
        const context = canvas.getContext("2d");
        const scale = canvas.width / SIZE;
        paintBoard(context, scale, found.objects, colours);
        paintMaps(context, scale, head.places);
        paintLine(context, scale, head.places, 0.4);
        name.textContent = `Head ${head.head}`;
        push.textContent = pushInWords(head.push, names, number);
        const share = Math.min(1, head.difference);
        needle.style.left = `${100 * share}%`;
        gauge.ariaLabel = `difference: ${percent(share)}`;
        head.places.forEach((place, i) => {
          places[i].textContent = placeInWords(place, found.objects);
        });
      },
    };
  }

  // ---- The board

  function drawBoard() {
    const context = view.canvas.getContext("2d");
    const scale = view.canvas.width / SIZE;
    paintBoard(context, scale, objects, colours);
    if (view.shown.checked && found?.heads) {
      paintHeads(context, scale, deciding);
    }
    view.tiles.forEach((button, tile) => {
      const object = objectAt(tile);
      const isCarried = carried && carried.object === object;
      button.ariaLabel = `${TILES[tile]}: ${object ? named(object) : "empty"}`
        + (isCarried ? ", picked up" : "");
      button.disabled = Boolean(drawings);
      button.classList.toggle("carried", Boolean(isCarried));
      button.classList.toggle("full", Boolean(object));
    });
  }

  function named(object) {
    const from = origin(object, shapes);
    if (from === "drawn") return "a drawn shape";
    const [, masks] = palettes[from === "new" ? 1 : 0];
    const filled = `${object.cells.map((c) => Number(c >= 0))}`;
    const number = masks.findIndex((x) => images(x).includes(filled));
    return `${from === "new" ? "new shape" : "shape"} ${number + 1}, `
      + `colour ${Math.max(...object.cells) + 1}`;
  }

  function objectAt(tile) {
    return objects.findLast((object) => tileOf(object) === tile);
  }

  function changed() {
    drawBoard();
    return ask();
  }

  function anExample() {
    if (drawings) return draw(randomDrawings());
    objects = example(tasks[task], shapes.hexominoes, colours.length, randomInteger);
    return changed();
  }

  function clear() {
    if (drawings) return draw([Array(9).fill(-1), Array(9).fill(-1)]);
    objects = [];
    return changed();
  }

  function remove(object) {
    objects = objects.filter((other) => other !== object);
    return changed();
  }

  function placeOn(tile) {
    objects = [...objects, onTile(inColour(mask, colour), tile)];
    return changed();
  }

  // Ends a move: the object takes a tile, and one that is there its old place.
  function settle(object, before) {
    if (view.snap.checked) {
      const tile = tileOf(object);
      const other = objects.find((x) => x !== object && tileOf(x) === tile);
      if (other) Object.assign(other, before);
      Object.assign(object, onTile(object.cells, tile));
    }
    return changed();
  }

  function snapAll() {
    const taken = new Set();
    for (const object of objects) {
      let tile = tileOf(object);
      if (taken.has(tile)) tile = TILES.findIndex((_, other) => !taken.has(other));
      taken.add(tile);
      Object.assign(object, onTile(object.cells, tile));
    }
    return changed();
  }

  function listen() {
    const { board } = view;
    page.on(board, "pointerdown", press);
    page.on(board, "pointermove", drag);
    page.on(board, "pointerup", release);
    page.on(board, "pointercancel", () => {
      if (!dragged) return;
      if (dragged.moves) Object.assign(dragged.object, dragged.before);
      dragged = null;
      changed();
    });
    page.on(board, "keydown", pressKey);
    page.on(board, "focusout", ({ relatedTarget }) => {
      if (!board.contains(relatedTarget)) putDown();
    });
    view.tiles.forEach((button, tile) => page.on(button, "click", ({ detail }) => {
      // Clicks of the pointer, which count themselves, end in `release`.
      if (!detail) clickByKey(tile);
    }));
    page.on(view.snap, "change", () => view.snap.checked && snapAll());
    page.on(view.shown, "change", drawBoard);
  }

  function pointed({ clientX, clientY }) {
    const { left, top, width } = view.board.getBoundingClientRect();
    return [clientX - left, clientY - top].map((p) => (SIZE * p) / width);
  }

  function press(event) {
    if (event.button || drawings || dragged) return;
    putDown();
    const [x, y] = pointed(event);
    const object = objects.findLast((o) =>
      Math.abs(o.x + 4.5 - x) < TILE / 2 && Math.abs(o.y + 4.5 - y) < TILE / 2);
    dragged = { id: event.pointerId, from: [x, y], object, before: { ...object } };
    view.board.setPointerCapture(event.pointerId);
  }

  function drag(event) {
    if (dragged?.id !== event.pointerId) return;
    const { object, before, from } = dragged;
    const [dx, dy] = pointed(event).map((p, i) => p - from[i]);
    if (!dragged.moves) {
      if (Math.hypot(dx, dy) < 1) return;
      if (!object) {
        dragged = null;
        return;
      }
      dragged.moves = true;
      objects = [...objects.filter((other) => other !== object), object];
    }
    object.x = clamped(Math.round(before.x + dx), 0, LAST);
    object.y = clamped(Math.round(before.y + dy), 0, LAST);
    changed();
  }

  function release(event) {
    if (dragged?.id !== event.pointerId) return;
    const { object, before, moves, from } = dragged;
    dragged = null;
    if (moves) settle(object, { x: before.x, y: before.y });
    else if (object) remove(object);
    else {
      const [column, line] = from.map((p) => clamped(Math.floor(p / TILE), 0, 2));
      placeOn(3 * line + column);
    }
  }

  function clickByKey(tile) {
    const object = objectAt(tile);
    if (carried) putDown();
    else if (!object) placeOn(tile);
    else {
      carried = { object, before: { x: object.x, y: object.y } };
      objects = [...objects.filter((other) => other !== object), object];
      view.spoken.textContent =
        "Picked up. The arrow keys move it, and Enter puts it down.";
      drawBoard();
    }
  }

  function putDown() {
    if (!carried) return;
    const { object, before } = carried;
    carried = null;
    settle(object, before);
  }

  function pressKey(event) {
    const tile = view.tiles.indexOf(event.target);
    const arrow = ARROWS[event.key];
    if (arrow) {
      event.preventDefault();
      if (carried) carry(...arrow);
      else stepTo(tile, ...arrow);
    } else if (event.key === "Escape" && carried) {
      Object.assign(carried.object, carried.before);
      carried = null;
      changed();
    } else if (["Delete", "Backspace"].includes(event.key) && objectAt(tile)) {
      carried = null;
      remove(objectAt(tile));
    }
  }

  function carry(dx, dy) {
    const { object } = carried;
    const [step, low, high] = view.snap.checked ? [TILE, 1, LAST - 2] : [1, 0, LAST];
    object.x = clamped(object.x + step * dx, low, high);
    object.y = clamped(object.y + step * dy, low, high);
    view.tiles[tileOf(object)].focus();
    changed();
  }

  function stepTo(tile, dx, dy) {
    view.tiles[neighbour(tile, dx, dy)].focus();
  }

  // ---- Shapes and colours, and drawing

  function drawTools() {
    replace(view.tools, ...(drawings ? drawingTools() : placingTools()),
      el("h3", {}, "Colours"),
      el("div", { class: "palette" }, ...colours.map((rgb, number) => el("button", {
        class: "swatch",
        id: `colour${number}`,
        "aria-pressed": `${number === colour}`,
        style: `background: rgb(${rgb.join(" ")})`,
        title: `colour ${number + 1}`,
        onclick: () => { colour = number; drawTools(); },
      }))));
  }

  function placingTools() {
    return [
      el("p", { class: "quiet" }, "Choose a shape and a colour, and click a tile. "
        + "Drag a shape to move it, click it to remove it. By keyboard, Enter picks "
        + "it up and the arrow keys move it."),
      ...palettes.flatMap(([text, masks], group) => [
        el("h3", {}, text),
        el("div", { class: "palette" }, ...masks.map((shape, number) => el("button", {
          class: "pick",
          id: `shape${group}_${number}`,
          title: `${group ? "new shape" : "shape"} ${number + 1}`,
          "aria-pressed": `${shape === mask}`,
          onclick: () => { mask = shape; drawTools(); },
        }, picture(shape)))),
      ]),
      el("div", { class: "row" },
        el("button", { id: "turn", onclick: turn }, "Turn the shapes")),
    ];
  }

  function picture(shape) {
    const canvas = el("canvas", { width: 9, height: 9 });
    const context = canvas.getContext("2d");
    context.fillStyle = `rgb(${colours[colour].join(" ")})`;
    shape.forEach((filled, cell) => {
      if (filled) context.fillRect(3 * (cell % 3), 3 * Math.floor(cell / 3), 3, 3);
    });
    return canvas;
  }

  function turn() {
    for (const palette of palettes) {
      const [, masks] = palette;
      const chosen = masks.indexOf(mask);
      palette[1] = masks.map(turned);
      if (chosen >= 0) mask = palette[1][chosen];
    }
    drawTools();
  }

  function firstDrawings() {
    const cells = [0, -1, 0, 0, 0, 0, 0, -1, 0].map((c) => (c < 0 ? c : colour));
    return [cells, [...cells]];
  }

  // Two that are equal, or that differ in one block.
  function randomDrawings() {
    const one = Array.from({ length: 9 }, () => (randomInteger(2) ? colour : -1));
    const other = [...one];
    return [one, randomInteger(2) ? other : withChange(other)];
  }

  // Shows these drawings, left and right of a third shape, or places shapes.
  function draw(cells) {
    drawings = cells;
    view.snap.disabled = Boolean(drawings);
    drawTools();
    drawQuestions();
    return drawings ? placeDrawings() : changed();
  }

  function placeDrawings() {
    objects = [[drawings[0], 3], [third, 4], [drawings[1], 5]]
      .filter(([cells]) => Math.max(...cells) >= 0)
      .map(([cells, tile]) => onTile([...cells], tile));
    return changed();
  }

  function drawingTools() {
    const grids = ["left", "right"].map((name, side) => {
      const buttons = TILES.map((place, cell) => el("button", {
        id: `${name}${cell}`, "aria-label": `${name} shape, ${place}`,
      }));
      const grid = el("div", {
        class: "drawing", role: "group", "aria-label": `${name} shape`,
      }, ...buttons);
      const fill = () => buttons.forEach((button, cell) => {
        const number = drawings[side][cell];
        button.ariaPressed = `${number >= 0}`;
        button.style.background = number < 0 ? "" : `rgb(${colours[number].join(" ")})`;
      });
      const paint = (cell, value) => {
        if (drawings[side][cell] === value) return;
        drawings[side][cell] = value;
        fill();
        placeDrawings();
      };
      fill();
      paintByPointer(grid, (cell) => (drawings[side][cell] === colour ? -1 : colour),
        paint);
      buttons.forEach((button, cell) => page.on(button, "click", ({ detail }) => {
        if (!detail) paint(cell, drawings[side][cell] === colour ? -1 : colour);
      }));
      page.on(grid, "keydown", (event) => {
        const arrow = ARROWS[event.key];
        if (!arrow) return;
        event.preventDefault();
        buttons[neighbour(buttons.indexOf(event.target), ...arrow)].focus();
      });
      return el("figure", {}, grid, el("figcaption", {}, name));
    });
    return [
      el("p", { class: "quiet" }, "Draw with the pointer, or by the arrow keys and "
        + "Enter. Each block can have a colour of its own. The model sees the two "
        + "drawings left and right of a third shape."),
      el("div", { class: "row drawings" }, ...grids),
      el("div", { class: "row" },
        el("button", {
          id: "copy", onclick: () => draw([drawings[0], [...drawings[0]]]),
        }, "Make them equal"),
        el("button", {
          id: "change", onclick: () => draw([drawings[0], withChange(drawings[1])]),
        }, "Change one block")),
    ];
  }

  function withChange(cells) {
    const changed = randomInteger(9);
    return cells.map((c, cell) => (cell !== changed ? c : c < 0 ? colour : -1));
  }

  // Paints the cells of a grid that the pointer goes over.
  function paintByPointer(grid, valueOf, paint) {
    let value = null;
    const cellAt = ({ clientX, clientY }) => {
      const { left, top, width } = grid.getBoundingClientRect();
      const [column, line] = [clientX - left, clientY - top]
        .map((p) => Math.floor((3 * p) / width));
      return [column, line].every((p) => p >= 0 && p < 3) ? 3 * line + column : -1;
    };
    page.on(grid, "pointerdown", (event) => {
      const cell = cellAt(event);
      if (event.button || cell < 0) return;
      grid.setPointerCapture(event.pointerId);
      value = valueOf(cell);
      paint(cell, value);
    });
    page.on(grid, "pointermove", (event) => {
      const cell = cellAt(event);
      if (value !== null && cell >= 0) paint(cell, value);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      page.on(grid, end, () => { value = null; });
    }
  }
}

// Runs a handler, and once more after it if it was called meanwhile.
function newest(handler) {
  let isWanted = false;
  let running = null;
  async function run() {
    while (isWanted) {
      isWanted = false;
      await handler();
    }
    running = null;
  }
  return () => {
    isWanted = true;
    running ??= run();
    return running;
  };
}

// Part number `index` of a tensor, along its first axes.
function row({ shape, data }, index, axes = 1) {
  const size = shape.slice(axes).reduce((a, b) => a * b, 1);
  return Array.from(data.slice(index * size, (index + 1) * size));
}

function placeOf(weights) {
  return { weights, most: argmax(weights) };
}

function clamped(x, low, high) {
  return Math.min(high, Math.max(low, x));
}

function neighbour(cell, dx, dy) {
  const column = clamped((cell % 3) + dx, 0, 2);
  return 3 * clamped(Math.floor(cell / 3) + dy, 0, 2) + column;
}

// The effect on an answer's logit, less the mean of those on the others.
function pushOf(changes, number) {
  const others = changes.filter((_, other) => other !== number);
  return changes[number] - others.reduce((a, b) => a + b) / others.length;
}

function pushInWords(push, answers, number) {
  const size = Math.abs(push).toFixed(1);
  if (push >= 0) return `pushes towards ${answers[number]} by ${size}`;
  if (answers.length > 2) return `pushes away from ${answers[number]} by ${size}`;
  return `pushes towards ${answers[1 - number]} by ${size}`;
}

function placeInWords(place, objects) {
  const { most } = place;
  const [column, line] = [most % 5, Math.floor(most / 5)];
  const isTile = column % 2 === 0 && line % 2 === 0;
  const where = isTile ? TILES[3 * (line / 2) + column / 2] : "between tiles";
  if (isSpread(place)) return `several places, mostly ${where}`;
  const [x, y] = centre(most);
  const far = (object) => Math.max(
    Math.abs(object.x + 4.5 - x), Math.abs(object.y + 4.5 - y),
  );
  const near = Math.min(...objects.map(far));
  const what = near < 3 ? "object" : near < 9 ? "part of an object" : "nothing";
  return `${what}, ${where}`;
}
