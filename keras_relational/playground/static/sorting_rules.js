// Sorting by a decoder that puts out one place after the other.

import { argmax } from "./networks.js";

// What a decoder has put out so far, one step late. It begins with the number
// of places, for nothing so far.
function shiftRight(places) {
  return [places.length, ...places.slice(0, -1)];
}

// The places of objects in order, one step after the other: at each step, the
// likeliest by `logitsOf(places)`, a promise of numbers for all steps. Yields
// the place and the numbers of the step.
export async function* decode(n, logitsOf) {
  const places = Array(n).fill(0);
  for (let step = 0; step < n; step++) {
    const logits = await logitsOf(shiftRight(places));
    const row = Array.from(logits.slice(n * step, n * (step + 1)));
    places[step] = argmax(row);
    yield { place: places[step], logits: row };
  }
}

// The places of numbers in ascending order.
export function sortedPlaces(numbers) {
  return [...numbers.keys()].sort((a, b) => numbers[a] - numbers[b]);
}
