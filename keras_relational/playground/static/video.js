// A video, and how the model continues it.

import { decoded, el, paint, reporting } from "./page.js";

const COLOURS = ["#2f6fde", "#e07b1a", "#3a9d5d", "#9b4fc0"];
const PAUSE = 120; // Milliseconds between two frames.

export async function show(root, page, described) {
  const { num_frames: numFrames, min_given: minGiven, axes } = described;
  let number = 0;
  let reply = null;
  let frame = 0;
  let stopVideo = null; // A function, while the video plays.

  const given = el("input", {
    id: "given", type: "range", min: minGiven, max: numFrames - 1, value: 35,
    oninput: () => { label(); },
    onchange: reporting(refresh),
  });
  const givenText = el("span", { id: "givenText" });
  const canvases = ["true", "predicted"].map((name) =>
    el("canvas", { id: name, style: "width: 256px" }));
  const strips = el("div", { id: "strips", class: "frames" });
  const where = el("p", { id: "where", class: "quiet" });
  const play = el("button", { id: "play", onclick: toggle });
  root.append(
    el("h2", {}, "How does the video go on?"),
    el("p", {}, "A ball moves to and fro. The lamps below show along which axis "
      + "it will move next, and in the middle of the video it changes. At first "
      + "the model predicts each frame from the true ones before it. Then it "
      + "goes on from its own predictions, and after some five frames its "
      + "picture dissolves: it was trained to predict one frame."),
    el("div", { class: "columns" },
      el("figure", {}, canvases[0], el("figcaption", {}, "the video")),
      el("figure", {}, canvases[1],
        el("figcaption", {}, "what the model predicts"))),
    where,
    el("div", { class: "row" }, play,
      el("button", { id: "new", onclick: reporting(another) },
        "Another video"),
      el("label", {}, "true frames that it sees: ", given, givenText)),
    el("h3", {}, "Which schema moves the ball"),
    el("p", { class: "quiet" }, "A schema is one way to move, with weights of its "
      + "own. The model chooses one at each frame. Nobody tells it the axes."),
    strips,
  );

  function label() {
    givenText.textContent = ` ${given.value} of ${numFrames}`;
    play.textContent = stopVideo ? "Pause" : "Play";
  }

  async function refresh() {
    const request = { video: number, given: Number(given.value) };
    const found = await page.ask(request);
    reply = { ...found, true: decoded(found.true),
      predicted: decoded(found.predicted) };
    const lines = [["axis", reply.axes, (x) => axes[x]],
      ["schema", reply.schemata, (x) => `schema ${x + 1}`]];
    strips.replaceChildren(...lines.flatMap(([name, values, text]) => [
      el("span", { class: "quiet" }, name),
      el("div", { class: "strip", id: name }, ...values.map((value) => el("i", {
        title: text(value), style: `background: ${COLOURS[value]}`,
      }))),
    ]));
    frame = 0;
    draw();
  }

  function draw() {
    canvases.forEach((canvas, i) =>
      paint(canvas, i ? reply.predicted : reply.true, frame));
    const seen = frame <= Number(given.value);
    where.textContent = `Frame ${frame + 1}: `
      + (seen ? "the model goes by the true frames before it."
        : "the model goes by its own frames before it.");
    for (const strip of strips.querySelectorAll(".strip")) {
      [...strip.children].forEach((cell, i) =>
        cell.classList.toggle("now", i === frame));
    }
  }

  async function another() {
    number = Math.floor(Math.random() * 2 ** 31);
    await refresh();
  }

  function toggle() {
    if (stopVideo) {
      stopVideo();
      stopVideo = null;
    } else {
      stopVideo = page.repeat(next, PAUSE);
    }
    label();
  }

  function next() {
    if (!reply) return;
    frame = (frame + 1) % numFrames;
    draw();
  }

  toggle();
  await another();
}
