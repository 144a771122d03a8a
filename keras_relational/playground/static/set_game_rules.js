// The rules of SET. A card has a value from 0 to 2 of each of four attributes:
// number, colour, shape and shading.

export const NUM_ATTRIBUTES = 4;
const TRIPLES = [];
for (let a = 0; a < 5; a++) {
  for (let b = a + 1; b < 5; b++) {
    for (let c = b + 1; c < 5; c++) TRIPLES.push([a, b, c]);
  }
}

// Whether each attribute is the same on all three cards, or differs on all.
function isSet(cards) {
  for (let attribute = 0; attribute < NUM_ATTRIBUTES; attribute++) {
    const values = new Set(cards.map((card) => card[attribute]));
    if (values.size === 2) return false;
  }
  return true;
}

// The places of three different cards of a hand of five that are a set, or null.
export function findSet(hand) {
  return TRIPLES.find((places) => {
    const cards = places.map((place) => hand[place]);
    return !twice(cards) && isSet(cards);
  }) ?? null;
}

// Whether a card is there twice. No hand of the deck has that.
export function twice(cards) {
  return new Set(cards.map(String)).size < cards.length;
}

// A hand as the model takes it: a 1 for the value of each attribute.
export function oneHot(hand) {
  return hand.flat().flatMap((value) => [0, 1, 2].map((x) => Number(x === value)));
}
