// Which known names a mistyped name may have meant. Pure.
// It must not know what the names are of.

/** Number of single-character edits (insert, delete, replace, swap of neighbours) from one text to another. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replace = (last[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const best = Math.min(replace, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(swapped ? Math.min(best, (beforeLast[column - 2] ?? 0) + 1) : best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}

/** Names longer than this are compared by their head, which bounds the work. */
const COMPARED_LENGTH = 128;

const afterSlash = (name: string) => name.slice(name.indexOf('/') + 1);

function distance(name: string, candidate: string): number {
  const [a, b] = [name.slice(0, COMPARED_LENGTH).toLowerCase(), candidate.slice(0, COMPARED_LENGTH).toLowerCase()];
  // The right model under a wrong or missing provider is nearer than any spelling.
  if (afterSlash(a) === afterSlash(b)) return 0.5;
  return editDistance(a, b);
}

/**
 * Candidates near to `name`, nearest first, ties in alphabetical order; at most `limit`. A candidate is near when at most a
 * third of its characters differ (two at least), or when it names the same model under another provider.
 */
export function nearestNames(name: string, candidates: Iterable<string>, limit = 3): readonly string[] {
  const near: { candidate: string; edits: number }[] = [];
  for (const candidate of new Set(candidates)) {
    if (candidate === name) continue;
    const edits = distance(name, candidate);
    if (edits <= Math.max(2, Math.floor(candidate.length / 3))) near.push({ candidate, edits });
  }
  near.sort((a, b) => a.edits - b.edits || (a.candidate < b.candidate ? -1 : 1));
  return near.slice(0, limit).map(({ candidate }) => candidate);
}

/** `; did you mean "a" or "b"?` for the nearest names, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const names = nearestNames(name, candidates).map((candidate) => `"${candidate}"`);
  if (names.length === 0) return '';
  const last = names.at(-1) ?? '';
  return `; did you mean ${names.length === 1 ? last : `${names.slice(0, -1).join(', ')} or ${last}`}?`;
}
