// Play a puzzle, or let the agent play it.

import { decoded, el, paint, paintAttention, percent, reporting }
  from "./page.js";

const ARROWS = {
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
};
const SIGNS = { up: "↑", down: "↓", left: "←", right: "→" };
const ENDS = {
  solved: "Solved.",
  lost: "Lost: this box led nowhere.",
  "out of moves": "No moves are left.",
};
const PAUSE = 250; // Milliseconds between two moves of the agent.

export async function show(root, page, { moves: names }) {
  let puzzle = 0;
  let moves = [];
  let now = null;
  let stopAgent = null; // A function, while the agent plays.
  let sampled = true;
  let last = Promise.resolve();

  const canvas = el("canvas", {
    id: "board", role: "img", tabindex: 0,
    "aria-label": "The puzzle. The arrow keys walk.",
  });
  const state = el("div", { id: "state", class: "answer" });
  const policy = el("div", { id: "policy", class: "bars" });
  const attention = el("div", { id: "attention", class: "cards" });
  const play = el("button", { id: "play", onclick: () => toggle() });
  const draw = el("input", {
    type: "checkbox", checked: "", onchange: () => { sampled = draw.checked; },
  });
  root.append(
    el("h2", {}, "Get to the gem"),
    el("p", {}, "You are the dark grey tile, and the gem is white. Walk with "
      + "the arrow keys; a click on the board gives it the keys. Walk onto a single coloured tile to take the key. Two "
      + "tiles side by side are a box: the right one is its lock, the left one "
      + "what it holds. A key opens a lock of its colour, and the tile at the "
      + "top right shows your key. A wrong box ends the puzzle."),
    el("div", { class: "columns", onclick: focusBoard },
      el("div", {}, canvas, state,
        el("div", { class: "row" },
          ...["left", "up", "down", "right"].map((name) => el("button", {
            id: name, "aria-label": name,
            onclick: () => move(names.indexOf(name)),
          }, SIGNS[name])),
          el("button", { id: "undo", onclick: undo }, "Undo")),
        el("div", { class: "row", style: "margin-top: 0.5rem" },
          el("button", { id: "step", onclick: () => agentMoves() },
            "Agent’s move"),
          play,
          el("button", { id: "again", onclick: () => begin(puzzle) },
            "Start again"),
          el("button", { id: "new", onclick: () => begin(randomPuzzle()) },
            "New puzzle"))),
      el("div", {},
        el("h3", {}, "What the agent would do"), policy,
        el("p", {}, el("label", {}, draw,
          " draw moves by these probabilities (else: the likeliest)")))),
    el("h3", {}, "What the agent’s place attends to"),
    attention,
  );

  // The server has as many puzzles: NUM_PUZZLES of boxworld.py.
  function randomPuzzle() {
    return Math.floor(Math.random() * 100_000);
  }

  const refresh = reporting(async () => {
    now = await page.ask({ puzzle, moves });
    const image = decoded(now.image);
    paint(canvas, image);
    const [, columns] = image.shape;
    const tile = Math.min(36, Math.floor(560 / columns));
    canvas.style.width = `${tile * columns}px`;
    const end = now.end ? ENDS[now.end] : "";
    state.textContent = `${now.number} moves, reward ${now.reward}. ${end}`;
    policy.replaceChildren(...(now.policy ?? []).flatMap((share, number) => [
      el("span", {}, `${SIGNS[names[number]]} ${names[number]}`),
      el("div", { class: "bar" },
        el("div", { style: `width: ${100 * share}%` })),
      el("span", { class: "quiet" }, percent(share)),
    ]));
    attention.replaceChildren(...now.attention.map(({ title, weights }) => {
      const strongest = Math.max(...weights.flat());
      const areas = weights.flatMap((row, i) => row.map((w, j) =>
        [j + 1, i + 1, 1, w / strongest, "#4c8dff"]));
      const scale = Math.max(5, Math.floor(220 / columns));
      return el("figure", {},
        paintAttention(el("canvas"), image, areas, scale),
        el("figcaption", {}, `${title}: at most ${percent(strongest)}`));
    }));
    if (now.end) stop();
  });

  // One action after the other: each one goes by the answer to the last.
  function enqueue(action) {
    last = last.then(action);
    return last;
  }

  function begin(number) {
    stop();
    return enqueue(async () => {
      puzzle = number;
      moves = [];
      await refresh();
    });
  }

  function move(number) {
    return enqueue(async () => {
      if (now?.end) return;
      moves.push(number);
      await refresh();
    });
  }

  function undo() {
    stop();
    return enqueue(async () => {
      moves.length = now?.number ?? 0;
      moves.pop();
      await refresh();
    });
  }

  function agentMoves() {
    return enqueue(async () => {
      if (!now?.policy) return;
      let number = now.policy.indexOf(Math.max(...now.policy));
      if (sampled) {
        let rest = Math.random();
        number = now.policy.findIndex((share) => (rest -= share) < 0);
        number = Math.max(0, number);
      }
      moves.push(number);
      await refresh();
    });
  }

  function toggle() {
    if (stopAgent) return stop();
    stopAgent = page.repeat(agentMoves, PAUSE);
    label();
  }

  function stop() {
    stopAgent?.();
    stopAgent = null;
    label();
  }

  function label() {
    play.textContent = stopAgent ? "Pause" : "Agent plays";
  }

  // After a click of the mouse, the arrow keys walk. A click by a key has no
  // detail, and keeps the focus.
  function focusBoard(event) {
    if (event.detail && event.target.closest("button")) {
      canvas.focus({ preventScroll: true });
    }
  }

  page.onKey((event) => {
    const number = names.indexOf(ARROWS[event.key]);
    if (number < 0) return;
    event.preventDefault();
    move(number);
  });
  await begin(randomPuzzle());
}
