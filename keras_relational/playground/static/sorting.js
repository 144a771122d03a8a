// Ten cards: put them in order, and see how a model does, step by step.

import { el, percent, randomInteger, replace, reporting } from "./page.js";
import { decoded, softmax, tensor } from "./networks.js";
import { decode, sortedPlaces } from "./sorting_rules.js";

export const title = "Sorting";
export const teaser = "Ten cards in the order that the model has learned from examples.";

const NUM_CARDS = 10;
const SUITS = ["♣", "♦", "♥", "♠"];
const COLOURS = ["#3a9d5d", "#2f6fde", "#d6455d", "#8456c8"];
const PAUSE = 350; // Milliseconds between two steps of the model.

export function thumbnail(context, seconds) {
  const order = [3, 0, 4, 1, 2];
  const share = Math.min(1, Math.max(0, (seconds % 5) - 1.5));
  const eased = share * share * (3 - 2 * share);
  order.forEach((rank, i) => {
    const x = 24 + 40 * (i + eased * (rank - i));
    context.fillStyle = "#f4f6f9";
    context.beginPath();
    context.roundRect(x, 50 - 18 * Math.sin(Math.PI * eased), 34, 48, 4);
    context.fill();
    context.fillStyle = COLOURS[Math.floor(rank / 2)];
    context.font = "15px sans-serif";
    context.textAlign = "center";
    const y = 72 - 18 * Math.sin(Math.PI * eased);
    context.fillText(SUITS[Math.floor(rank / 2)], x + 17, y);
    context.fillText(`${2 + 3 * rank}`, x + 17, y + 18);
  });
}

export async function show(root, page, described) {
  const objects = decoded(described.objects);
  const [numObjects, size] = objects.shape;
  const [, numSecond] = described.num_values;
  let ranks = []; // Of the ten cards, their places in the order of all objects.
  let yours = [];
  let models = [];
  let chances = null; // Of each card, to be the next one, at the model's last step.
  let isSorting = false;

  const given = el("div", { class: "sort-row", id: "given" });
  const yourRow = el("div", { class: "sort-row", id: "yours" });
  const modelRow = el("div", { class: "sort-row", id: "models" });
  const yourWords = el("p", { id: "yourWords", class: "sort-words", role: "status" });
  const answer = el("p", { id: "answer", class: "sort-words", role: "status" });
  const doubles = el("input", { id: "doubles", type: "checkbox", onchange: () => deal() });
  root.append(
    el("h2", {}, "Ten cards: which order?"),
    el("p", {}, `The order is by suit first, ${SUITS.join(" ")}, and by number within a `
      + "suit. You see suits and numbers. The model does not: for it a card is a "
      + "vector of twelve random numbers, drawn below the card. It has learned the "
      + "order from 2,000 sorted sequences, never from these."),
    el("h3", {}, "The cards. Click them in order"),
    given,
    el("div", { class: "row" },
      el("button", { id: "sort", onclick: reporting(sort) }, "Let the model sort"),
      el("button", { id: "deal", onclick: () => deal() }, "New cards"),
      el("button", { id: "back", onclick: takeBack }, "Take back"),
      el("label", {}, doubles, " let a card come twice")),
    el("h3", {}, "You"), yourRow, yourWords,
    el("h3", {}, "The model"), modelRow, answer,
  );

  function nameOf(rank) {
    return `${SUITS[Math.floor(rank / numSecond)]} ${(rank % numSecond) + 1}`;
  }

  function vectorOf(rank) {
    return objects.data.subarray(size * rank, size * (rank + 1));
  }

  // The face of a card, and the vector that the model is given.
  function face(rank, isWrong = false) {
    const strip = el("canvas", { width: size, height: 1, class: "sort-vector" });
    const context = strip.getContext("2d");
    vectorOf(rank).forEach((x, i) => {
      const light = Math.round(255 / (1 + Math.exp(-1.5 * x)));
      context.fillStyle = `rgb(${light} ${light} ${light})`;
      context.fillRect(i, 0, 1, 1);
    });
    const colour = COLOURS[Math.floor(rank / numSecond)];
    return el("span", {
      class: `sort-face${isWrong ? " wrong" : ""}`, style: `color: ${colour}`,
    }, el("span", {}, SUITS[Math.floor(rank / numSecond)]),
    el("b", {}, `${(rank % numSecond) + 1}`), strip);
  }

  function sortedRow(places) {
    const right = sortedPlaces(ranks);
    return [...Array(NUM_CARDS).keys()].map((step) => {
      if (step >= places.length) return el("span", { class: "sort-face empty" });
      const rank = ranks[places[step]];
      return face(rank, rank !== ranks[right[step]]);
    });
  }

  function draw() {
    replace(given, ...ranks.map((rank, place) => {
      const step = yours.indexOf(place);
      const share = chances?.[place] ?? 0;
      return el("button", {
        id: `card${place}`, class: "sort-card",
        "aria-label": `${nameOf(rank)}${step < 0 ? "" : `, your number ${step + 1}`}`,
        "aria-disabled": `${step >= 0}`,
        onclick: () => take(place),
      }, face(rank), el("span", { class: "sort-share", title: percent(share) },
        el("i", { style: `height: ${100 * share}%` })));
    }));
    yourRow.replaceChildren(...sortedRow(yours));
    modelRow.replaceChildren(...sortedRow(models));
  }

  function judge(places) {
    const right = sortedPlaces(ranks);
    const wrong = places.filter((place, step) => ranks[place] !== ranks[right[step]]).length;
    return wrong ? `${wrong} of ten places are wrong.` : "All ten places are right.";
  }

  function take(place) {
    if (yours.includes(place)) return;
    yours.push(place);
    yourWords.textContent = yours.length === NUM_CARDS ? judge(yours) : "";
    draw();
  }

  function takeBack() {
    yours.pop();
    yourWords.textContent = "";
    draw();
  }

  function deal() {
    page.drop();
    isSorting = false;
    const deck = [...Array(numObjects).keys()];
    ranks = Array.from({ length: NUM_CARDS }, () =>
      deck.splice(randomInteger(deck.length), 1)[0]);
    if (doubles.checked) ranks[NUM_CARDS - 1] = ranks[0];
    yours = [];
    models = [];
    chances = null;
    yourWords.textContent = "";
    answer.textContent = doubles.checked
      ? "Outside what it was trained on: a card comes twice." : "";
    draw();
  }

  async function sort() {
    if (isSorting) return;
    isSorting = true;
    models = [];
    const sorted = ranks; // Other cards may be dealt meanwhile.
    const entities = tensor("float32", [1, NUM_CARDS, size],
      ranks.flatMap((rank) => Array.from(vectorOf(rank))));
    const logitsOf = async (places) => (await page.run({
      entities, places: tensor("int32", [1, NUM_CARDS], places),
    })).logits.data;
    try {
      for await (const { place, logits } of decode(NUM_CARDS, logitsOf)) {
        models.push(place);
        chances = softmax(logits);
        answer.textContent = `Number ${models.length}: ${nameOf(ranks[place])}, `
          + `${percent(chances[place])} sure.`;
        draw();
        await page.pause(PAUSE);
        if (sorted !== ranks) return;
      }
      chances = null;
      answer.textContent = `${judge(models)}${doubles.checked
        ? " Outside what it was trained on: a card comes twice." : ""}`;
      draw();
    } finally {
      if (sorted === ranks) isSorting = false;
    }
  }

  deal();
}
