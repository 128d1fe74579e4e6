// --- the known word that a misspelled one is nearest to
// How many letters are put in, left out, replaced, or swapped with the next one.
function distance(one, other) {
  let [before, last, row] = [[], [], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    [before, last, row] = [last, row, [i]];
    for (let j = 1; j <= other.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
  }
  return row[other.length];
}
// Null where more than a third of the letters would be wrong.
function nearest(word, known) {
  const far = (one) => distance(word, one.toLowerCase());
  const [best] = known.map((one) => [far(one), one]).sort((a, b) => a[0] - b[0]);
  return best && best[0] <= Math.ceil(word.length / 3) ? best[1] : null;
}
