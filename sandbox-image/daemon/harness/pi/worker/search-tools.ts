// The search tools `glob` and `grep`: ripgrep over the workspace, hidden files included and .git left out, sorted by
// path. Must not know Pi beyond the shape of a tool. Source: A49, A113.
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { onAbort } from '#base/on-abort.ts';
import type { PiTool } from './pi-api.ts';

const MAX_PATHS = 1_000;
const MAX_MATCHES = 200;
const MAX_LINE = 500;
const MAX_OUTPUT_BYTES = 50 * 1024;
/** Of one search: ripgrep waits for ever for an ignore file that is a pipe. Units: milliseconds. */
const SEARCH_LIMIT_MS = 60_000;

type Search = Readonly<{ lines: readonly string[]; cut: boolean }>;

/** Lines of a ripgrep run, at most `limit`. Rejects with its own words when it fails, and when `signal` fires. */
const runRipgrep = (
  args: readonly string[],
  cwd: string,
  limit: number,
  signal: AbortSignal | undefined,
  limitMs: number,
): Promise<Search> =>
  new Promise((fulfil, reject) => {
    const child = spawn(
      'rg',
      ['--no-config', '--color=never', '--hidden', '--glob', '!.git', '--sort', 'path', ...args],
      {
        cwd,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const lines: string[] = [];
    let bytes = 0;
    let cut = false;
    let trouble = '';
    const stop = (): void => {
      child.kill('SIGKILL');
    };
    child.once('error', reject);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (trouble.length < 2_000) trouble += text;
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (cut) return;
      const short = line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}… [cut]` : line;
      bytes += Buffer.byteLength(short) + 1;
      if (lines.length >= limit || bytes > MAX_OUTPUT_BYTES) {
        cut = true;
        stop();
      } else {
        lines.push(short);
      }
    });
    const forget = signal && onAbort(signal, stop);
    const late = AbortSignal.timeout(limitMs);
    const keep = onAbort(late, stop);
    child.once('close', (code, ended) => {
      forget?.();
      keep();
      if (signal?.aborted === true) reject(new Error('Operation aborted'));
      else if (late.aborted && ended === 'SIGKILL' && !cut) {
        const why = 'narrow it, and look whether a file such as .gitignore is a pipe';
        reject(new Error(`The search took longer than ${limitMs / 1_000} s; ${why}.`));
      }
      // 1: nothing was found.
      else if (cut || code === 0 || code === 1) fulfil({ lines, cut });
      else reject(new Error(trouble.trim() || `ripgrep ended with code ${code}`));
    });
  });

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const limitOf = (value: unknown, most: number): number =>
  typeof value === 'number' && value >= 1 ? Math.min(Math.floor(value), most) : most;

const answer = ({ lines, cut }: Search, none: string) => {
  const found = lines.length === 0 ? none : lines.join('\n');
  return {
    content: [{ type: 'text' as const, text: cut ? `${found}\n\n[There are more; narrow the search.]` : found }],
  };
};

const folderOf = (workspace: string, path: unknown): Readonly<{ cwd: string; target: string }> => {
  const whole = resolve(workspace, text(path) ?? '.');
  const info = statSync(whole);
  if (!info.isDirectory() && !info.isFile()) throw new Error(`${whole} is neither a file nor a folder`);
  return info.isDirectory() ? { cwd: whole, target: '.' } : { cwd: dirname(whole), target: basename(whole) };
};

const string = (description: string) => ({ type: 'string', description });

/** Both tools for a workspace. A search that takes longer than `limitMs` is ended. */
export const createSearchTools = (workspace: string, limitMs = SEARCH_LIMIT_MS): readonly PiTool[] => [
  {
    name: 'glob',
    label: 'glob',
    description: `Find files by a glob pattern such as "**/*.ts". Hidden files are found, ignored files and .git are not. Gives at most ${MAX_PATHS} paths, sorted.`,
    parameters: {
      type: 'object',
      required: ['pattern'],
      properties: {
        pattern: string('Glob pattern, relative to the folder'),
        path: string('Folder to search; the workspace when absent'),
      },
    },
    execute: async (_callId, input, signal) => {
      const { cwd } = folderOf(workspace, input['path']);
      const found = await runRipgrep(['--files', '--glob', String(input['pattern'])], cwd, MAX_PATHS, signal, limitMs);
      return answer(found, 'No file matches.');
    },
  },
  {
    name: 'grep',
    label: 'grep',
    description: `Search file contents for a regular expression. Gives path, line number and line, sorted by path; lines are cut at ${MAX_LINE} characters. Hidden files are searched, ignored files and .git are not.`,
    parameters: {
      type: 'object',
      required: ['pattern'],
      properties: {
        pattern: string('Regular expression'),
        path: string('File or folder to search; the workspace when absent'),
        glob: string('Only files that match this pattern'),
        ignoreCase: { type: 'boolean', description: 'Ignore upper and lower case' },
        literal: { type: 'boolean', description: 'Take the pattern as plain text' },
        context: { type: 'number', description: 'Lines to show before and after each match' },
        limit: { type: 'number', description: `Most lines to give, at most ${MAX_MATCHES}` },
      },
    },
    execute: async (_callId, input, signal) => {
      const { cwd, target } = folderOf(workspace, input['path']);
      const glob = text(input['glob']);
      const context = input['context'];
      const args = [
        '--line-number',
        '--no-heading',
        '--with-filename',
        ...(input['ignoreCase'] === true ? ['--ignore-case'] : []),
        ...(input['literal'] === true ? ['--fixed-strings'] : []),
        ...(glob === undefined ? [] : ['--glob', glob]),
        ...(typeof context === 'number' && context > 0 ? ['--context', String(Math.min(Math.floor(context), 50))] : []),
        '--',
        String(input['pattern']),
        target,
      ];
      const found = await runRipgrep(args, cwd, limitOf(input['limit'], MAX_MATCHES), signal, limitMs);
      return answer({ ...found, lines: found.lines.map((line) => line.replace(/^\.\//, '')) }, 'No match.');
    },
  },
];
