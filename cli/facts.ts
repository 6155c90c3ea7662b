// Names and values of one thing, one on a line. Pure.
import { plainLine } from './plain-text.ts';

/** One name with its value; null and undefined are left out. */
export type Fact = readonly [name: string, value: string | number | null | undefined];

/** The lines, with values that line up; values are made harmless. */
export const factLines = (facts: readonly Fact[]): readonly string[] => {
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(0, ...known.map(([name]) => name.length)) + 1;
  return known.map(([name, value]) => `${`${name}:`.padEnd(width)} ${plainLine(String(value))}`);
};
