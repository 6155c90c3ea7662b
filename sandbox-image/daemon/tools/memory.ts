// The tool `memory`: the project's notes as plain files below `memory/` of the checkout. They reach the base branch as every
// file does. What is refused is said in the answer. Must not know harnesses. Source: A114, A130.
import { lstat, readdir } from 'node:fs/promises';
import { z } from 'zod';
import { defineTool, type Tool, type ToolResult } from './define-tool.ts';
import { kindOf, namesBelow, type OpenFolder, PathRefusal, readEntry, withFolder } from './files/folder-walk.ts';
import { moveEntry, removeEntry, writeEntry } from './files/write-entry.ts';

/** The folder that the tool works in, below the workspace. */
export const MEMORY_ROOT = 'memory';
/** Largest file that is read or written. Units: bytes. */
export const MAX_MEMORY_BYTES = 1_048_576;
const MAX_LISTED = 1_000;

const input = z.strictObject({
  command: z.enum(['view', 'create', 'str_replace', 'insert', 'delete', 'rename']),
  path: z.string().max(4_096).describe('`memory` or a path that begins with `memory/`. For rename: the present path.'),
  new_path: z.string().max(4_096).optional().describe('rename: the new path.'),
  file_text: z.string().max(MAX_MEMORY_BYTES).optional().describe('create: the whole content of the new file.'),
  old_str: z
    .string()
    .max(MAX_MEMORY_BYTES)
    .optional()
    .describe('str_replace: text that stands in the file exactly once.'),
  new_str: z
    .string()
    .max(MAX_MEMORY_BYTES)
    .optional()
    .describe('str_replace: what stands there afterwards. Default: nothing.'),
  insert_line: z.int().min(0).optional().describe('insert: the line after which the text goes; 0 is the top.'),
  insert_text: z.string().max(MAX_MEMORY_BYTES).optional().describe('insert: the text.'),
  view_range: z.array(z.int()).length(2).optional().describe('view of a file: first and last line; -1 is the end.'),
});
type Args = z.output<typeof input>;

const DESCRIPTION = `Reads and changes the project's memory: text files below memory/ that later sessions read too.
Commands: view (a file with line numbers, or a folder two levels deep), create (a new file), str_replace, insert, delete, rename.
Look at memory/ before you begin a task, and write down what the next session should know. Never store secrets.`;

/** The folder of a path, and the name in it. */
type Place = Readonly<{ parents: readonly string[]; name: string }>;

const placeOf = (path: string): Place => {
  const names = namesBelow(MEMORY_ROOT, path);
  const name = names.at(-1);
  if (name === undefined) throw new PathRefusal('the path must name a file below memory/');
  return { parents: [MEMORY_ROOT, ...names.slice(0, -1)], name };
};

const needed = <T>(value: T | undefined, name: string, command: string): T => {
  if (value === undefined) throw new PathRefusal(`${command} needs ${name}`);
  return value;
};

const textOf = (bytes: Buffer, path: string): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new PathRefusal(`${path} is no UTF-8 text`);
  }
};

const missing = (path: string): PathRefusal => new PathRefusal(`${path} does not exist`);

/** The tool for the checkout at `workspace`. */
export const memoryTool = (workspace: string): Tool => {
  const inFolder = async <T>(place: Place, make: boolean, path: string, use: (folder: OpenFolder) => Promise<T>) => {
    const result = await withFolder(workspace, place.parents, make, async (folder) => ({ value: await use(folder) }));
    if (result === undefined) throw missing(path);
    return result.value;
  };

  const read = async (folder: OpenFolder, name: string, path: string): Promise<string> => {
    const bytes = await readEntry(folder, name, MAX_MEMORY_BYTES);
    if (bytes === undefined) throw missing(path);
    return textOf(bytes, path);
  };

  const listed = async (folder: OpenFolder, path: string, depth: number, lines: string[]): Promise<void> => {
    for (const name of (await readdir(folder.self)).sort()) {
      if (lines.length >= MAX_LISTED) {
        lines.push('(and more)');
        return;
      }
      const at = `${path}/${name}`;
      const kind = await kindOf(folder, name);
      if (kind === 'file') lines.push(`${String((await lstat(folder.at(name))).size).padStart(9)}  ${at}`);
      else if (kind === 'folder') {
        lines.push(`${''.padStart(9)}  ${at}/`);
        if (depth > 1) await withFolder(folder.self, [name], false, (below) => listed(below, at, depth - 1, lines));
      } else if (kind === 'other') lines.push(`${''.padStart(9)}  ${at} (no regular file, not followed)`);
      if (lines.at(-1) === '(and more)') return;
    }
  };

  const viewFolder = async (names: readonly string[]): Promise<string | undefined> => {
    const path = [MEMORY_ROOT, ...names].join('/');
    return withFolder(workspace, [MEMORY_ROOT, ...names], false, async (folder) => {
      const lines: string[] = [];
      await listed(folder, path, 2, lines);
      return [`${path}/ (bytes, path; two levels)`, ...lines].join('\n');
    });
  };

  const view = async (args: Args): Promise<string> => {
    const names = namesBelow(MEMORY_ROOT, args.path);
    if (names.length === 0) return (await viewFolder([])) ?? 'memory/ is empty: nothing was written down yet';
    const place = placeOf(args.path);
    const kind = await inFolder(place, false, args.path, (folder) => kindOf(folder, place.name));
    if (kind === 'folder') return (await viewFolder(names)) ?? `${args.path} does not exist`;
    const text = await inFolder(place, false, args.path, (folder) => read(folder, place.name, args.path));
    const lines = text.split('\n');
    const [first = 1, last = -1] = args.view_range ?? [];
    const end = last === -1 ? lines.length : last;
    if (first < 1 || end < first || first > lines.length) {
      throw new PathRefusal(`view_range must lie between 1 and ${lines.length}`);
    }
    const shown = lines.slice(first - 1, end);
    return shown.map((line, at) => `${String(first + at).padStart(6)}\t${line}`).join('\n');
  };

  const change = async (path: string, edit: (text: string) => string): Promise<void> => {
    const place = placeOf(path);
    await inFolder(place, false, path, async (folder) => {
      const next = edit(await read(folder, place.name, path));
      if (Buffer.byteLength(next) > MAX_MEMORY_BYTES) throw new PathRefusal(`${path} would become too large`);
      await writeEntry(folder, place.name, next, false);
    });
  };

  const replaced = (text: string, args: Args): string => {
    const old = needed(args.old_str, 'old_str', 'str_replace');
    if (old === '') throw new PathRefusal('old_str is empty');
    const at = text.indexOf(old);
    if (at === -1) throw new PathRefusal(`old_str does not stand in ${args.path}`);
    if (text.includes(old, at + 1)) throw new PathRefusal(`old_str stands in ${args.path} more than once`);
    return text.slice(0, at) + (args.new_str ?? '') + text.slice(at + old.length);
  };

  const inserted = (text: string, args: Args): string => {
    const added = needed(args.insert_text, 'insert_text', 'insert');
    const line = needed(args.insert_line, 'insert_line', 'insert');
    const lines = text.split('\n');
    const count = text.endsWith('\n') ? lines.length - 1 : lines.length;
    if (line > count) throw new PathRefusal(`insert_line must be 0 to ${count}`);
    return [...lines.slice(0, line), added.replace(/\n$/, ''), ...lines.slice(line)].join('\n');
  };

  const rename = async (args: Args): Promise<string> => {
    const to = needed(args.new_path, 'new_path', 'rename');
    const [from, target] = [placeOf(args.path), placeOf(to)];
    await inFolder(from, false, args.path, async (folder) => {
      if ((await kindOf(folder, from.name)) === 'missing') throw missing(args.path);
      await inFolder(target, true, to, (other) => moveEntry(folder, from.name, other, target.name));
    });
    return `${args.path} is now ${to}`;
  };

  const run = async (args: Args): Promise<string> => {
    switch (args.command) {
      case 'view':
        return view(args);
      case 'create': {
        const place = placeOf(args.path);
        const text = needed(args.file_text, 'file_text', 'create');
        if (Buffer.byteLength(text) > MAX_MEMORY_BYTES) throw new PathRefusal('file_text is too large');
        await inFolder(place, true, args.path, (folder) => writeEntry(folder, place.name, text, true));
        return `${args.path} is written`;
      }
      case 'str_replace':
        await change(args.path, (text) => replaced(text, args));
        return `${args.path} is changed`;
      case 'insert':
        await change(args.path, (text) => inserted(text, args));
        return `${args.path} is changed`;
      case 'delete': {
        const place = placeOf(args.path);
        if (!(await inFolder(place, false, args.path, (folder) => removeEntry(folder, place.name)))) {
          throw missing(args.path);
        }
        return `${args.path} is deleted`;
      }
      case 'rename':
        return rename(args);
    }
  };

  return defineTool({
    name: 'memory',
    description: DESCRIPTION,
    input,
    run: async (args): Promise<ToolResult> => {
      const title = `${args.command} ${args.path}`.slice(0, 200);
      try {
        return { title, output: await run(args) };
      } catch (error) {
        if (error instanceof PathRefusal) return { title, output: `Refused: ${error.message}.` };
        throw error;
      }
    },
  });
};
