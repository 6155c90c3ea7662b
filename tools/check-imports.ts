// Judges the imports of a file against tools/rooms.ts. Callers read the files.
import { stripTypeScriptTypes } from 'node:module';
import { matchesGlob, posix } from 'node:path';
import { ENVIRONMENT_FILES, IMPURE_FILES, PURE_FILES, ROOMS, type Room, SUBPATHS } from './rooms.ts';

/** One broken rule: file, the import (or word) at fault, and the rule in words. */
export type Violation = Readonly<{ file: string; found: string; rule: string }>;

const matchesAny = (file: string, globs: readonly string[]): boolean => globs.some((glob) => matchesGlob(file, glob));

/** The room that owns a file (path from the project's root), or undefined. */
export const roomOf = (file: string): Room | undefined => ROOMS.find((room) => matchesAny(file, room.files));

/** Whether a file is among the pure ones. */
export const isPure = (file: string): boolean => matchesAny(file, PURE_FILES) && !matchesAny(file, IMPURE_FILES);

// Node erases types and keeps every place of the remaining code, so what is left are value imports only.
const IMPORTS = [
  /(?:^|[\s;}])(?:import|export)\s+(?:[\w*{}\s,$]+\s+from\s+)?['"]([^'"\n]+)['"]/g,
  /\bimport\(\s*['"]([^'"\n]+)['"]\s*\)/g,
  /new\s+URL\(\s*['"]([^'"\n]+\.ts)['"]\s*,\s*import\.meta\.url/g,
];

const withoutTypesAndComments = (text: string): string => {
  const source = text.startsWith('#!') ? text.slice(text.indexOf('\n')) : text;
  return stripTypeScriptTypes(source, { mode: 'strip' })
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:'"`\\])\/\/[^\n]*/g, '$1');
};

/** Every value import of a file, as written. */
export const valueImports = (text: string): readonly string[] => {
  const code = withoutTypesAndComments(text);
  return IMPORTS.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''));
};

const targetOf = (file: string, specifier: string): string | undefined => {
  if (specifier.startsWith('.')) return posix.normalize(posix.join(posix.dirname(file), specifier));
  for (const [prefix, folder] of Object.entries(SUBPATHS)) {
    if (specifier.startsWith(prefix)) return folder + specifier.slice(prefix.length);
  }
  return undefined;
};

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** Every rule that the file breaks. `file` is the path from the project's root, `text` its source. */
export const violationsOf = (file: string, text: string): readonly Violation[] => {
  const room = roomOf(file);
  if (room === undefined) return [{ file, found: file, rule: 'every file is in one room of tools/rooms.ts' }];
  const found: Violation[] = [];
  const report = (what: string, rule: string): void => void found.push({ file, found: what, rule });
  const code = withoutTypesAndComments(text);
  for (const specifier of valueImports(text)) {
    const target = targetOf(file, specifier);
    // A file that is reached by address (a worker, a program) has no subpath form.
    const byAddress = code.includes(`new URL('${specifier}', import.meta.url`);
    if (specifier.startsWith('node:')) {
      const allowed = room.node === true || (Array.isArray(room.node) && room.node.includes(specifier));
      if (!allowed) report(specifier, `${room.name} may not import this module of Node`);
      if (isPure(file)) report(specifier, 'a pure file imports no module of Node');
    } else if (target === undefined) {
      const name = packageOf(specifier);
      if (!room.packages.includes('*') && !room.packages.includes(name))
        report(specifier, `${room.name} may not import this package`);
      if (isPure(file) && name !== 'zod') report(specifier, 'a pure file imports no package but zod');
    } else if (target !== 'package.json') {
      if (!matchesAny(target, room.ours)) report(specifier, `${room.name} may not import ${target}`);
      if (isPure(file) && !isPure(target)) report(specifier, 'a pure file takes values from pure files only');
      const sameRoom = roomOf(target)?.name === room.name;
      if (specifier.startsWith('../') && !byAddress && !sameRoom && target.split('/')[0] !== file.split('/')[0])
        report(specifier, 'across rooms use a subpath import');
    }
  }
  if (/\bprocess\.env\b/.test(code) && !matchesAny(file, ENVIRONMENT_FILES) && !file.endsWith('.test.ts'))
    report('process.env', 'process.env stands in config.ts only');
  if (isPure(file) && !matchesAny(file, ENVIRONMENT_FILES)) {
    for (const word of [/\bDate\.now\b|\bnew Date\(\s*\)/, /\bMath\.random\b/, /\bprocess\./, /\bperformance\./]) {
      const hit = word.exec(code);
      if (hit) report(hit[0], 'a pure file has no clock, random or environment');
    }
  }
  return found;
};
