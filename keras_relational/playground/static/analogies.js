// Visual analogies: A is to B as C is to which of seven images?

import { el, paint, percent, replace, reporting } from "./page.js";
import { argmax, softmax, tensor } from "./networks.js";
import { draw as drawProblem, render } from "./analogies_rules.js";

export const title = "Analogies";
export const teaser = "A is to B as C is to what? Far beyond the range of training.";

const NAMES = {
  x: "position from left to right", y: "position from top to bottom",
  size: "size", brightness: "brightness",
};

export function thumbnail(context, seconds) {
  const sizes = [10, 22, 18, 30];
  const shown = Math.floor(seconds % 6);
  sizes.forEach((size, i) => {
    const x = 34 + 57 * i;
    context.fillStyle = "#808080";
    context.fillRect(x - 24, 51, 48, 48);
    if (i < 3 || shown > 3) {
      context.fillStyle = "rgb(0 170 0)";
      context.fillRect(x - size / 2, 75 - size / 2, size, size);
    } else {
      context.fillStyle = "#fff";
      context.font = "24px sans-serif";
      context.textAlign = "center";
      context.fillText("?", x, 84);
    }
  });
  context.fillStyle = "#9aa5b5";
  context.font = "16px sans-serif";
  context.textAlign = "center";
  [":", "=", ":"].forEach((sign, i) => context.fillText(sign, 62 + 57 * i, 80));
}

export async function show(root, page, described) {
  const { regime, dimensions, regions, image_size: imageSize } = described;
  let region = regions[0];
  let problem = null;
  let yours = null; // The level that you chose.
  let chances = null; // The model's, of each level.
  const tally = regions.map(() => ({ you: 0, model: 0, asked: 0 }));

  const terms = el("div", { class: "row analogy", id: "terms" });
  const options = el("div", { class: "row", id: "options" });
  const answer = el("p", { id: "answer", class: "answer analogy-answer", role: "status" });
  const words = el("p", { id: "words", class: "analogy-words" });
  const table = el("div", { id: "tally" });
  const chooser = el("div", { class: "row", id: "regions" });
  root.append(
    el("h2", {}, "A is to B as C is to what?"),
    el("p", {}, "The squares differ in one way: position, size or brightness. The "
      + "step from A to B is the step from C to the answer. Choose one, and see "
      + "what the model says. It was trained on region 1; in region 6 all squares "
      + "are farthest from those of training."),
    el("h3", {}, "Region"), chooser,
    terms,
    el("h3", {}, "Which one?"), options,
    answer, words,
    el("button", { id: "next", onclick: () => next() }, "Another problem"),
    el("h3", {}, "So far"), table,
  );

  function picture(level, label) {
    const pixels = render([problem.levels[level]], imageSize);
    const image = { shape: [1, imageSize, imageSize, 3], data: pixels };
    return paint(el("canvas", { role: "img", "aria-label": label }), image);
  }

  // In words, where the square of a level stands on the problem's dimension.
  function nameOf(level) {
    const absolute = problem.levels[level][problem.dimension];
    return `${dimensions[problem.dimension]} ${absolute}`;
  }

  function drawAll() {
    const [a, b, c] = problem.terms;
    const parts = [[a, "A"], [":"], [b, "B"], ["="], [c, "C"], [":"]];
    replace(chooser, ...regions.map((number) => el("button", {
      id: `region${number}`, "aria-pressed": `${number === region}`,
      onclick: () => { region = number; next(); },
    }, `${number}${number === 1 ? " (training)" : ""}`)));
    terms.replaceChildren(...parts.map(([level, name]) => (name
      ? el("figure", {}, picture(level, `${name}: ${nameOf(level)}`),
        el("figcaption", {}, name))
      : el("b", {}, level))), el("b", { class: "question" }, "?"));
    replace(options, ...problem.levels.map((_, level) => {
      const marks = [
        yours === level && "you", chances && argmax(chances) === level && "model",
        chances && level === problem.terms[3] && "right",
      ].filter(Boolean);
      return el("button", {
        id: `option${level}`, class: "analogy-option",
        "aria-label": `Option ${level + 1}: ${nameOf(level)}`
          + (marks.length ? `, ${marks.join(", ")}` : ""),
        onclick: reporting(() => choose(level)),
      }, picture(level, ""), el("span", { class: "quiet" },
        chances ? percent(chances[level]) : " "),
      el("b", { class: marks.includes("right") ? "right" : "" }, marks.join(", ") || " "));
    }));
    table.replaceChildren(el("table", { class: "analogy-tally" },
      el("tr", {}, el("th", { scope: "row" }, "region"),
        ...regions.map((number) => el("th", { scope: "col" }, `${number}`))),
      ...[["you", "you"], ["model", "the model"]].map(([who, name]) => el("tr", {},
        el("th", { scope: "row" }, name),
        ...tally.map((x) => el("td", {}, x.asked ? `${x[who]} of ${x.asked}` : "–"))))));
  }

  function next() {
    page.drop();
    problem = drawProblem(regime, region, Math.random);
    yours = chances = null;
    answer.textContent = "";
    words.textContent = "";
    drawAll();
  }

  async function choose(level) {
    if (yours !== null) return;
    yours = level;
    const { logits } = await page.run({
      images: tensor("uint8", [1, 7, imageSize, imageSize, 3],
        render(problem.levels, imageSize)),
      context: tensor("int32", [1, 3], problem.terms.slice(0, 3)),
      candidates: tensor("int32", [1, 7], [0, 1, 2, 3, 4, 5, 6]),
    });
    chances = softmax(logits.data);
    const right = problem.terms[3];
    const models = argmax(chances);
    const count = tally[regions.indexOf(region)];
    count.asked += 1;
    count.you += Number(level === right);
    count.model += Number(models === right);
    const judged = (chosen) => (chosen === right ? "right" : `wrong, ${nameOf(chosen)}`);
    answer.textContent = `You: ${judged(level)}. The model: ${judged(models)}, `
      + `${percent(chances[models])} sure.`;
    const [a, b] = problem.terms;
    const factor = regime === "scale" ? region : 1;
    const step = factor * (b - a);
    words.textContent = `They differ in ${NAMES[dimensions[problem.dimension]]}. The step `
      + `from A to B is ${step > 0 ? "+" : "−"}${Math.abs(step)} levels, and so is the `
      + `step from C to the answer.${region > regions[0]
        ? " Outside what it was trained on: all levels of this region are new to it." : ""}`;
    drawAll();
  }

  next();
}
