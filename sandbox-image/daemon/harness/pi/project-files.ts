// What the project gives Pi: settings that count, extensions, prompt templates and skills of its folder and its packages.
// Reads the copy that the host made, where every file is a regular one. Must not know Pi. Source: A70, A72, A74 to A80.
import { globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { HarnessPackage } from '../contract/packages.ts';
import type { ProjectFiles } from './protocol.ts';

const EXTENSION = /\.(ts|js|mjs|cjs)$/;
const MAX_ENTRIES = 200;
const MAX_PACKAGES = 20;

/** Names in a folder, sorted; none when there is no such folder. */
const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).sort().slice(0, MAX_ENTRIES);
  } catch {
    return [];
  }
};

const filesIn = (folder: string, pattern: RegExp): readonly string[] =>
  namesIn(folder)
    .filter((name) => pattern.test(name) && statSync(join(folder, name)).isFile())
    .map((name) => join(folder, name));

type Failure = ProjectFiles['failed'][number];

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

const readSettings = (
  folder: string,
): Readonly<{ fields: Readonly<Record<string, unknown>>; failed: readonly Failure[] }> => {
  let text: string;
  try {
    text = readFileSync(join(folder, 'settings.json'), 'utf8');
  } catch {
    return { fields: {}, failed: [] };
  }
  try {
    return { fields: fieldsOf(JSON.parse(text)), failed: [] };
  } catch {
    return { fields: {}, failed: [{ source: 'settings.json', reason: 'it is not JSON' }] };
  }
};

const tokens = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;

/** The keys of `compaction` that count. Source: A79. */
const compactionOf = (value: unknown): ProjectFiles['compaction'] => {
  const { enabled, reserveTokens, keepRecentTokens } = fieldsOf(value);
  const settings = {
    ...(typeof enabled === 'boolean' ? { enabled } : {}),
    ...(tokens(reserveTokens) === undefined ? {} : { reserveTokens: tokens(reserveTokens) }),
    ...(tokens(keepRecentTokens) === undefined ? {} : { keepRecentTokens: tokens(keepRecentTokens) }),
  };
  return settings;
};

type Kind = 'extensions' | 'skills' | 'prompts';

const PATTERNS: Readonly<Record<Kind, RegExp>> = {
  extensions: EXTENSION,
  skills: /(^|\/)SKILL\.md$/,
  prompts: /\.md$/,
};
const patternsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : undefined;

/** What the package itself says that it has, under `pi` of its package.json. */
const declaredBy = (directory: string): Readonly<Record<string, unknown>> => {
  try {
    return fieldsOf(fieldsOf(JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')))['pi']);
  } catch {
    return {};
  }
};

/** The files of one kind that a path or pattern names: itself, or what a folder holds. */
const expand = (directory: string, kind: Kind, pattern: string): readonly string[] => {
  const inside = globSync(pattern.replace(/^\.\//, ''), { cwd: directory })
    .filter((path) => !path.startsWith('..') && !path.startsWith('/'))
    .slice(0, MAX_ENTRIES);
  return inside.flatMap((path) => {
    const whole = join(directory, path);
    if (!statSync(whole).isDirectory()) return PATTERNS[kind].test(whole) ? [whole] : [];
    const files = filesIn(whole, PATTERNS[kind]);
    return kind === 'skills'
      ? [...files, ...namesIn(whole).flatMap((name) => filesIn(join(whole, name), PATTERNS[kind]))]
      : files;
  });
};

/** What a package loads of one kind: what the entry lists, else what the package declares, else the usual folder. */
const resourcesOf = (entry: HarnessPackage & Readonly<{ directory: string }>, kind: Kind): readonly string[] => {
  const patterns = entry[kind] ?? patternsOf(declaredBy(entry.directory)[kind]) ?? [kind];
  return [...new Set(patterns.flatMap((pattern) => expand(entry.directory, kind, pattern)))].sort();
};

/** A package entry of the settings: only a path below the folder loads from here. Source: A75, A79. */
const settingsPackage = (folder: string, entry: unknown): HarnessPackage | Failure => {
  const named = typeof entry === 'string' ? entry : fieldsOf(entry)['source'];
  const source = typeof named === 'string' ? named : JSON.stringify(entry);
  if (!source.startsWith('./'))
    return { source, reason: 'only packages whose path begins with ./ load from settings.json' };
  const directory = join(folder, source);
  if (relative(folder, directory).startsWith('..')) return { source, reason: 'the path leads out of the folder' };
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
    return { source, reason: 'there is no such folder' };
  const { extensions, skills, prompts } = fieldsOf(entry);
  return {
    source,
    directory,
    extensions: patternsOf(extensions),
    skills: patternsOf(skills),
    prompts: patternsOf(prompts),
  };
};

const isPackage = (entry: HarnessPackage | Failure): entry is HarnessPackage => 'directory' in entry;
const isHere = (entry: HarnessPackage): entry is HarnessPackage & Readonly<{ directory: string }> =>
  entry.directory !== null;

const missing = ({ source }: HarnessPackage): Failure => ({
  source,
  reason: source.startsWith('./')
    ? 'there is no such folder in the base commit or the image'
    : 'the image does not have this version of it; nothing is installed at a start',
});

/** What is there: the folder, null for none, and the packages that the manifest names. Never throws. */
export const findProjectFiles = (folder: string | null, packages: readonly HarnessPackage[]): ProjectFiles => {
  const { fields, failed } = folder === null ? { fields: {}, failed: [] } : readSettings(folder);
  const listed = fields['packages'];
  const entries = folder === null || !Array.isArray(listed) ? [] : listed.slice(0, MAX_PACKAGES);
  const fromSettings = entries.map((entry) => settingsPackage(folder ?? '', entry));
  const all = [...packages, ...fromSettings.filter(isPackage)];
  const here = all.filter(isHere);
  const own = (kind: Kind): readonly string[] => (folder === null ? [] : expand(folder, kind, kind));
  const of = (kind: Kind): readonly string[] => [...own(kind), ...here.flatMap((entry) => resourcesOf(entry, kind))];
  return {
    extensions: of('extensions'),
    prompts: of('prompts'),
    skills: of('skills'),
    compaction: compactionOf(fields['compaction']),
    failed: [
      ...failed,
      ...fromSettings.filter((entry): entry is Failure => !isPackage(entry)),
      ...all.filter((entry) => !isHere(entry)).map(missing),
    ],
  };
};
