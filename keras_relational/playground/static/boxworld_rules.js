// The rules of BoxWorld, as environments/boxworld/rules.py has them.
//
// A world is what Python's `describe` says: `rows`, `columns`, and so on. A
// state is {board, inventory, losing, player, steps, reward, end}. States are
// never changed, so a list of them is a game that can be taken back.

import { decoded } from "./networks.js";

const STEPS = {
  left: [0, -1], up: [-1, 0], right: [0, 1], down: [1, 0],
};

// The first states of all puzzles of a world.
export function firstStates({ puzzles }) {
  const { board, inventory, losing, player } = Object.fromEntries(
    Object.entries(puzzles).map(([name, x]) => [name, decoded(x)]),
  );
  const row = ({ shape, data }, number) =>
    Array.from(data.slice(number * shape[1], (number + 1) * shape[1]));
  return Array.from(player.data, (cell, number) => ({
    board: row(board, number),
    inventory: row(inventory, number),
    losing: row(losing, number).map(Boolean),
    player: cell,
    steps: 0,
    reward: 0,
    end: null,
  }));
}

// The cell that an action leads to. At the edge the player stays.
export function target({ actions, rows, columns }, player, action) {
  const [down, right] = STEPS[actions[action]];
  const row = Math.floor(player / columns) + down;
  const column = (player % columns) + right;
  const isInside = row >= 0 && row < rows && column >= 0 && column < columns;
  return isInside ? row * columns + column : player;
}

// What is in a slot: its number, its cells, and the colours there. Without a
// lock it is a loose key. A blank part is null.
export function content(world, { board, losing }, slot) {
  const cells = world.cells_of_slot[slot];
  const [key, lock, secondKey, secondLock] = cells.map((cell) =>
    (board[cell] === world.colours.blank ? null : board[cell]));
  return {
    slot, cells, key, lock, secondKey, secondLock,
    loses: losing[slot], holdsGem: key === world.colours.gem,
  };
}

// All loose keys and boxes that are left.
export function contents(world, state) {
  return world.cells_of_slot
    .map((_, slot) => content(world, state, slot))
    .filter(({ key }) => key !== null);
}

// What has a part on a cell, or null.
export function contentAt(world, state, cell) {
  if (state.board[cell] === world.colours.blank) return null;
  return contents(world, state).find(({ cells }) => cells.includes(cell)) ?? null;
}

// The inventory with a key in place of another, or null if that is not held.
function exchanged(inventory, old, key) {
  const place = inventory.indexOf(old);
  if (place < 0) return null;
  return inventory.map((held, i) => (i === place ? key : held));
}

// The inventory after all locks of a box were opened, or null.
function opened(inventory, { key, lock, secondKey, secondLock }) {
  const first = exchanged(inventory, lock, key);
  if (!first || secondLock === null) return first;
  return exchanged(first, secondLock, secondKey);
}

// The state after an action.
export function move(world, state, action) {
  const { blank, empty } = world.colours;
  const cell = target(world, state.player, action);
  const after = { ...state, steps: state.steps + 1, reward: 0 };
  const met = contentAt(world, state, cell);
  if (!met) {
    after.player = cell;
  } else {
    const isLoose = cell === met.cells[0] && met.lock === null;
    const isLock = cell === met.cells[1] || cell === met.cells[3];
    const inventory = isLoose
      ? exchanged(state.inventory, empty, met.key) ?? state.inventory
      : isLock && opened(state.inventory, met);
    if (inventory) {
      after.player = cell;
      after.inventory = inventory;
      after.board = state.board.map((colour, i) =>
        (met.cells.includes(i) ? blank : colour));
      const wins = isLock && met.holdsGem;
      const loses = isLock && met.loses;
      after.reward = wins ? world.success_reward : loses ? -1 : 1;
      after.end = wins ? "solved" : loses ? "lost" : null;
    }
  }
  const { max_steps: most } = world;
  if (!after.end && most !== null && after.steps >= most) {
    after.end = "out of moves";
  }
  return after;
}

// The image that the agent sees, of rows × (columns + 1) pixels. The last
// column shows the keys that the player holds.
export function pixels(world, state) {
  const { rows, columns, colours } = world;
  const image = new Uint8Array(rows * (columns + 1) * 3);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column <= columns; column++) {
      const cell = row * columns + column;
      const colour = column === columns
        ? state.inventory[row] ?? colours.empty
        : cell === state.player ? colours.player : state.board[cell];
      image.set(rgb(colour), 3 * (row * (columns + 1) + column));
    }
  }
  return image;
}

// Red, green and blue of a packed colour.
export function rgb(colour) {
  return [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
}

// The fewest moves to a cell over blank tiles, or null if no way leads there.
export function way(world, state, cell) {
  return search(world, state, {
    goesTo: (next) => next === cell,
    enters: (next) => state.board[next] === world.colours.blank,
  });
}

function search(world, { player }, { goesTo, enters }) {
  const before = new Map([[player, null]]);
  for (const here of before.keys()) {  // It grows while it is walked through.
    for (let action = 0; action < world.actions.length; action++) {
      const next = target(world, here, action);
      if (before.has(next)) continue;
      if (!goesTo(next) && !enters(next)) continue;
      before.set(next, [here, action]);
      if (goesTo(next)) return walkedBack(before, next);
    }
  }
  return null;
}

function walkedBack(before, end) {
  const actions = [];
  for (let step = before.get(end); step; step = before.get(step[0])) {
    actions.unshift(step[1]);
  }
  return actions;
}

// The fewest actions that solve a puzzle, or null. It looks ahead over all
// orders in which keys can be taken, without boxes that lose.
export function solution(world, state) {
  const name = ({ player, board, inventory }) =>
    `${player};${board};${inventory}`;
  const start = { ...state, steps: 0, end: null };
  const before = new Map([[name(start), null]]);
  const unlimited = { ...world, max_steps: null };
  const waiting = [start];
  for (const here of waiting) {
    for (let action = 0; action < world.actions.length; action++) {
      const next = move(unlimited, here, action);
      const key = name(next);
      if (next.end === "lost" || before.has(key)) continue;
      before.set(key, [name(here), action]);
      if (next.end) return walkedBack(before, key);
      waiting.push(next);
    }
  }
  return null;
}

// The number of the entity whose middle is nearest to the player, and the row
// and column of an entity's middle in the image.
export function playerEntity({ rows, columns }, { player }) {
  const [row, column] = [Math.floor(player / columns), player % columns];
  const clipped = (x, most) => Math.min(Math.max(x - 1, 0), most - 1);
  return clipped(row, rows - 2) * (columns - 1) + clipped(column, columns - 1);
}

export function middleOf({ columns }, entity) {
  const row = 1 + Math.floor(entity / (columns - 1));
  return [row, 1 + (entity % (columns - 1))];
}
