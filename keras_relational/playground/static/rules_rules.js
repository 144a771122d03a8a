// The right options of problems of rules. A problem is nine numbers of symbols:
// five of the problem and four options.

export const NUM_SHOWN = 5;
export const LENGTH = 9;

// The symbols that complete the problem by the rule, or none.
function completions(task, [a, b, c, d, e]) {
  if (task === "distribution_of_three") {
    const missing = [a, b, c].filter((x) => x !== d && x !== e);
    return new Set([a, b, c]).size === 3 && d !== e && missing.length === 1
      ? missing : [];
  }
  if ((a === b) !== (d === e)) return [];
  // The third symbol repeats the first, the second, or both.
  return [...new Set([[a, d], [b, e]].filter(([x]) => x === c).map(([, y]) => y))];
}

// The place of the right option, or null if none or several are right.
export function rightOption(task, numbers) {
  const right = completions(task, numbers);
  const places = [...numbers.slice(NUM_SHOWN).keys()].filter((place) =>
    right.includes(numbers[NUM_SHOWN + place]));
  return places.length === 1 ? places[0] : null;
}

// Of the symbols that a step sees, those that an earlier step saw: for each
// step the number of the first step with its symbol, or null.
export function seenBefore(numbers) {
  return numbers.map((number, step) => {
    const first = numbers.indexOf(number);
    return first < step ? first : null;
  });
}
