// Draws a board of BoxWorld on a canvas' context: tiles, and signs on them
// that tell keys, locks, player and gem apart without colours.

import { contents, rgb } from "./boxworld_rules.js";
import { HUE_NAMES } from "./boxworld_words.js";

// Between the board and the keys in hand, in tiles.
export const GAP = 0.5;
const DARK = "#15181e";
const QUIET = "#808a99";

const css = (colour) => `rgb(${rgb(colour).join(" ")})`;

// Options: `tile`, the pixels of a tile; `hands`, how many keys one can hold;
// `figure`, the colour of the player; `free`, the colour of free tiles;
// `letters`, whether colours have letters; and `marks`, signs by their cells,
// "ring" or "cross".
export function drawBoard(context, world, state, options) {
  const { tile, hands, figure, letters, marks = {} } = options;
  const { rows, columns, colours } = world;
  const free = options.free ?? css(colours.blank);
  const brush = new Brush(context, tile);
  context.lineJoin = context.lineCap = "round";
  brush.fill(0, 0, columns, rows, free);
  brush.grid(rows, columns);
  for (const { cells, lock, secondLock } of contents(world, state)) {
    const at = (part) => [cells[part] % columns, Math.floor(cells[part] / columns)];
    const parts = lock === null ? [0] : secondLock === null ? [0, 1] : [0, 1, 2, 3];
    for (const part of parts) {
      drawTile(...at(part), state.board[cells[part]], part % 2 === 1);
    }
    if (lock !== null) brush.frame(...at(0), 2, parts.length / 2);
  }
  brush.figure(state.player % columns, Math.floor(state.player / columns), figure);
  for (let place = 0; place < hands; place++) {
    const colour = state.inventory[place];
    const [x, y] = [columns + GAP, place];
    if (colour === colours.empty) brush.fill(x, y, 1, 1, DARK);
    else drawTile(x, y, colour, false);
    brush.frame(x, y, 1, 1, QUIET);
  }
  if (hands) brush.text(columns + GAP + 0.5, hands + 0.36, 0.36, "hand", QUIET);
  for (const [cell, mark] of Object.entries(marks)) {
    brush[mark](cell % columns, Math.floor(cell / columns));
  }

  function drawTile(x, y, colour, isLock) {
    brush.fill(x, y, 1, 1, css(colour));
    if (colour === colours.gem) brush.gem(x, y);
    else sign(x, y, colour, isLock);
  }

  function sign(x, y, colour, isLock) {
    const [red, green, blue] = rgb(colour);
    const ink = red + 2 * green + blue / 2 > 270 ? DARK : "#fff";
    const name = letters && HUE_NAMES[world.hues.indexOf(colour)].slice(0, 2);
    brush.sign(x, y, isLock, ink, name);
  }
}

// Signs in units of a tile.
class Brush {
  constructor(context, tile) {
    this.context = context;
    this.tile = tile;
  }

  fill(x, y, width, height, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(...[x, y, width, height].map((v) => v * this.tile));
  }

  // Faint lines between the tiles.
  grid(rows, columns) {
    for (let row = 1; row < rows; row++) {
      this.fill(0, row - 0.01, columns, 0.02, "#0002");
    }
    for (let column = 1; column < columns; column++) {
      this.fill(column - 0.01, 0, 0.02, rows, "#0002");
    }
  }

  frame(x, y, width, height, colour = DARK) {
    this.line(0.07, colour);
    this.context.strokeRect(...[x + 0.035, y + 0.035, width - 0.07, height - 0.07]
      .map((v) => v * this.tile));
  }

  line(width, colour) {
    this.context.lineWidth = width * this.tile;
    this.context.strokeStyle = colour;
  }

  // Strokes or fills what a function draws, with the tile as the unit.
  path(x, y, draw) {
    const { context, tile } = this;
    context.beginPath();
    draw({
      go: (dx, dy) => context.moveTo((x + dx) * tile, (y + dy) * tile),
      to: (dx, dy) => context.lineTo((x + dx) * tile, (y + dy) * tile),
      arc: (dx, dy, radius, from = 0, end = 2 * Math.PI) => context.arc(
        (x + dx) * tile, (y + dy) * tile, radius * tile, from, end),
    });
  }

  sign(x, y, isLock, ink, letters) {
    const { context } = this;
    const up = letters ? 0.16 : 0;
    this.line(0.07, ink);
    context.fillStyle = ink;
    if (isLock) {
      this.path(x, y - up, ({ arc }) => arc(0.5, 0.45, 0.12, Math.PI));
      context.stroke();
      this.fill(x + 0.33, y + 0.45 - up, 0.34, 0.24, ink);
    } else {
      this.path(x, y - up, ({ arc }) => arc(0.36, 0.5, 0.11));
      context.stroke();
      this.path(x, y - up, ({ go, to }) => {
        go(0.47, 0.5); to(0.73, 0.5); to(0.73, 0.61);
        go(0.61, 0.5); to(0.61, 0.58);
      });
      context.stroke();
    }
    if (letters) this.text(x + 0.5, y + 0.86, 0.36, letters, ink);
  }

  // A text with its middle and its foot at a place.
  text(x, y, size, text, colour) {
    const { context, tile } = this;
    context.font = `bold ${size * tile}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.fillStyle = colour;
    context.fillText(text, x * tile, y * tile);
  }

  gem(x, y) {
    this.line(0.06, DARK);
    this.path(x, y, ({ go, to }) => {
      go(0.5, 0.8); to(0.2, 0.42); to(0.34, 0.22); to(0.66, 0.22);
      to(0.8, 0.42); to(0.5, 0.8);
      go(0.2, 0.42); to(0.8, 0.42);
    });
    this.context.stroke();
  }

  figure(x, y, colour) {
    const { context } = this;
    context.fillStyle = colour;
    this.line(0.06, "#fff");
    this.path(x, y, ({ arc, to }) => {
      arc(0.5, 0.85, 0.32, Math.PI, 2 * Math.PI);
      to(0.18, 0.85);
    });
    context.fill();
    context.stroke();
    this.path(x, y, ({ arc }) => arc(0.5, 0.33, 0.19));
    context.fill();
    context.stroke();
  }

  ring(x, y) {
    for (const [width, colour] of [[0.2, DARK], [0.1, "#fff"]]) {
      this.line(width, colour);
      this.path(x, y, ({ arc }) => arc(0.5, 0.5, 0.55));
      this.context.stroke();
    }
  }

  cross(x, y) {
    for (const [width, colour] of [[0.22, DARK], [0.11, "#fff"]]) {
      this.line(width, colour);
      this.path(x, y, ({ go, to }) => {
        go(0.15, 0.15); to(0.85, 0.85);
        go(0.85, 0.15); to(0.15, 0.85);
      });
      this.context.stroke();
    }
  }
}
