// SET: find a set before the model does, or make a hand of your own.

import { el, percent, randomInteger, replace, reporting } from "./page.js";
import { argmax, decoded, softmax, tensor } from "./networks.js";
import { NUM_ATTRIBUTES, findSet, oneHot, twice } from "./set_game_rules.js";

export const title = "SET";
export const teaser = "Five cards: is there a set? You and the model, by the clock.";

const COLOURS = ["#e23b3b", "#1f9d55", "#7d4fd1"];
const ATTRIBUTES = ["number", "colour", "shape", "shading"];
const NUM_HANDS = 10; // Of a round.
const CARD = { width: 100, height: 140 };

const OUTLINES = [
  (context) => context.roundRect(-32, -13, 64, 26, 13),
  (context) => {
    context.moveTo(-30, 8);
    context.bezierCurveTo(-36, -22, -8, -14, 4, -8);
    context.bezierCurveTo(14, -3, 20, -14, 28, -11);
    context.bezierCurveTo(40, 16, 8, 14, -4, 8);
    context.bezierCurveTo(-14, 3, -24, 16, -30, 8);
  },
  (context) => {
    context.moveTo(-34, 0);
    context.lineTo(0, -15);
    context.lineTo(34, 0);
    context.lineTo(0, 15);
    context.closePath();
  },
];

// Draws a card of 100 by 140 at the origin.
function drawCard(context, [number, colour, shape, shading]) {
  context.fillStyle = "#fff";
  context.beginPath();
  context.roundRect(1, 1, CARD.width - 2, CARD.height - 2, 8);
  context.fill();
  context.strokeStyle = context.fillStyle = COLOURS[colour];
  context.lineWidth = 2.5;
  for (let i = 0; i <= number; i++) {
    context.save();
    context.translate(CARD.width / 2, CARD.height / 2 + 38 * (i - number / 2));
    context.beginPath();
    OUTLINES[shape](context);
    if (shading === 2) context.fill();
    context.stroke();
    if (shading === 1) {
      context.clip();
      context.lineWidth = 1.5;
      context.beginPath();
      for (let x = -36; x < 40; x += 6) {
        context.moveTo(x, -30);
        context.lineTo(x, 30);
      }
      context.stroke();
    }
    context.restore();
  }
}

export function thumbnail(context, seconds) {
  const hands = [
    [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 2, 0]],
    [[1, 0, 2, 1], [1, 0, 2, 2], [1, 0, 2, 0]],
  ];
  const phase = seconds % 6;
  hands[Math.floor(phase / 3)].forEach((card, i) => {
    const lift = Math.max(0, Math.sin(Math.PI * ((phase % 3) - 1 - i / 5)));
    context.save();
    context.translate(22 + 68 * i, 38 - 12 * lift);
    context.scale(0.6, 0.6);
    drawCard(context, card);
    context.restore();
  });
}

export async function show(root, page, described) {
  const hands = decoded(described.hands);
  const { attributes } = described;
  let mode = "race"; // Or "own".
  let hand = [];
  let started = 0; // When the hand was shown, in milliseconds.
  let stopClock = null;
  let models = null; // A promise of the model's answer.
  let round = []; // Of each hand so far, who was right and your seconds.

  const cards = el("div", { class: "set-cards" });
  const clock = el("p", { id: "clock", class: "quiet" });
  const answer = el("p", { id: "answer", class: "answer", role: "status" });
  const detail = el("p", { id: "detail", class: "set-detail" });
  const buttons = el("div", { class: "row" });
  const tally = el("p", { id: "tally", class: "quiet" });
  root.append(
    el("h2", {}, "Is there a set among these cards?"),
    el("p", {}, "Three cards are a set if each attribute, number, colour, shape "
      + "and shading, is the same on all three or different on all three. The "
      + "model has never seen the sets of these hands."),
    el("div", { class: "row" }, ...[["race", "Against the model"],
      ["own", "A hand of your own"]].map(([name, text]) => el("button", {
      id: name, "aria-pressed": `${name === mode}`, onclick: reporting(() => enter(name)),
    }, text))),
    clock, cards, buttons, answer, detail, tally,
  );

  function nameOf(card) {
    const [number, colour, shape, shading] = card.map((x, i) => attributes[i][x]);
    return `${number} ${shading} ${colour} ${shape}`;
  }

  function drawHand(marked = []) {
    replace(cards, ...hand.map((card, place) => {
      const canvas = el("canvas", {
        role: "img", "aria-label": `Card ${place + 1}: ${nameOf(card)}`,
        ...CARD, class: marked.includes(place) ? "marked" : "",
      });
      drawCard(canvas.getContext("2d"), card);
      const controls = mode === "own" ? ATTRIBUTES.map((name, i) => el("button", {
        id: `card${place}-${name}`,
        "aria-label": `Card ${place + 1}, ${name}: ${attributes[i][card[i]]}. Next`,
        onclick: reporting(() => change(place, i)),
      }, attributes[i][card[i]])) : [];
      return el("div", { class: "set-card" }, canvas, ...controls);
    }));
  }

  function draw() {
    const i = randomInteger(hands.shape[0]);
    const values = Array.from(hands.data.slice(20 * i, 20 * (i + 1)));
    hand = [0, 4, 8, 12, 16].map((at) => values.slice(at, at + NUM_ATTRIBUTES));
  }

  async function ask() {
    const { logits } = await page.run({
      entities: tensor("float32", [1, 5, 12], oneHot(hand)),
    });
    const chances = softmax(logits.data);
    const choice = argmax(chances);
    return { says: choice === 1, chance: chances[choice] };
  }

  function describeSet() {
    const places = findSet(hand);
    if (!places) return "There is no set.";
    const numbers = places.map((place) => place + 1).join(", ");
    return `Cards ${numbers} are a set: ${ATTRIBUTES.map((name, i) => {
      const values = new Set(places.map((place) => hand[place][i]));
      return `${name} ${values.size === 1 ? "the same" : "all different"}`;
    }).join(", ")}.`;
  }

  function enter(name) {
    mode = name;
    for (const other of ["race", "own"]) {
      root.querySelector(`#${other}`).setAttribute("aria-pressed", `${other === mode}`);
    }
    stopClock?.();
    stopClock = null;
    round = [];
    for (const part of [answer, detail, tally, clock]) part.textContent = "";
    if (mode === "own") {
      draw();
      return showOwn();
    }
    return showStart();
  }

  function showStart() {
    hand = [];
    drawHand();
    clock.textContent = `${NUM_HANDS} hands. The clock starts when you do.`;
    replace(buttons, el("button", {
      id: "start", onclick: () => { begin(); focusOn("yes"); },
    }, "Start"));
  }

  // The model's answer, and how long it took.
  async function timed() {
    const asked = performance.now();
    const found = await ask();
    return { ...found, milliseconds: performance.now() - asked };
  }

  function begin() {
    draw();
    drawHand();
    models = timed();
    models.catch(() => {}); // It is given up if the page is left.
    answer.textContent = detail.textContent = "";
    replace(buttons,
      el("button", { id: "yes", onclick: reporting(() => guess(true)) }, "Yes, a set (Y)"),
      el("button", { id: "no", onclick: reporting(() => guess(false)) }, "No set (N)"));
    started = performance.now();
    const tick = () => {
      const seconds = Math.floor((performance.now() - started) / 1000);
      clock.textContent = `Hand ${round.length + 1} of ${NUM_HANDS}, ${seconds} s`;
    };
    tick();
    stopClock = page.repeat(tick, 250);
  }

  async function guess(yours) {
    if (!stopClock) return;
    const seconds = (performance.now() - started) / 1000;
    stopClock();
    stopClock = null;
    const { says, chance, milliseconds } = await models;
    const right = Boolean(findSet(hand));
    round.push({ you: yours === right, model: says === right, seconds });
    drawHand(findSet(hand) ?? []);
    const judged = (isRight) => (isRight ? "right" : "wrong");
    answer.textContent = `You: ${yours ? "yes" : "no"}, ${judged(yours === right)}, `
      + `in ${seconds.toFixed(1)} s. The model: ${says ? "yes" : "no"}, `
      + `${judged(says === right)}, in ${milliseconds.toFixed(0)} ms `
      + `(${percent(chance)} sure).`;
    detail.textContent = describeSet();
    const of = (who) => round.filter((x) => x[who]).length;
    const mean = round.reduce((sum, x) => sum + x.seconds, 0) / round.length;
    tally.textContent = `So far: you ${of("you")} of ${round.length}, the model `
      + `${of("model")} of ${round.length}. Your mean: ${mean.toFixed(1)} s a hand.`;
    const isOver = round.length === NUM_HANDS;
    const next = el("button", {
      id: "next",
      onclick: () => {
        if (isOver) round = [];
        begin();
        focusOn("yes");
      },
    }, isOver ? "Another round" : "Next hand");
    replace(buttons, next);
    next.focus({ preventScroll: true });
  }

  function focusOn(id) {
    root.querySelector(`#${id}`)?.focus({ preventScroll: true });
  }

  function showOwn() {
    replace(buttons, el("button", {
      id: "another", onclick: reporting(() => { draw(); return showOwn(); }),
    }, "Another hand"));
    return judge();
  }

  async function judge() {
    drawHand(findSet(hand) ?? []);
    const { says, chance } = await ask();
    answer.textContent = `The model: ${says ? "yes, a set" : "no set"}, ${percent(chance)}`;
    detail.textContent = describeSet() + (twice(hand)
      ? " A card is there twice: this is outside what the model was trained on." : "");
  }

  async function change(place, attribute) {
    hand[place] = hand[place].with(attribute, (hand[place][attribute] + 1) % 3);
    await judge();
  }

  page.onKey((event) => {
    const key = event.key.toLowerCase();
    if (mode !== "race" || !["y", "n"].includes(key)) return;
    event.preventDefault();
    reporting(guess)(key === "y");
  });
  draw();
  await ask(); // The first run takes longer than the others.
  showStart();
}
