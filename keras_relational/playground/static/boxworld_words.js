// BoxWorld in words: colours, what a move did, and why a box lost.

import { content, contentAt, contents, target } from "./boxworld_rules.js";

// In the order of the hues in environments/boxworld/tiles.py. The first two
// letters of each name are its sign on the board.
export const HUE_NAMES = [
  "red", "rust", "orange", "yellow", "lime", "apple green", "green", "emerald",
  "sea green", "mint", "turquoise", "sky blue", "azure", "blue", "indigo",
  "violet", "purple", "magenta", "pink", "crimson",
];

function colourName({ hues }, colour) {
  return HUE_NAMES[hues.indexOf(colour)];
}

// What is behind a lock: "the gem" or "the red key".
function thing(world, key) {
  return key === world.colours.gem
    ? "the gem" : `the ${colourName(world, key)} key`;
}

function keysHeld(world, { inventory }) {
  return [...new Set(inventory)]
    .filter((colour) => colour !== world.colours.empty)
    .map((colour) => thing(world, colour));
}

function listed(names) {
  return names.join(" and ");
}

export function held(world, state) {
  return listed(keysHeld(world, state)) || "no key";
}

// What a move did to what it met, in the past tense; for a move that walked,
// the empty text.
export function told(world, who, before, action, after) {
  const cell = target(world, before.player, action);
  const met = contentAt(world, before, cell);
  if (!met) return "";
  const name = (colour) => colourName(world, colour);
  if (after.board === before.board) {
    if (cell !== met.cells[1] && cell !== met.cells[3]) {
      return "A locked box holds this. Its lock is the tile to the right.";
    }
    const locks = met.secondLock === null
      ? `This lock is ${name(met.lock)}`
      : `The gem has two locks, ${name(met.lock)} and ${name(met.secondLock)}`;
    return `${locks}, and ${who.toLowerCase()} held ${held(world, before)}.`;
  }
  if (met.lock === null) return `${who} took ${thing(world, met.key)}.`;
  return `${who} opened the ${name(met.lock)} lock and got `
    + `${thing(world, met.key)}.`;
}

// The box on the way to the gem that a key was for.
function rightBox(world, state, key) {
  return contents(world, state).find(({ lock, secondLock, loses }) =>
    !loses && lock !== null && (lock === key || secondLock === key));
}

// From a key on: the things that the boxes on its way to the gem hold.
function wayOn(world, state, key) {
  const names = [];
  for (let next = key; ;) {
    const box = rightBox(world, state, next);
    if (!box || names.length > world.cells_of_slot.length) return names;
    names.push(thing(world, box.key));
    if (box.holdsGem) return names;
    next = box.key;
  }
}

// Why the box that was opened last lost, and which box was right. `before` is
// the state before the move.
export function why(world, before, after) {
  const met = lostSlot(world, before, after);
  const name = (colour) => colourName(world, colour);
  const [spent, got] = [name(met.lock), name(met.key)];
  const gem = contents(world, before).find(({ holdsGem }) => holdsGem);
  const goesOn = contents(world, before).some(({ lock }) => lock === met.key);
  const reason = gem.secondLock !== null
    ? `This box is a bridge: it took the ${spent} key of one way, and gave the `
      + `${got} key of the other. The gem needs a key of each way, `
      + `${name(gem.lock)} and ${name(gem.secondLock)}.`
    : goesOn
      ? `The ${spent} key went for the ${got} key, whose boxes never lead to `
        + "the gem."
      : `The ${spent} key went for the ${got} key, and no lock is ${got}: this `
        + "box leads nowhere.";
  return `${reason} The ${spent} key was for the other ${spent} lock: it leads to `
    + `${wayOn(world, before, met.lock).join(", then ")}.`;
}

// What was in the slot of the box that was opened last.
function lostSlot(world, before, after) {
  const cell = after.player;
  const slot = world.cells_of_slot.findIndex((cells) =>
    cells.includes(cell) && before.board[cells[0]] !== world.colours.blank);
  return content(world, before, slot);
}

// The cell of the lock that a key was for, where the player lost.
export function rightLock(world, before, after) {
  const { lock: spent } = lostSlot(world, before, after);
  const { cells, lock } = rightBox(world, before, spent);
  return lock === spent ? cells[1] : cells[3];
}

// A cell of the board: "the red lock", "a free tile beside the gem".
export function cellName(world, state, cell) {
  if (cell === state.player) return "its own place";
  const found = partName(world, state, cell);
  if (found) return found;
  const { columns, rows } = world;
  const [row, column] = [Math.floor(cell / columns), cell % columns];
  if (column === columns - 1 && row < 2 && keysHeld(world, state).length) {
    return "a free tile beside the key in hand";
  }
  const around = [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((right) =>
    [row + down, column + right, Math.abs(down) + Math.abs(right)]))
    .filter(([r, c, d]) => d && r >= 0 && r < rows && c >= 0 && c < columns)
    .sort((a, b) => a[2] - b[2]);
  for (const [r, c] of around) {
    const beside = partName(world, state, r * columns + c);
    if (beside) return `a free tile beside ${beside}`;
  }
  return "a free tile";
}

function partName(world, state, cell) {
  const met = contentAt(world, state, cell);
  if (!met) return null;
  const colour = state.board[cell];
  if (colour === world.colours.gem) return "the gem";
  const name = colourName(world, colour);
  if (met.lock === null) return `the loose ${name} key`;
  return cell === met.cells[0] || cell === met.cells[2]
    ? `the ${name} key in a box` : `the ${name} lock`;
}

// Where a cell is: "row 3, column 5".
export function placeName({ columns }, cell) {
  return `row ${1 + Math.floor(cell / columns)}, column ${1 + (cell % columns)}`;
}

// The whole board, a line for each thing on it.
export function boardInWords(world, state) {
  return [
    `The player: ${placeName(world, state.player)}`,
    ...contents(world, state).map(({ cells, key, lock, secondLock }) => {
      const what = thing(world, key);
      if (lock === null) {
        return `Loose, ${what}: ${placeName(world, cells[0])}`;
      }
      const locks = [lock, secondLock].filter((x) => x !== null)
        .map((x) => colourName(world, x));
      return `A box with ${what}, and the lock ${listed(locks)}: `
        + `${placeName(world, cells[1])}`;
    }),
  ];
}
