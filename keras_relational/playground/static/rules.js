// Choose the symbols of a rule, and see which memories an ESBN reads.

import { decoded, el, paint, percent, replace, reporting } from "./page.js";

const NUM_SHOWN = 5;
const LENGTH = 9;

export async function show(root, page, described) {
  const { question, num_trained: numTrained, num_problems: numProblems } = described;
  const fillers = decoded(described.fillers);
  let numbers = Array(LENGTH).fill(0);
  let slot = 0;
  let reply = null;

  const rows = el("div");
  const answer = el("div", { id: "answer", class: "answer" });
  const read = el("div", { id: "read" });
  const palette = el("div", { class: "palette", style: "max-width: 40rem" });
  root.append(
    el("h2", {}, question),
    el("p", {}, "Click on a symbol of the problem, and then on the one that "
      + `shall take its place. The network was trained on ${numTrained} symbols,`
      + " with orange frames. All others are new to it."),
    el("div", { class: "columns" },
      el("div", {}, rows, answer,
        el("button", { id: "next", onclick: reporting(next) },
          "Another problem")),
      el("div", {}, el("h3", {}, "All symbols"), palette)),
    el("h3", {}, "Which memory each step reads"),
    el("p", { class: "quiet" }, "Each step writes a symbol of its own as the key "
      + "of what it sees. When it sees something again, it reads the key that "
      + "is bound to it."),
    read,
  );

  function glyph(number, attributes = {}) {
    const canvas = paint(el("canvas"), fillers, number);
    const trained = number < numTrained ? " trained" : "";
    return el("button", {
      class: `glyph${trained}`,
      title: `symbol ${number}`,
      ...attributes,
    }, canvas);
  }

  function slotGlyph(place) {
    return glyph(numbers[place], {
      id: `slot${place}`,
      "aria-label": place < NUM_SHOWN
        ? `Place ${place + 1} of the problem: symbol ${numbers[place]}`
        : `Option ${place - NUM_SHOWN + 1}: symbol ${numbers[place]}`,
      "aria-pressed": `${place === slot}`,
      onclick: () => { slot = place; draw(); },
    });
  }

  function draw() {
    const places = [...Array(LENGTH).keys()];
    replace(rows,
      el("h3", {}, "The problem"),
      el("div", { class: "row" }, ...places.slice(0, 3).map(slotGlyph)),
      el("div", { class: "row", style: "margin-top: 0.5rem" },
        ...places.slice(3, NUM_SHOWN).map(slotGlyph),
        el("div", { class: "question" }, "?")),
      el("h3", {}, "The options"),
      el("div", { class: "row" }, ...places.slice(NUM_SHOWN).map((place) => {
        const share = reply?.probabilities[place - NUM_SHOWN];
        return el("div", { class: "option" }, slotGlyph(place),
          el("div", { class: "quiet" },
            share === undefined ? "" : percent(share)));
      })),
    );
    replace(palette,
      ...[...Array(fillers.shape[0]).keys()].map((number) => glyph(number, {
        id: `symbol${number}`,
        "aria-pressed": `${number === numbers[slot]}`,
        onclick: reporting(() => choose(number)),
      })),
    );
  }

  async function choose(number) {
    numbers[slot] = number;
    slot = (slot + 1) % LENGTH;
    showReply(await page.ask({ fillers: numbers }));
  }

  async function next() {
    const problem = Math.floor(Math.random() * numProblems);
    showReply(await page.ask({ problem }));
  }

  function showReply(found) {
    reply = found;
    numbers = reply.fillers;
    draw();
    const best = Math.max(...reply.probabilities);
    const place = reply.probabilities.indexOf(best);
    const judged = reply.right === null
      ? " By the rule, none of the options is right, or several are."
      : reply.right === place ? " This is right."
        : ` Right would be number ${reply.right + 1}.`;
    answer.textContent = `Option ${place + 1}, ${percent(best)}.${judged}`;
    const header = numbers.map((number) =>
      el("th", {}, paint(el("canvas"), fillers, number)));
    read.replaceChildren(el("table", { class: "heat" },
      el("tr", {}, el("th", {}, "read at step"), ...header),
      ...reply.read.slice(0, LENGTH).map((weights, step) => el("tr", {},
        el("th", {}, `${step + 1}`),
        ...weights.map((weight) => el("td", {
          title: percent(weight),
          style: `background: rgb(47 111 222 / ${weight})`,
        })))),
    ));
  }

  await next();
}
