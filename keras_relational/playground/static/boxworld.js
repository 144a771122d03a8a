// You and the agent play the same puzzle, each on a board of your own.

import { el, percent, randomInteger, reporting } from "./page.js";
import { argmax, softmax, tensor } from "./networks.js";
import { GAP, drawBoard } from "./boxworld_board.js";
import * as rules from "./boxworld_rules.js";
import * as words from "./boxworld_words.js";

export const first = "boxworld_9x9_relational";
export const title = "BoxWorld";
export const teaser = "Keys, boxes and a gem: race a trained agent to it, and "
  + "see where it looks.";

const ARROWS = {
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
};
const SIGNS = { up: "↑", down: "↓", left: "←", right: "→" };
const PAUSE = 350; // Milliseconds between two moves of the agent.
const STRIDE = 110; // The same for a walk to a tile that was clicked.
const TILE = 56; // Pixels that are drawn; the style sheet makes them smaller.
const WIDE = 12; // More columns take the whole width of a phone.
const YOURS = "#2f6fde";
const ITS = "#e07b1a";

// One of the two players: the states of the game so far, and what shows them.
class Seat {
  constructor(world, id, name, figure, greeting) {
    Object.assign(this, { world, id, name, figure, greeting });
    this.states = [];
    this.actions = [];
    const width = 25 * (world.columns + GAP + 1) / world.rows;
    this.canvas = el("canvas", {
      id: `${id}-board`, class: world.columns > WIDE ? "puzzle wide" : "puzzle",
      role: "img", style: `max-width: ${width}rem`,
    });
    this.moves = el("p", { id: `${id}-moves`, class: "quiet" });
    this.told = el("p", { id: `${id}-told`, class: "told" });
    this.list = el("ul", { class: "unseen" });
  }

  get now() {
    return this.states.at(-1);
  }

  begin(first) {
    this.states = [first];
    this.actions = [];
    this.fewest = rules.solution(this.world, first)?.length;
  }

  play(action) {
    this.states.push(rules.move(this.world, this.now, action));
    this.actions.push(action);
  }

  // Keeps so many moves.
  takeBack(number) {
    this.states.length = Math.min(this.states.length, number + 1);
    this.actions.length = this.states.length - 1;
  }

  draw({ hands, letters, hint }) {
    const { world, now, canvas } = this;
    canvas.width = (world.columns + GAP + 1) * TILE;
    canvas.height = world.rows * TILE;
    const marks = hint === null ? {} : { [hint]: "ring" };
    if (now.end === "lost") {
      marks[now.player] = "cross";
      marks[words.rightLock(world, this.states.at(-2), now)] = "ring";
    }
    drawBoard(canvas.getContext("2d"), world, now, {
      tile: TILE, hands, letters, figure: this.figure, marks,
    });
    const { steps } = now;
    this.moves.textContent = `${steps} ${steps === 1 ? "move" : "moves"}, holding `
      + words.held(world, now);
    this.list.replaceChildren(
      ...words.boardInWords(world, now).map((line) => el("li", {}, line)),
    );
    const text = this.ending()
      || (hint !== null && hintText(world, now, hint)) || this.event();
    if (this.told.textContent !== text) this.told.textContent = text;
  }

  // What the last move did.
  event() {
    if (this.states.length < 2) return this.greeting;
    return words.told(this.world, this.name, this.states.at(-2),
      this.actions.at(-1), this.now);
  }

  // How the game ended, or nothing while it goes on.
  ending() {
    const { world, now, fewest } = this;
    if (now.end === "solved") {
      const enough = now.steps > fewest
        ? `${fewest} are enough.` : "No way is shorter.";
      return `Solved in ${now.steps} moves. ${enough}`;
    }
    if (now.end === "lost") {
      return `Lost. ${words.why(world, this.states.at(-2), now)}`;
    }
    return now.end && `No moves are left: a game has ${world.max_steps}.`;
  }
}

function hintText(world, state, cell) {
  return `Hint: ${words.cellName(world, state, cell)}, in `
    + `${words.placeName(world, cell)}.`;
}

export async function show(root, page, world) {
  const firsts = rules.firstStates(world);
  const you = new Seat(world, "your", "You", YOURS,
    "Walk by the arrow keys, by the buttons, or by a click on a tile.");
  const agent = new Seat(world, "its", "It", ITS,
    "A network, trained on other puzzles. It sees one pixel a tile.");
  const hasBridges = firsts.some((state) =>
    rules.contents(world, state).some(({ secondLock }) => secondLock !== null));
  const hands = hasBridges ? 2 : 1;
  const canLose = firsts.some(({ losing }) => losing.some(Boolean));
  const found = new WeakMap(); // The network's outputs, by the state.
  const results = new Map(); // The first ends of the players, by the puzzle.
  let puzzle = 0;
  let hint = null;
  let owed = 0; // Moves that the agent has yet to make.
  let isThinking = false;
  let stopWalk = null; // Functions, while you walk and while the agent goes on.
  let stopAgent = null;
  let looker = agent; // Whose board the panel below is about.

  const pace = el("select", { id: "pace" },
    el("option", { value: "waits" }, "waits for your moves"),
    el("option", { value: "goes" }, "goes on by itself"));
  const choice = el("select", { id: "choice" },
    el("option", { value: "drawn" }, "drawn by these chances"),
    el("option", { value: "likeliest" }, "always the likeliest"));
  const letters = el("input", { type: "checkbox", id: "letters", onchange: draw });
  const verdict = el("p", { id: "verdict", role: "status" });
  const tally = el("p", { id: "tally", class: "quiet" });
  const playOn = el("button", { id: "play", onclick: toggle });
  const lookers = [agent, you].map((seat) => el("button", {
    id: `look-${seat.id}`,
    onclick: () => { looker = seat; draw(); },
  }, seat === agent ? "on its board" : "in your place"));
  const bars = world.actions.map(() => [el("div"), el("span", { class: "quiet" })]);
  const looks = el("div", {
    id: "looks", class: world.columns > WIDE ? "looks wide" : "looks",
  });
  const looksAt = el("p", { id: "looks-at", class: "told" });
  const attention = el("section", { hidden: "" },
    el("h3", {}, "What it looks at from its place"),
    el("p", { class: "quiet" }, "Each picture is a head of the agent’s "
      + "Transformer, in one of its rounds: the stronger the orange, the more "
      + "of its attention lies there. White frames the most."),
    looksAt, looks);

  you.canvas.tabIndex = 0;
  you.canvas.onclick = clickBoard;
  you.canvas.setAttribute("aria-label", "Your board. The arrow keys walk.");
  agent.canvas.setAttribute("aria-label", "The agent’s board.");
  for (const seat of [you, agent]) {
    seat.told.classList.toggle("long", canLose);
    seat.list.setAttribute("aria-label", "The board in words");
  }
  you.told.setAttribute("aria-live", "polite");

  root.append(
    el("h2", {}, "Get to the gem before the agent"),
    el("p", {}, "Walk onto a loose key to take it. Two framed tiles are a box: "
      + "to the right its lock, to the left what it holds. A key opens a lock of "
      + "its colour and is spent; you get what the box holds. "
      + (hasBridges
        ? "The gem has two locks, so you need two keys at once. A box that leads "
          + "from one key’s way to the other’s loses the game."
        : canLose ? "Some boxes lead nowhere and lose the game." : "")),
    el("div", { class: "row", onclick: focusBoard },
      el("button", { id: "new", onclick: () => begin(randomInteger(firsts.length)) },
        "New puzzle"),
      el("button", { id: "again", onclick: () => begin(puzzle) }, "Start again"),
      el("label", {}, letters, " letters for colours")),
    el("div", { class: "race", onclick: focusBoard },
      el("section", { id: "yours" },
        el("h3", {}, el("i", { class: "dot blue" }), "You"),
        you.canvas, you.moves, you.list,
        el("div", { class: "row" },
          ...["left", "up", "down", "right"].map((name) => el("button", {
            id: name, class: "arrow", "aria-label": name,
            onclick: () => walk([world.actions.indexOf(name)]),
          }, SIGNS[name])),
          el("button", { id: "undo", onclick: undo }, "Undo"),
          el("button", { id: "hint", onclick: showHint }, "Hint")),
        you.told),
      el("section", { id: "agents" },
        el("h3", {}, el("i", { class: "dot orange" }), "The agent"),
        agent.canvas, agent.moves, agent.list,
        el("div", { class: "row" },
          el("button", { id: "step", onclick: () => { owed += 1; think(); } },
            "One move"),
          playOn,
          el("label", {}, "The agent ", pace)),
        agent.told)),
    verdict,
    tally,
    el("h3", {}, "The agent’s next move"),
    el("div", { class: "row" }, ...lookers,
      el("label", {}, "Its moves are ", choice)),
    el("div", { id: "policy", class: "chances" },
      ...world.actions.flatMap((name, i) => [
        el("span", {}, `${SIGNS[name]} ${name}`),
        el("div", { class: "bar" }, bars[i][0]), bars[i][1],
      ])),
    attention,
  );

  function draw() {
    const options = { hands, letters: letters.checked };
    you.draw({ ...options, hint });
    agent.draw({ ...options, hint: null });
    playOn.textContent = stopAgent ? "Pause" : "Play on";
    lookers.forEach((button, i) => button.setAttribute(
      "aria-pressed", `${looker === [agent, you][i]}`));
    verdict.textContent = judge();
    tally.textContent = count();
    drawMind();
  }

  // The policy and the attention on one of the boards.
  function drawMind() {
    const { now } = looker;
    const outputs = found.get(now);
    if (!outputs && !now.end) return; // They are there in a moment.
    bars.forEach(([bar, share], i) => {
      const chance = now.end ? 0 : outputs.policy[i];
      bar.style.width = `${100 * chance}%`;
      share.textContent = now.end ? "" : percent(chance);
    });
    const maps = outputs?.maps ?? [];
    attention.hidden = !maps.length && !looks.children.length;
    while (looks.children.length < maps.length) {
      looks.append(el("figure", {}, el("canvas", { class: "puzzle" }),
        el("figcaption")));
    }
    maps.forEach((map, i) => drawMap(looks.children[i], map, now));
    if (now.end) looksAt.textContent = "This game is over.";
    else if (maps.length) {
      const most = maps.reduce((a, b) => (b.weight > a.weight ? b : a));
      looksAt.textContent = `It looks most at ${cellOf(most, now)}: head `
        + `${most.head} in round ${most.round}, ${percent(most.weight)}.`;
    }
  }

  function cellOf({ entity }, state) {
    const [row, column] = rules.middleOf(world, entity);
    return words.cellName(world, state, row * world.columns + column);
  }

  function drawMap(figure, map, state) {
    const [canvas, caption] = figure.children;
    const tile = TILE / 2;
    canvas.width = world.columns * tile;
    canvas.height = world.rows * tile;
    const context = canvas.getContext("2d");
    drawBoard(context, world, state, {
      tile, hands: 0, letters: letters.checked, figure: looker.figure,
    });
    const square = (entity) => {
      const [row, column] = rules.middleOf(world, entity);
      return [column * tile, row * tile, tile, tile];
    };
    context.fillStyle = "#101218a0";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = ITS;
    map.weights.forEach((weight, entity) => {
      context.globalAlpha = 0.85 * weight / map.weight;
      context.fillRect(...square(entity));
    });
    context.globalAlpha = 1;
    context.lineWidth = 4;
    context.strokeStyle = "#fff";
    context.strokeRect(...square(map.entity));
    caption.textContent = `Round ${map.round}, head ${map.head}: most at `
      + `${cellOf(map, state)}, ${percent(map.weight)}`;
  }

  // Asks the network about both boards, and makes the moves that are owed.
  const think = reporting(async () => {
    if (isThinking) return;
    isThinking = true;
    try {
      for (;;) {
        const states = [agent.now, you.now];
        if (!states.every((state) => found.has(state))) await ask(states);
        if (agent.now === states[0] && owed && !agent.now.end) {
          owed -= 1;
          agent.play(choose(found.get(agent.now).policy));
          note(agent);
        } else if (agent.now === states[0] && you.now === states[1]) {
          break;
        }
        draw();
      }
    } finally {
      isThinking = false;
    }
    if (agent.now.end) {
      owed = 0;
      stop();
    }
    draw();
  });

  async function ask(states) {
    const images = states.map((state) => rules.pixels(world, state));
    const pixels = new Uint8Array(images.flatMap((image) => [...image]));
    const shape = [states.length, world.rows, world.columns + 1, 3];
    const { policy, attention: scores } = await page.run({
      image: tensor("uint8", shape, pixels),
    });
    states.forEach((state, i) => found.set(state, {
      policy: softmax(policy.data.slice(4 * i, 4 * i + 4)),
      maps: scores ? mapsOf(scores, i, rules.playerEntity(world, state)) : [],
    }));
  }

  function choose(chances) {
    if (choice.value === "likeliest") return argmax(chances);
    let rest = Math.random();
    return Math.max(0, chances.findIndex((chance) => (rest -= chance) < 0));
  }

  function begin(number) {
    stopWalk?.();
    stop();
    puzzle = number;
    hint = null;
    owed = 0;
    for (const seat of [you, agent]) seat.begin({ ...firsts[number] });
    draw();
    return think();
  }

  // Makes moves of yours, the first one at once.
  function walk(actions) {
    stopWalk?.();
    const rest = [...actions];
    move(rest.shift());
    if (rest.length) {
      stopWalk = page.repeat(() => {
        move(rest.shift());
        if (!rest.length) stopWalk();
      }, STRIDE);
    }
  }

  function move(action) {
    if (you.now.end) return;
    const { board } = you.now;
    you.play(action);
    if (you.now.board !== board) hint = null;
    note(you);
    if (pace.value === "waits" && !stopAgent) owed += 1;
    const starts = you.now.end
      || (pace.value === "goes" && you.actions.length === 1);
    if (starts && !stopAgent && !agent.now.end) toggle();
    draw();
    think();
  }

  function undo() {
    stopWalk?.();
    you.takeBack(Math.max(0, you.actions.length - 1));
    if (pace.value === "waits") {
      stop();
      owed = 0;
      agent.takeBack(you.actions.length);
    }
    hint = null;
    draw();
    think();
  }

  function showHint() {
    const actions = rules.solution(world, you.now);
    if (you.now.end || !actions) return;
    let state = you.now;
    for (const action of actions) {
      hint = rules.target(world, state.player, action);
      state = rules.move(world, state, action);
      if (state.board !== you.now.board) break;
    }
    draw();
  }

  // The agent goes on by itself, or stops.
  function toggle() {
    if (stopAgent) {
      stop();
    } else if (!agent.now.end) {
      stopAgent = page.repeat(() => {
        owed ||= 1;
        return think();
      }, PAUSE);
    }
    draw();
  }

  function stop() {
    stopAgent?.();
    stopAgent = null;
  }

  function clickBoard({ offsetX, offsetY }) {
    const scale = you.canvas.width / you.canvas.clientWidth / TILE;
    const column = Math.floor(offsetX * scale);
    const row = Math.floor(offsetY * scale);
    if (column >= world.columns || row >= world.rows || you.now.end) return;
    let cell = row * world.columns + column;
    const met = rules.contentAt(world, you.now, cell);
    // A click on what a box holds goes to its lock.
    if (met && met.lock !== null && cell !== met.cells[3]) cell = met.cells[1];
    const actions = rules.way(world, you.now, cell);
    if (actions?.length) walk(actions);
    else if (!actions) you.told.textContent = "No way leads there.";
  }

  // After a click of the mouse, the arrow keys walk. A click by a key has no
  // detail, and keeps the focus.
  function focusBoard(event) {
    if (event.detail && event.target.closest("button")) {
      you.canvas.focus({ preventScroll: true });
    }
  }

  // Keeps how a player's first game of a puzzle ended.
  function note(seat) {
    if (!seat.now.end) return;
    const result = results.get(puzzle) ?? {};
    result[seat.id] ??= seat.now;
    results.set(puzzle, result);
  }

  function judge() {
    if (!you.now.end || !agent.now.end) {
      return you.now.end && "You are done. The agent goes on.";
    }
    const winner = better(you.now, agent.now);
    if (winner) return winner > 0 ? "You win this puzzle." : "The agent wins this puzzle.";
    return you.now.end === "solved"
      ? "A draw: as many moves each." : "Nobody got the gem.";
  }

  function count() {
    const both = [...results.values()].filter(({ your, its }) => your && its);
    if (!both.length) return "";
    const solved = (seat) => both.filter((x) => x[seat.id].end === "solved").length;
    const won = (sign) => both.filter(({ your, its }) =>
      better(your, its) === sign).length;
    return `Puzzles that both played to the end: ${both.length}. You solved `
      + `${solved(you)}, the agent ${solved(agent)}. You won ${won(1)}, the agent `
      + `${won(-1)}. The first end of a puzzle counts.`;
  }

  page.onKey((event) => {
    const action = world.actions.indexOf(ARROWS[event.key]);
    if (action < 0) return;
    event.preventDefault();
    walk([action]);
  });
  await begin(randomInteger(firsts.length));
}

// Who did better: 1 for the first, −1 for the second, 0 for neither.
function better(one, other) {
  const moves = ({ end, steps }) => (end === "solved" ? steps : Infinity);
  const [first, second] = [moves(one), moves(other)];
  return first === second ? 0 : first < second ? 1 : -1;
}

// What each head pays attention to from an entity, in each round.
function mapsOf({ shape, data }, number, entity) {
  const [, rounds, heads, n] = shape;
  return Array.from({ length: rounds * heads }, (_, i) => {
    const start = ((number * rounds * heads + i) * n + entity) * n;
    const weights = Array.from(data.slice(start, start + n));
    const weight = Math.max(...weights);
    return {
      weights, weight, entity: weights.indexOf(weight),
      round: 1 + Math.floor(i / heads), head: 1 + (i % heads),
    };
  });
}

// A small puzzle that solves itself.
const SMALL = {
  actions: ["left", "up", "right", "down"], rows: 5, columns: 7, max_steps: null,
  success_reward: 10, cells_of_slot: [[8, 9, 0, 0], [11, 12, 0, 0], [22, 23, 0, 0],
    [25, 26, 0, 0]],
  colours: { blank: 0, empty: 1, gem: 0xffffff, player: 2 },
  hues: [0x3d3dcc, 0xcc4b3d, 0x3dbecc],
};

function smallStates() {
  const [red, blue, yellow] = SMALL.hues;
  const board = Array(35).fill(0);
  Object.entries({
    8: red, 11: blue, 12: red, 22: 0xffffff, 23: blue, 25: yellow, 26: red,
  }).forEach(([cell, colour]) => { board[cell] = colour; });
  const states = [{
    board, inventory: [1, 1], losing: [false, false, false, true], player: 28,
    steps: 0, reward: 0, end: null,
  }];
  for (const action of rules.solution(SMALL, states[0])) {
    states.push(rules.move(SMALL, states.at(-1), action));
  }
  return states;
}

let small = null;

export function thumbnail(context, seconds) {
  small ??= smallStates();
  const number = Math.floor(3.5 * seconds) % (small.length + 4);
  context.translate(4, 2);
  drawBoard(context, SMALL, small[Math.min(number, small.length - 1)], {
    tile: 27, hands: 1, figure: YOURS, free: "#2a303b",
  });
}
