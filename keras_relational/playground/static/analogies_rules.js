// Problems of the Visual Analogy Extrapolation Challenge, and their images.
// An image has a level from 0 to 41 of each of four dimensions: x, y, size and
// brightness of a green square on grey.

const SIZE = 128; // Of an image before it is reduced.
const GREY = 128;
const NUM_LEVELS = 42;
const REGION = 7; // Levels of a region.

const centre = (level) => 43 + level;
const width = (level) => 3 + 2 * level;

function green(level) {
  const last = NUM_LEVELS - 1;
  return level === last ? 255 : Math.floor(102 + level * (153 / last));
}

// For each block of pixels in a line, how many of them the square covers.
function covered(position, size, imageSize) {
  const block = SIZE / imageSize;
  const first = Math.floor((2 * centre(position) - width(size)) / 2);
  const last = Math.floor((2 * centre(position) + width(size)) / 2);
  return Array.from({ length: imageSize }, (_, i) => Math.max(0,
    Math.min(last + 1, block * (i + 1)) - Math.max(first, block * i)));
}

// The pixels of images, imageSize × imageSize × 3 of each.
export function render(levels, imageSize) {
  const block = SIZE / imageSize;
  const area = block * block;
  const pixels = new Uint8Array(levels.length * imageSize * imageSize * 3);
  let at = 0;
  for (const [x, y, size, brightness] of levels) {
    const columns = covered(x, size, imageSize);
    const colour = [0, green(brightness), 0];
    for (const rows of covered(y, size, imageSize)) {
      for (const share of columns) {
        for (const value of colour) {
          pixels[at++] = Math.floor((GREY * area
            + (value - GREY) * rows * share + Math.floor(area / 2)) / area);
        }
      }
    }
  }
  return pixels;
}

// A problem: seven images that differ in one dimension, and which of them are
// A, B, C and D. A number from 0 to below 1 comes from `random` for each choice.
export function draw(regime, region, random) {
  const below = (n) => Math.floor(n * random());
  const dimension = below(4);
  let terms;
  do {
    const step = (below(2) ? 1 : -1) * (1 + below(5));
    const [a, c] = [below(REGION), below(REGION)];
    terms = a === c ? [-1] : [a, a + step, c, c + step];
  } while (terms.some((term) => term < 0 || term >= REGION));
  const others = [0, 1, 2, 3].map(() => below(REGION));
  const absolute = (level) => (regime === "translation"
    ? level + REGION * (region - 1) : level * region);
  const levels = Array.from({ length: REGION }, (_, level) =>
    others.map((other, i) => absolute(i === dimension ? level : other)));
  return { dimension, terms, levels };
}
