// What the project's folder for Pi holds: settings that count, extensions, prompt templates, skills, local packages.
// Reads the copy that the host made, where every file is a regular one. Must not know Pi. Source: A70, A74, A77, A79, A80.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
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

/** A package entry of the settings: only a path below the folder loads from here. Source: A79. */
const packageOf = (folder: string, entry: unknown): Readonly<{ path: string }> | Failure => {
  const named = typeof entry === 'string' ? entry : fieldsOf(entry)['source'];
  const source = typeof named === 'string' ? named : JSON.stringify(entry);
  if (!source.startsWith('./'))
    return { source, reason: 'only packages whose path begins with ./ load from settings.json' };
  const path = join(folder, source);
  if (relative(folder, path).startsWith('..')) return { source, reason: 'the path leads out of the folder' };
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true ? { path } : { source, reason: 'there is no such folder' };
};

/** What is there; nothing for null. Never throws. */
export const findProjectFiles = (folder: string | null): ProjectFiles => {
  if (folder === null) return { extensions: [], prompts: [], skills: [], packages: [], compaction: {}, failed: [] };
  const { fields, failed } = readSettings(folder);
  const listed = fields['packages'];
  const entries = Array.isArray(listed) ? listed.slice(0, MAX_PACKAGES).map((entry) => packageOf(folder, entry)) : [];
  return {
    extensions: filesIn(join(folder, 'extensions'), EXTENSION),
    prompts: filesIn(join(folder, 'prompts'), /\.md$/),
    skills: namesIn(join(folder, 'skills')).flatMap((name) => filesIn(join(folder, 'skills', name), /^SKILL\.md$/)),
    packages: entries.flatMap((entry) => ('path' in entry ? [entry.path] : [])),
    compaction: compactionOf(fields['compaction']),
    failed: [...failed, ...entries.flatMap((entry) => ('path' in entry ? [] : [entry]))],
  };
};
