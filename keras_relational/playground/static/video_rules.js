// Videos of a ball that moves to and fro, as datasets/single_ball.py makes
// them, and how a network continues them.
//
// A world is what Python's `describe` says. A video is {centres, axes}: where
// the ball is at each frame, in pixels of 64 by 64, and along which axis its
// next step goes. The lamp of that axis is lit.

import { argmax } from "./networks.js";

export const SIZE = 64;
const RADIUS = 4; // Of the ball.
const BALL = 255;
const [ON, OFF] = [255, 80]; // Of the lamps.
const SPEEDS = [2, 4];
const MOVES = [[1, 0], [0, 1], [1, 1]];
const float = Math.fround;

// The smallest and the largest place of a ball, from the left and the top. It
// stays above the lamps.
export function room({ bulb_radius: radius }) {
  return [[RADIUS, SIZE - RADIUS], [RADIUS, SIZE - 6 - 2 * radius]];
}

// The axis of each step, which changes once, in the middle.
function axesOf({ axes, num_frames: length }, random) {
  const first = Math.floor(random() * axes.length);
  const further = 1 + Math.floor(random() * (axes.length - 1));
  return Array.from({ length }, (_, i) =>
    (i < Math.floor((length + 1) / 2) ? first : (first + further) % axes.length));
}

// A new video. `random` returns numbers from 0 to below 1.
export function newVideo(world, random) {
  const axes = axesOf(world, random);
  const speed = SPEEDS[0] + random() * (SPEEDS[1] - SPEEDS[0]);
  const start = room(world).map(([low, high]) => random() * 2 * (high - low));
  return { axes, centres: oscillation(world, axes, speed, start) };
}

// The centres of a ball that turns at the edges. `start` is how far along its
// way to and fro, of twice the room, the ball is at first.
export function oscillation(world, axes, speed, start) {
  const gone = [0, 0];
  return axes.map((axis) => {
    const centre = room(world).map(([low, high], i) => {
      const path = (start[i] + gone[i]) % (2 * (high - low));
      return low + (high - low) - Math.abs(path - (high - low));
    });
    MOVES[axis].forEach((moves, i) => { gone[i] += speed * moves; });
    return centre;
  });
}

// One frame, of image_size × image_size pixels.
function frameOf(world, centre, axis) {
  const { image_size: size, bulb_radius: radius, axes } = world;
  const image = new Uint8Array(SIZE * SIZE);
  drawDisc(image, centre, RADIUS, BALL);
  axes.forEach((_, number) => {
    const bulb = [(2 * number + 1) * (radius + 1), SIZE - 1 - radius];
    drawDisc(image, bulb, radius, number === axis ? ON : OFF);
  });
  return downsample(image, size);
}

// All frames of a video.
export function framesOf(world, { centres, axes }) {
  return centres.map((centre, i) => frameOf(world, centre, axes[i]));
}

// As `draw` of datasets/shapes.py, in the same numbers of 32 bits.
function drawDisc(image, [x, y], radius, colour) {
  const range = (middle) => [
    Math.max(0, Math.floor(middle - radius - 1)),
    Math.min(SIZE, Math.ceil(middle + radius + 1)),
  ];
  const [left, right] = range(x);
  const [top, bottom] = range(y);
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) {
      const [dx, dy] = [float(column + 0.5 - x), float(row + 0.5 - y)];
      const distance = float(Math.sqrt(float(float(dx * dx) + float(dy * dy))));
      const inside = float(float(radius - distance) + 0.5);
      const share = Math.min(Math.max(inside, 0), 1);
      const old = image[row * SIZE + column];
      const added = float(float(colour - old) * share);
      image[row * SIZE + column] = float(float(added + old) + 0.5);
    }
  }
}

function downsample(image, size) {
  const side = SIZE / size;
  const small = new Uint8Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      let sum = 0;
      for (let i = 0; i < side * side; i++) {
        const [r, c] = [row * side + Math.floor(i / side), column * side + i % side];
        sum += image[r * SIZE + c];
      }
      small[row * size + column] =
        Math.floor((sum + Math.floor(side ** 2 / 2)) / side ** 2);
    }
  }
  return small;
}

// Continues frames by a network's own predictions, up to `world.num_frames`.
// `run` takes the uint8 pixels of all frames, those to come zero, since what
// comes later changes no output. It returns `predicted`, pixels from 0 to 1 of
// the frame after each, and `schemata`, scores. `progress` is called with the
// number of frames that are there.
//
// Returns `predicted`, one frame fewer than a video has, the first of them the
// second frame of the video; and `schemata`, the schema of each frame.
export async function rollOut(world, frames, run, progress = () => {}) {
  const { num_frames: length, num_schemata: count } = world;
  const pixels = frames[0].length;
  const seen = new Uint8Array(length * pixels);
  frames.forEach((frame, i) => seen.set(frame, i * pixels));
  for (let there = frames.length; ; there++) {
    progress(there);
    const outputs = await run(seen);
    const next = (i) => Uint8Array.from(
      outputs.predicted.subarray(i * pixels, (i + 1) * pixels),
      (x) => Math.round(255 * Math.min(Math.max(x, 0), 1)),
    );
    if (there >= length) {
      return {
        predicted: Array.from({ length: length - 1 }, (_, i) => next(i)),
        schemata: Array.from({ length }, (_, i) => {
          const scores = outputs.schemata.subarray(i * count, (i + 1) * count);
          return argmax(scores);
        }),
      };
    }
    seen.set(next(there - 1), there * pixels);
  }
}

// How often each schema and each axis come together: [schema][axis].
export function contingency({ num_schemata: schemata, axes }, pairs) {
  const counts = Array.from({ length: schemata }, () => Array(axes.length).fill(0));
  for (const [schema, axis] of pairs) counts[schema][axis] += 1;
  return counts;
}

// A video of one's own with one step more, or null where there is no room.
// `way` is 1 or −1, and `length` the length of the step.
export function stepped(world, { centres, axes }, axis, way, length) {
  const last = centres.at(-1);
  const next = last.map((x, i) => {
    const [low, high] = room(world)[i];
    return Math.min(Math.max(x + way * length * MOVES[axis][i], low), high);
  });
  const gone = Math.max(...next.map((x, i) => Math.abs(x - last[i])));
  if (gone < 1 || centres.length >= world.num_frames - 1) return null;
  // The lamp of a frame shows its next step; nobody knows that of the last.
  return { centres: [...centres, next], axes: [...axes.slice(0, -1), axis, axis] };
}

// What in a video no training video has, in words.
export function outside(world, { centres, axes }) {
  const steps = centres.slice(1).map((centre, i) =>
    centre.map((x, side) => x - centres[i][side]));
  // Beside an edge a step may be shorter, for the ball turns there.
  const lengths = steps
    .filter((step, i) => step.every((move, side) => !move || (
      isInside(world, centres[i][side], side)
      && isInside(world, centres[i + 1][side], side))))
    .map((step) => Math.max(...step.map(Math.abs)));
  const found = [];
  const changes = axes.filter((axis, i) => i && axis !== axes[i - 1]).length;
  if (changes > 1) found.push(`the axis changes ${changes} times, not once`);
  const turns = steps.some((step, i) => i && step.some((move, side) =>
    move * steps[i - 1][side] < 0 && isInside(world, centres[i][side], side)));
  if (turns) found.push("the ball turns before it comes to an edge");
  const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
  if (most - least > 0.5) found.push("its speed is not always the same");
  return found;
}

function isInside(world, x, side) {
  const [low, high] = room(world)[side];
  return x - low > SPEEDS[1] && high - x > SPEEDS[1];
}
