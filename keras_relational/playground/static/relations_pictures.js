// Pictures of boards of the Relations Game, and of what heads look at.

import { SIZE, TILE, inColour, onTile } from "./relations_rules.js";

const BLUE = "#5b93ff";
const ORANGE = "#ff9a3c";
const STEP = 6; // The encoder sees 12 by 12 pixels at each of 5 by 5 places.

// The middle of what a place sees, in pixels of the board.
export function centre(place) {
  return [place % 5, Math.floor(place / 5)].map((p) => STEP * (p + 1));
}

export function paintBoard(context, scale, objects, colours) {
  context.globalAlpha = 1;
  context.fillStyle = "#000";
  context.fillRect(0, 0, SIZE * scale, SIZE * scale);
  context.fillStyle = "#2b303a";
  for (const p of [TILE, 2 * TILE]) {
    context.fillRect(p * scale - 1, 0, 2, SIZE * scale);
    context.fillRect(0, p * scale - 1, SIZE * scale, 2);
  }
  for (const { cells, x, y } of objects) {
    cells.forEach((colour, cell) => {
      if (colour < 0) return;
      context.fillStyle = `rgb(${colours[colour].join(" ")})`;
      const left = x + 3 * (cell % 3);
      const top = y + 3 * Math.floor(cell / 3);
      context.fillRect(left * scale, top * scale, 3 * scale, 3 * scale);
    });
  }
}

// Where a head looks: the weights of its two maps.
export function paintMaps(context, scale, places) {
  places.forEach(({ weights }, i) => {
    context.fillStyle = [BLUE, ORANGE][i];
    weights.forEach((weight, place) => {
      const [x, y] = centre(place).map((p) => (p - STEP) * scale);
      context.globalAlpha = 0.55 * weight;
      context.fillRect(x, y, TILE * scale, TILE * scale);
    });
  });
  context.globalAlpha = 1;
}

export function isSpread({ weights, most }) {
  return weights[most] < 0.5;
}

// A line between the two places at which a head looks most, `strength` from 0
// to 1. An end is hollow if the head looks at several places.
export function paintLine(context, scale, places, strength) {
  const ends = places.map(({ most }) => centre(most).map((x) => x * scale));
  const isOne = places[0].most === places[1].most;
  const colours = context.createLinearGradient(...ends[0], ...ends[1]);
  colours.addColorStop(0.3, BLUE);
  colours.addColorStop(0.7, ORANGE);
  const width = (0.35 + 0.9 * strength) * scale;
  context.globalAlpha = 0.45 + 0.55 * strength;
  for (const [extra, style] of [[0.5 * scale, "#000b"], [0, colours]]) {
    context.strokeStyle = style;
    context.lineWidth = width + extra;
    context.beginPath();
    ends.forEach((end) => context.lineTo(...end));
    context.stroke();
  }
  context.globalAlpha = 1;
  ends.forEach(([x, y], i) => {
    // A place that is looked at twice has a blue ring around an orange dot.
    const size = (isOne && i === 0 ? 2.1 : 1.2) * scale;
    context.fillStyle = isSpread(places[i]) ? "#000" : [BLUE, ORANGE][i];
    for (const [style, width] of [["#fff", 0.7], [[BLUE, ORANGE][i], 0.4]]) {
      context.strokeStyle = style;
      context.lineWidth = width * scale;
      context.beginPath();
      context.arc(x, y, size, 0, 2 * Math.PI);
      context.stroke();
    }
    context.fill();
  });
}

// The lines of heads, the strongest on top, and the heads' numbers beside them.
export function paintHeads(context, scale, heads) {
  const numbers = new Map();
  for (const { head, places, strength } of [...heads].reverse()) {
    paintLine(context, scale, places, strength);
    const ends = places.map(({ most }) => most).sort((a, b) => a - b);
    numbers.set(`${ends}`, [head, ...(numbers.get(`${ends}`) ?? [])]);
  }
  context.font = `bold ${1.7 * scale}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = "#fff";
  context.strokeStyle = "#000";
  context.lineJoin = "round";
  context.lineWidth = 0.5 * scale;
  const taken = [];
  for (const [ends, found] of numbers) {
    const [a, b] = ends.split(",").map((place) => centre(Number(place)));
    const spots = `${a}` === `${b}` ? [[a[0], a[1] - 3.6]]
      : [0.5, 0.35, 0.65, 0.25].map((share) =>
        a.map((p, i) => p + share * (b[i] - p)));
    const isFree = ([x, y]) => !taken.some((other) =>
      Math.abs(other[0] - x) < 5 && Math.abs(other[1] - y) < 2);
    const spot = spots.find(isFree) ?? spots[0];
    taken.push(spot);
    const text = [found.join(" "), ...spot.map((p) => p * scale)];
    context.strokeText(...text);
    context.fillText(...text);
  }
}

const P = [1, 1, 0, 1, 1, 0, 1, 0, 0];
const X = [0, 1, 0, 1, 1, 1, 0, 1, 0];
const SCENE = [
  [[64, 192, 144], [192, 144, 64]],
  [onTile(inColour(P, 0), 0), onTile(inColour(X, 1), 4)],
];

// One object goes to the end of a line and back; then the answer changes.
export function thumbnail(context, seconds) {
  const phase = seconds % 6;
  const share = Math.min(1, Math.max(0, phase < 5 ? phase - 0.8 : 6 - phase));
  const eased = share * share * (3 - 2 * share);
  const last = onTile(inColour(P, 0), 8);
  last.y -= Math.round(2 * TILE * (1 - eased));
  const isThere = share === 1;
  const scale = 126 / SIZE;
  context.save();
  context.translate(12, 12);
  paintBoard(context, scale, [...SCENE[1], last], SCENE[0]);
  const [x, y] = [last.x + 5, last.y + 5];
  const place = 5 * Math.round(y / STEP - 1) + Math.round(x / STEP - 1);
  const places = [0, place].map((most) => ({ most, weights: { [most]: 1 } }));
  paintLine(context, scale, places, isThere ? 1 : 0.3);
  context.restore();
  context.fillStyle = "#e6e9ef";
  context.font = "bold 24px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillText(isThere ? "Yes" : "No", 189, 70);
  context.fillStyle = "#3a404a";
  context.fillRect(154, 86, 70, 8);
  context.fillStyle = "#2f6fde";
  context.fillRect(154, 86, 35 + (isThere ? 33 : -30), 8);
  context.fillStyle = "#9aa5b5";
  context.font = "12px system-ui, sans-serif";
  context.fillText("is one between", 189, 114);
  context.fillText("two equal ones?", 189, 129);
}
