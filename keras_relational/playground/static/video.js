// A video of a ball, and how a network continues it.

import { el, isStill, letGo, paint, reporting } from "./page.js";
import { argmax, tensor } from "./networks.js";
import {
  SIZE, contingency, framesOf, newVideo, outside, rollOut, stepped,
} from "./video_rules.js";

export const title = "Video";
export const teaser = "A ball moves to and fro. See how a network continues it, "
  + "and by which of its schemata.";

const PAUSE = 130; // Milliseconds between two frames.
const DRAG = 90; // The same while the ball is dragged.
const STEP = 3; // Pixels of a step by a button.
const GIVEN = 34; // True frames at first.
const NUM_SAMPLES = 3; // Videos by which schemata are matched to axes.
const WAYS = { left: [0, -1], up: [1, -1], down: [1, 1], right: [0, 1] };
const ARROWS = { left: "←", up: "↑", down: "↓", right: "→" };

export async function show(root, page, world) {
  const { num_frames: length, axes: names, min_given: least } = world;
  let video = null; // {centres, axes, frames, isOwn}
  let result = null; // What the network predicts, once it is there.
  let matched = null; // The axis of each schema.
  let frame = 0;
  let stopVideo = null; // Functions, while the video plays or the ball is dragged.
  let stopDrag = null;
  let pointer = null;
  let there = 0; // Frames that the network has predicted.
  let cache = new Map(); // Results for the video, by the frames given.

  const truth = el("canvas", {
    id: "true", role: "img", "aria-label": "The video. Drag to move the ball yourself.",
  });
  const predicted = el("canvas", {
    id: "predicted", role: "img", "aria-label": "What the network predicts",
  });
  const where = el("p", { id: "where", class: "told" });
  const play = el("button", { id: "play", onclick: toggle });
  const scrubber = el("input", {
    id: "frame", type: "range", min: 1, max: length, value: 1,
    oninput: () => { stop(); frame = Number(scrubber.value) - 1; draw(); },
  });
  const given = el("input", {
    id: "given", type: "range", min: least, max: length - 1, value: GIVEN,
    oninput: label, onchange: reporting(refresh),
  });
  const givenText = el("span", { id: "given-text" });
  const strips = ["axis", "schema"].map((id) =>
    el("div", { class: "strip", id, role: "img" },
      ...Array.from({ length }, () => el("i"))));
  const agreement = el("p", { id: "agreement", role: "status" });
  const matching = el("ul", { id: "matching", class: "quiet" });
  const strange = el("p", { id: "strange", role: "status" });

  root.append(
    el("h2", {}, "How does the video go on?"),
    el("p", {}, "A ball moves to and fro. The lamp that is lit, at the lower left, "
      + `shows along which axis its next step goes: ${names.join(", ")}. In the `
      + "middle of the video the axis changes. The network, SCOFF, was trained to "
      + "predict the next frame from all frames before it."),
    el("div", { class: "columns" },
      el("div", { class: "watch" },
        el("div", { class: "pair" },
          el("figure", {}, truth, el("figcaption", {}, "the video")),
          el("figure", {}, predicted, el("figcaption", {}, "what the network predicts"))),
        el("div", { class: "row", onclick: letGo }, play,
          el("button", { id: "new", onclick: reporting(another) }, "Another video"),
          el("label", { class: "slider" }, "frame ", scrubber)),
        where,
        el("div", { class: "row" },
          el("label", { class: "slider" }, "true frames that it is given ", given),
          givenText),
        el("p", { class: "quiet" }, "After these frames it goes on from its own "
          + "predictions, and its errors add up.")),
      el("div", { class: "own" },
        el("h3", {}, "Move the ball yourself"),
        el("p", {}, "Drag the ball in the picture of the video, or give it steps by "
          + "these buttons. The network goes on from there. The lamps are part of the "
          + "picture: they follow your steps."),
        el("div", { class: "row" }, ...Object.keys(WAYS).map((way) => el("button", {
          id: `own-${way}`, class: "arrow", "aria-label": `The ball moves: ${way}`,
          onclick: () => { moved(...WAYS[way], STEP); finish(); },
        }, ARROWS[way]))),
        strange)),
    el("h3", {}, "Which schema moves the ball"),
    el("p", {}, "A schema is one way to move, with weights of its own. The "
      + "network chooses one at each frame, and nobody told it the axes. A schema "
      + "has the colour of the axis with which it goes most."),
    el("div", { class: "frames" },
      el("span", {}, "axis"), strips[0],
      el("span", {}, "schema"), strips[1]),
    el("p", { class: "row quiet" }, ...names.map((name, axis) =>
      el("span", {}, el("i", { class: `key ${ofAxis(axis)}` }), name)),
    el("span", {}, el("i", { class: "key differs" }), "they differ")),
    agreement, matching,
  );

  function label() {
    givenText.textContent = `${given.value} of ${length}`;
    play.textContent = stopVideo ? "Pause" : "Play";
  }

  // The network's outputs for all frames of a video, those to come black.
  async function run(pixels) {
    const { image_size: size } = world;
    const { predicted: x, schemata } = await page.run({
      frames: tensor("uint8", [1, length, size, size, 1], pixels),
    });
    return { predicted: x.data, schemata: schemata.data };
  }

  // Finds with which axis each schema goes most, in some videos.
  async function match() {
    const pairs = [];
    for (let i = 0; i < NUM_SAMPLES; i++) {
      const sample = newVideo(world, Math.random);
      const { schemata } = await rollOut(world, framesOf(world, sample), run);
      schemata.forEach((schema, t) => pairs.push([schema, sample.axes[t]]));
    }
    const counts = contingency(world, pairs);
    matched = counts.map((row) => (Math.max(...row) ? argmax(row) : null));
    matching.replaceChildren(...counts.map((row, schema) => el("li", {},
      matched[schema] === null ? `Schema ${schema + 1} is never chosen.`
        : `Schema ${schema + 1} goes with ${names[matched[schema]]} steps: in `
          + `${row[matched[schema]]} of its ${row.reduce((a, b) => a + b)} frames `
          + `of ${NUM_SAMPLES} videos.`)));
  }

  async function refresh() {
    page.drop();
    const number = Math.min(Number(given.value), video.frames.length);
    result = cache.get(number) ?? null;
    there = 0;
    redraw();
    if (result) return;
    if (!matched) await match();
    const found = await rollOut(world, video.frames.slice(0, number), run, (sum) => {
      there = sum;
      where.textContent = inWords();
    });
    result = { ...found, number };
    cache.set(number, result);
    redraw();
  }

  function redraw() {
    drawStrips();
    draw();
  }

  function draw() {
    label();
    scrubber.value = frame + 1;
    const { image_size: size } = world;
    const black = new Uint8Array(size * size);
    const images = [video.frames[frame], result?.predicted[frame - 1]];
    [truth, predicted].forEach((canvas, i) =>
      paint(canvas, { shape: [1, size, size, 1], data: images[i] ?? black }));
    truth.className = ofAxis(video.axes[frame]);
    predicted.className = ofAxis(result && matched[result.schemata[frame]]);
    where.textContent = inWords();
    for (const strip of strips) {
      [...strip.children].forEach((cell, i) =>
        cell.classList.toggle("now", i === frame));
    }
  }

  function inWords() {
    if (!result) return `The network predicts: ${there} of ${length} frames.`;
    const own = video.frames[frame] ? "" : " Your own frames have ended.";
    const source = frame === 0
      ? "the network has seen nothing before it"
      : frame <= result.number
        ? "predicted from the true frames before it"
        : "predicted from the network’s own frames";
    const schema = result.schemata[frame];
    const axis = video.axes[frame];
    const lamp = axis === undefined ? "" : ` The lamp says ${names[axis]}, and`;
    return `Frame ${frame + 1}: ${source}.${own}${lamp} the network chooses `
      + `schema ${schema + 1}, for ${names[matched[schema]] ?? "no axis"}.`;
  }

  function drawStrips() {
    const ofSchema = (schema) => matched?.[schema] ?? null;
    const rows = [
      Array.from({ length }, (_, i) => video.axes[i] ?? null),
      Array.from({ length }, (_, i) => (result ? ofSchema(result.schemata[i]) : null)),
    ];
    const differs = (i) => result && rows[0][i] !== null && rows[0][i] !== rows[1][i];
    rows.forEach((axes, row) => axes.forEach((axis, i) => {
      const cell = strips[row].children[i];
      cell.className = ofAxis(axis);
      cell.classList.toggle("past", Boolean(result) && i >= result.number);
      cell.classList.toggle("differs", row === 1 && Boolean(differs(i)));
      cell.title = axis === null ? "" : `frame ${i + 1}: ${names[axis]}`;
    }));
    strips.forEach((strip, row) => strip.setAttribute("aria-label",
      `${row ? "The axis of the schema" : "The axis"} at each frame: `
      + rows[row].map((axis) => names[axis] ?? "none").join(", ")));
    if (!result) return;
    const known = video.axes.length;
    const odd = rows[0].map((_, i) => i).filter(differs).map((i) => i + 1);
    const text = odd.length
      ? `Axis and schema agree at ${known - odd.length} of ${known} frames, `
        + `not at ${odd.join(", ")}.`
      : `Axis and schema agree at all ${known} frames.`;
    if (agreement.textContent !== text) agreement.textContent = text;
  }

  function begin(next, isOwn) {
    page.drop();
    video = { ...next, frames: framesOf(world, next), isOwn };
    cache = new Map();
    result = null;
    there = 0;
    agreement.textContent = "";
    frame = isOwn ? video.frames.length - 1 : 0;
    given.max = isOwn ? Math.max(least, video.frames.length) : length - 1;
    if (isOwn) given.value = given.max;
  }

  async function another() {
    drop();
    begin(newVideo(world, Math.random), false);
    given.value = GIVEN;
    strange.textContent = "";
    if (!stopVideo && !isStill.matches) toggle();
    await refresh();
  }

  function toggle() {
    if (stopVideo) {
      stop();
    } else {
      stopVideo = page.repeat(() => {
        frame = (frame + 1) % length;
        draw();
      }, PAUSE);
    }
    label();
  }

  function stop() {
    stopVideo?.();
    stopVideo = null;
  }

  // A video of one's own, with one step more. The first begins where the ball
  // is now.
  function moved(axis, way, size) {
    stop();
    if (!video.isOwn) {
      const at = Math.min(frame, video.centres.length - 1);
      begin({ centres: [video.centres[at]], axes: [axis] }, true);
    }
    const next = stepped(world, video, axis, way, size);
    if (next) begin(next, true);
    redraw();
    strange.textContent = next ? "" : "There is no room for this step.";
  }

  const finish = reporting(async () => {
    if (video.frames.length < least) return;
    const found = outside(world, video);
    if (found.length) {
      strange.textContent = "Outside what it was trained on: "
        + `${found.join("; ")}.`;
    }
    await refresh();
  });

  function place({ offsetX, offsetY }) {
    const scale = SIZE / truth.clientWidth;
    return [offsetX * scale, offsetY * scale];
  }

  page.on(truth, "pointerdown", (event) => {
    event.preventDefault();
    if (stopDrag) return; // A second finger.
    truth.setPointerCapture(event.pointerId);
    pointer = place(event);
    stop();
    stopDrag = page.repeat(() => {
      const last = (video.isOwn ? video.centres : [video.centres[frame]]).at(-1);
      const [x, y] = pointer.map((to, i) => to - last[i]);
      const axis = Math.abs(x) > Math.abs(y) ? 0 : 1;
      const away = axis ? y : x;
      if (Math.abs(away) >= 2) {
        moved(axis, Math.sign(away), Math.min(4, Math.abs(away)));
      }
    }, DRAG);
  });
  page.on(truth, "pointermove", (event) => {
    if (stopDrag) pointer = place(event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    page.on(truth, name, () => {
      if (stopDrag) {
        drop();
        if (video.isOwn) finish();
      }
    });
  }

  function drop() {
    stopDrag?.();
    stopDrag = null;
  }

  page.onKey((event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !video) return;
    event.preventDefault();
    stop();
    frame = (frame + step + length) % length;
    draw();
  });

  await another();
}

// The class of what has the colour of an axis, if there is one.
function ofAxis(axis) {
  return axis === null || axis === undefined ? "none" : `axis${axis}`;
}

// A ball that moves to and fro on two axes, in the colours of its schemata.
export function thumbnail(context, seconds) {
  const time = seconds % 6;
  const triangle = (x) => 1 - Math.abs((x % 2) - 1);
  const isLate = time >= 3;
  const colours = ["#2f6fde", "#e07b1a"];
  const x = isLate ? triangle(3 * 0.7) : triangle(0.7 * time);
  const y = isLate ? triangle(0.35 + 0.7 * (time - 3)) : 0.35;
  context.fillStyle = "#fff";
  disc(35 + 170 * x, 20 + 65 * y, 11);
  [0, 1].forEach((axis) => {
    context.fillStyle = axis === Number(isLate) ? "#fff" : "#50545e";
    disc(28 + 26 * axis, 110, 8);
  });
  for (let i = 0; i < 40; i++) {
    context.fillStyle = colours[Number(i >= 20)];
    context.globalAlpha = i / 40 <= time / 6 ? 1 : 0.25;
    context.fillRect(20 + 5 * i, 132, 5, 8);
  }

  function disc(...place) {
    context.beginPath();
    context.arc(...place, 0, 2 * Math.PI);
    context.fill();
  }
}
