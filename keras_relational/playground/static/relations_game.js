// Place objects on a board, and ask a PrediNet about them.

import {
  decoded, el, paint, paintAttention, percent, replace, reporting,
} from "./page.js";

const TILE = 12;
const COLOURS = ["#4c8dff", "#ff9a3c"];
const NUM_SHAPES = 14;

export async function show(root, page, { questions, shapes, colours }) {
  let task = 0;
  let board = Array(9).fill(null);
  let chosen = ["pentominoes", 0];
  let colour = 11;

  const canvas = el("canvas", { id: "board", width: 36, height: 36 });
  const tiles = board.map((_, place) => el("button", {
    id: `tile${place}`, onclick: reporting(() => click(place)),
  }));
  const answer = el("div", { id: "answer", class: "answer" });
  const truth = el("p", { id: "truth", class: "quiet" });
  const heads = el("div", { id: "heads", class: "cards" });
  const palettes = el("div");
  const question = questions.length === 1 ? questions[0]
    : el("select", {
      id: "question", "aria-label": "question", onchange: reporting(choose),
    }, ...questions.map((text) => el("option", {}, text)));
  root.append(
    el("h2", {}, question),
    el("p", {}, "Choose a shape and a colour, and click on a tile of the board. "
      + "A click on an object removes it."),
    el("div", { class: "columns" },
      el("div", {}, el("div", { class: "board" }, canvas, ...tiles),
        el("div", { class: "row", style: "margin-top: 0.7rem" },
          el("button", { id: "example", onclick: reporting(example) },
            "An example"),
          el("button", { id: "clear", onclick: clear }, "Clear"))),
      el("div", {}, palettes, answer, truth)),
    el("h3", {}, "The heads that decide"),
    el("p", { class: "quiet" },
      "Each head compares what it sees at two places, the blue and the orange "
      + "one. The effect is how much the answer's logit, beside the mean of "
      + "all answers, would change if the head said what it says on average."),
    heads,
  );

  function drawPalettes() {
    const groups = [["pentominoes", "Shapes of training"],
      ["hexominoes", "Shapes that training never shows"]];
    replace(palettes,
      ...groups.flatMap(([name, title]) => [
        el("h3", {}, title),
        el("div", { class: "palette" },
          ...shapes[name].slice(0, NUM_SHAPES).map((mask, shape) => {
            const picked = chosen[0] === name && chosen[1] === shape;
            return el("button", {
              class: "pick",
              id: `${name}${shape}`,
              title: `${name} ${shape}`,
              "aria-pressed": `${picked}`,
              onclick: () => { chosen = [name, shape]; drawPalettes(); },
            }, drawShape(mask));
          })),
      ]),
      el("h3", {}, "Colours"),
      el("div", { class: "palette" },
        ...colours.map(([r, g, b], number) => el("button", {
          class: "swatch",
          id: `colour${number}`,
          "aria-pressed": `${number === colour}`,
          style: `background: rgb(${r} ${g} ${b})`,
          title: `colour ${number}`,
          onclick: () => { colour = number; drawPalettes(); },
        }))),
    );
  }

  function drawShape(mask) {
    const small = el("canvas", { width: 3, height: 3 });
    drawBlocks(small.getContext("2d"), 0, 0, 1, mask, colours[colour]);
    return small;
  }

  function drawBlocks(context, x, y, size, mask, [r, g, b]) {
    context.fillStyle = `rgb(${r} ${g} ${b})`;
    mask.forEach((row, i) => row.forEach((filled, j) => {
      if (filled) {
        context.fillRect(x + j * size, y + i * size, size, size);
      }
    }));
  }

  function drawBoard() {
    const context = canvas.getContext("2d");
    context.fillStyle = "#000";
    context.fillRect(0, 0, 36, 36);
    board.forEach((tile, place) => {
      const [name, shape, number] = tile ?? [];
      const row = Math.floor(place / 3) + 1;
      tiles[place].ariaLabel = `Row ${row}, column ${place % 3 + 1}: `
        + (tile ? `${name} ${shape}, colour ${number}` : "empty");
      if (!tile) return;
      const x = TILE * (place % 3) + 1;
      const y = TILE * (row - 1) + 1;
      drawBlocks(context, x, y, 3, shapes[name][shape], colours[number]);
    });
  }

  function clear() {
    board = Array(9).fill(null);
    clearAnswer();
    drawBoard();
  }

  function clearAnswer() {
    page.drop();
    for (const part of [answer, truth, heads]) part.replaceChildren();
  }

  async function example() {
    const number = Math.floor(Math.random() * 2 ** 31);
    showAnswer(await page.ask({ task, example: number }));
  }

  async function click(place) {
    board[place] = board[place] ? null : [...chosen, colour];
    await askBoard();
  }

  async function choose(event) {
    task = event.target.selectedIndex;
    await askBoard();
  }

  async function askBoard() {
    drawBoard();
    if (board.filter(Boolean).length < 2) return clearAnswer();
    showAnswer(await page.ask({ task, board }));
  }

  function showAnswer(reply) {
    board = reply.board;
    drawBoard();
    answer.textContent = `${reply.answer}, ${percent(reply.probability)}`;
    truth.textContent = reply.right
      ? `The right answer is: ${reply.right.toLowerCase()}. These shapes are `
        + "not in training."
      : "";
    const image = decoded(reply.image);
    heads.replaceChildren(...reply.heads.map(({ head, effect, maps, text }) => {
      // The encoder sees 12 × 12 pixels at each of 5 × 5 places, 6 apart.
      const areas = maps.flatMap((weights, entity) => weights.map((w, i) =>
        [6 * (i % 5), 6 * Math.floor(i / 5), TILE, w, COLOURS[entity]]));
      const picture = paintAttention(el("canvas"), image, areas, 6);
      const sign = effect > 0 ? "+" : "−";
      const size = Math.abs(effect).toFixed(2);
      return el("figure", {}, picture, el("figcaption", {},
        el("b", {}, `Head ${head}, effect ${sign}${size}`), el("br"), text));
    }));
  }

  drawPalettes();
  drawBoard();
  await example();
}
