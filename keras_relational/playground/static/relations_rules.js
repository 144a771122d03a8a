// Boards of the Relations Game: pixels, right answers, examples.
//
// An object is {cells, x, y}: the colours' numbers of its nine blocks, row by
// row, -1 where there is none; and the pixel of its upper left corner.

export const SIZE = 36;
export const TILE = 12;
const BLOCK = 3;
const EDGE = 1; // Pixels between a tile and its object.
const ROWS = [[0, 1, 2], [3, 4, 5], [6, 7, 8]];
const COLUMNS = [[0, 3, 6], [1, 4, 7], [2, 5, 8]];
const LINES = [...ROWS, ...COLUMNS, [0, 4, 8], [2, 4, 6]];
const PATTERNS = ["AAA", "AAB", "ABA", "ABB", "ABC"];

// An object on a tile, by the number of the tile.
export function onTile(cells, tile) {
  const x = TILE * (tile % 3) + EDGE;
  return { cells, x, y: TILE * Math.floor(tile / 3) + EDGE };
}

// Cells of a shape, nine blocks that are filled or not, in one colour.
export function inColour(mask, colour) {
  return mask.map((filled) => (filled ? colour : -1));
}

// The number of the tile that is nearest to an object.
export function tileOf({ x, y }) {
  const [column, row] = [x, y].map((p) => Math.round((p - EDGE) / TILE));
  return 3 * Math.min(2, row) + Math.min(2, column);
}

export function isOnTile(object) {
  const { x, y } = onTile(object.cells, tileOf(object));
  return x === object.x && y === object.y;
}

// The pixels of a board, of which later objects hide earlier ones.
export function render(objects, colours) {
  const pixels = new Uint8Array(SIZE * SIZE * 3);
  for (const { cells, x, y } of objects) {
    cells.forEach((colour, cell) => {
      if (colour < 0) return;
      const left = x + BLOCK * (cell % 3);
      const top = y + BLOCK * Math.floor(cell / 3);
      for (let i = 0; i < BLOCK * BLOCK; i++) {
        const row = top + Math.floor(i / BLOCK);
        pixels.set(colours[colour], 3 * (SIZE * row + left + (i % BLOCK)));
      }
    });
  }
  return pixels;
}

// The right answer by the task's rule, with each object on its nearest tile, or
// null if the rule says nothing about the board.
export function rightAnswer(task, objects) {
  const tiles = Array(9).fill(null);
  for (const object of objects) {
    const tile = tileOf(object);
    if (tiles[tile]) return null;
    tiles[tile] = object.cells;
  }
  const at = (line) => line.map((tile) => tiles[tile]).filter(Boolean);
  const [top, , bottom] = ROWS.map(at);
  const found = tiles.filter(Boolean);
  const [, line, pattern] = /^(row|column)_(\w+)$/.exec(task) ?? [];
  if (line) return linePattern(at, line, pattern);
  switch (task) {
    case "same":
      return found.length === 2 ? Number(equal(...found)) : null;
    case "colour_and_shape":
      return found.length === 2 ? shared(...found) : null;
    case "between":
      return Number(LINES.some((places) => isBetween(at(places))));
    case "occurs":
      return top.length === 1 && bottom.length
        ? Number(bottom.some((x) => equal(x, top[0]))) : null;
    case "xoccurs":
      return top.length === 1 && bottom.length === 3
        ? Number(occursBesideTwo(top[0], bottom)) : null;
    case "match_rows":
      return top.length === 3 && bottom.length === 3
        ? Number(patternOf(top) === patternOf(bottom)) : null;
    default:
      return null;
  }
}

export function equal(one, other) {
  return one.every((colour, cell) => colour === other[cell]);
}

function isBetween(line) {
  return line.length === 3 && equal(line[0], line[2]);
}

function occursBesideTwo(top, bottom) {
  const match = bottom.findIndex((x) => equal(x, top));
  const others = bottom.filter((_, place) => place !== match);
  return match >= 0 && !equal(...others);
}

function linePattern(at, line, pattern) {
  const full = (line === "row" ? ROWS : COLUMNS)
    .map(at).filter((found) => found.length === 3);
  return full.length === 1 ? Number(patternOf(full[0]) === pattern) : null;
}

function patternOf(objects) {
  const seen = [];
  return objects.map((x) => {
    if (!seen.some((other) => equal(x, other))) seen.push(x);
    return "ABC"[seen.findIndex((other) => equal(x, other))];
  }).join("");
}

// 0: both, 1: the shape, 2: the colour, 3: nothing.
function shared(one, other) {
  const colours = [one, other].map((x) => [...new Set(x.filter((c) => c >= 0))]);
  if (colours.some((found) => found.length > 1)) return null;
  const differs = one.some((c, cell) => (c < 0) !== (other[cell] < 0));
  return 2 * differs + (colours[0][0] !== colours[1][0]);
}

// How many objects a task's boards have, and where they are if not anywhere.
const OF_ROWS = "the objects do not fill the top and the bottom row";
const TOP_AND_BOTTOM =
  "not one object in the top row and three in the bottom row";
const BOARDS = {
  same: [2],
  colour_and_shape: [2],
  between: [3],
  occurs: [4, TOP_AND_BOTTOM, [1, 0, 3]],
  xoccurs: [4, TOP_AND_BOTTOM, [1, 0, 3]],
  match_rows: [6, OF_ROWS, [3, 0, 3]],
};

// "training", "new" or "drawn": where an object's shape comes from.
export function origin({ cells }, shapes) {
  const mask = cells.map((colour) => Number(colour >= 0));
  const isOne = new Set(cells.filter((colour) => colour >= 0)).size === 1;
  const has = (name) => shapes[name].some((x) => equal(x.flat(), mask));
  if (isOne && has("pentominoes")) return "training";
  return isOne && has("hexominoes") ? "new" : "drawn";
}

// What of a board training never shows, in words.
export function outside(task, objects, shapes) {
  const found = [];
  const [line] = task.split("_");
  const [count, placed, rows] = BOARDS[task]
    ?? [3, `the objects do not fill one ${line}`];
  const tiles = objects.map(tileOf);
  if (!objects.every(isOnTile)) found.push("objects stand between tiles");
  if (new Set(tiles).size < tiles.length) {
    found.push("two objects are on one tile");
  } else if (objects.length !== count) {
    const s = objects.length === 1 ? "" : "s";
    found.push(`${objects.length || "no"} object${s} instead of ${count}`);
  } else if (placed && !isPlaced(tiles, line, rows)) {
    found.push(placed);
  } else if (task === "between" && areEqualOutOfLine(tiles, objects)) {
    found.push("equal objects out of line");
  }
  const origins = objects.map((object) => origin(object, shapes));
  if (origins.includes("drawn")) found.push("drawn shapes");
  if (origins.includes("new")) found.push("new shapes");
  return found;
}

function isPlaced(tiles, line, rows) {
  const all = line === "column" ? COLUMNS : ROWS;
  const counts = all.map((x) => x.filter((tile) => tiles.includes(tile)).length);
  return rows ? equal(rows, counts) : counts.includes(3);
}

// In training, three objects that are not in a line are unrelated.
function areEqualOutOfLine(tiles, objects) {
  return !LINES.some((line) => line.every((tile) => tiles.includes(tile)))
    && new Set(objects.map(({ cells }) => `${cells}`)).size < objects.length;
}

// A quarter turn of nine values to the right.
export function turned(cells) {
  return cells.map((_, cell) => cells[3 * (2 - (cell % 3)) + Math.floor(cell / 3)]);
}

// A mask turned and reflected in all eight ways, as texts.
export function images(mask) {
  const found = [];
  let image = mask;
  for (let i = 0; i < 4; i++) {
    const mirrored = image.map((_, cell, all) => all[cell + 2 - 2 * (cell % 3)]);
    found.push(`${image}`, `${mirrored}`);
    image = turned(image);
  }
  return found;
}

// Shapes in groups of those that turning and reflecting makes equal.
export function forms(masks) {
  const groups = new Map();
  for (const mask of masks.map((x) => x.flat())) {
    const [name] = images(mask).sort();
    groups.set(name, [...(groups.get(name) ?? []), mask]);
  }
  return [...groups.values()];
}

// Objects of an example of a task: all answers are equally likely, and wrong
// ones are near misses as in the library's `datasets.relations_game`.
// `random(below)` draws an integer.
export function example(task, masks, numColours, random) {
  const draw = new Draw(masks, numColours, random);
  const yes = random(2) === 1;
  const [, line, pattern] = /^(row|column)_(\w+)$/.exec(task) ?? [];
  if (line) {
    const lines = line === "row" ? ROWS : COLUMNS;
    const number = PATTERNS.indexOf(pattern);
    return put(draw.pattern(yes ? number : draw.otherPattern(number)),
      draw.one(lines));
  }
  switch (task) {
    case "same":
      return put(draw.pair(yes), draw.shuffled(9));
    case "colour_and_shape": {
      const kind = random(4);
      return put(draw.pair(kind === 0, kind - 1), draw.shuffled(9));
    }
    case "between":
      return draw.between(yes);
    case "occurs":
    case "xoccurs":
      return draw.topAndBottom(task, yes);
    case "match_rows": {
      const top = random(PATTERNS.length);
      const bottom = yes ? top : draw.otherPattern(top);
      return [...put(draw.pattern(top), ROWS[0]),
        ...put(draw.pattern(bottom), ROWS[2])];
    }
    default:
      return [];
  }
}

function put(objects, tiles) {
  return objects.map((cells, number) => onTile(cells, tiles[number]));
}

class Draw {
  constructor(masks, numColours, random) {
    this.forms = forms(masks);
    this.numColours = numColours;
    this.random = random;
  }

  one(list) {
    return list[this.random(list.length)];
  }

  shuffled(count) {
    const rest = [...Array(count).keys()];
    return Array.from({ length: count }, () =>
      rest.splice(this.random(rest.length), 1)[0]);
  }

  // The shape and the colour of an object.
  parts() {
    return [this.one(this.one(this.forms)), this.random(this.numColours)];
  }

  thing() {
    return inColour(...this.parts());
  }

  // An object that shares its shape (kind 0), its colour (1) or neither (2).
  unlike(cells, kind = this.random(3)) {
    const mask = cells.map((colour) => Number(colour >= 0));
    const colour = Math.max(...cells);
    for (;;) {
      const [shape, other] = this.parts();
      if (other !== colour && !equal(shape, mask)) {
        return inColour(kind === 0 ? mask : shape, kind === 1 ? colour : other);
      }
    }
  }

  // Draws again until an object equals none of some others.
  until(make, ...others) {
    for (;;) {
      const made = make();
      if (!others.some((other) => equal(made, other))) return made;
    }
  }

  pair(areEqual, kind) {
    const first = this.thing();
    return [first, areEqual ? first : this.unlike(first, kind)];
  }

  between(yes) {
    const objects = [this.thing(), this.thing(), this.thing()];
    if (!yes && this.random(100) < 22) {
      let tiles;
      do {
        tiles = this.shuffled(9).slice(0, 3).sort();
      } while (LINES.some((line) => equal(line, tiles)));
      return put(objects, tiles);
    }
    objects[2] = yes ? objects[0] : this.unlike(objects[0]);
    return put(objects, this.one([...LINES, ROWS[1]]));
  }

  pattern(number) {
    const a = this.thing();
    const b = this.unlike(a);
    const c = this.until(() => this.unlike(a), a, b);
    return [...PATTERNS[number]].map((letter) => ({ A: a, B: b, C: c })[letter]);
  }

  otherPattern(number) {
    return (number + 1 + this.random(4)) % PATTERNS.length;
  }

  topAndBottom(task, yes) {
    const top = this.thing();
    const fails = task === "occurs" || this.random(2) === 1;
    const match = yes || !fails ? top : this.unlike(top);
    const second = this.until(() => this.thing(), top);
    let third = this.until(() => this.thing(), top);
    if (task === "xoccurs") {
      third = yes || fails ? this.until(() => this.unlike(second), top) : second;
    }
    const columns = this.shuffled(3).map((column) => 6 + column);
    return [onTile(top, this.random(3)), ...put([match, second, third], columns)];
  }
}
