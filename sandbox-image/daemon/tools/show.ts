// The tool `show`: puts a card before whoever watches the session. The card is the call's metadata, so every client that
// reads tool parts has it; nothing else is sent. Must not know harnesses or clients. Source: A44, docs/decisions/0033.
import { lstat } from 'node:fs/promises';
import { extname } from 'node:path';
import { z } from 'zod';
import { defineTool, type Tool, ToolError, type ToolResult } from './define-tool.ts';
import { namesBelow, PathRefusal, withFolder } from './files/folder-walk.ts';

/** Longest text of a card; longer ones belong into a file. Units: characters. */
const MAX_TEXT = 32_768;

const input = z.strictObject({
  title: z.string().min(1).max(200).describe('One line above the card.'),
  type: z.enum(['text', 'markdown', 'code', 'link', 'file']).describe('What the card holds.'),
  text: z.string().min(1).max(MAX_TEXT).optional().describe('text, markdown and code: the content.'),
  language: z.string().max(32).optional().describe('code: its language.'),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_048)
    .optional()
    .describe('link: the address.'),
  path: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('file: a file of the workspace, also an image, relative to its root.'),
});

const DESCRIPTION = `Shows something to the person who watches the session: a text, markdown, code, a link, or a file of the workspace.
Use it for results that deserve more than a line of the answer. It changes nothing.`;

const MIME: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.webp': 'image/webp',
};

/** The card of a call, as clients get it: in the metadata under `show`. */
export type ShownCard = Readonly<{
  title: string;
  type: z.output<typeof input>['type'];
  text?: string | undefined;
  language?: string | undefined;
  url?: string | undefined;
  path?: string | undefined;
  mime?: string | undefined;
  bytes?: number | undefined;
}>;

/** The tool for the checkout at `workspace`. */
export const showTool = (workspace: string): Tool => {
  /** Path, type and size of a file; clients read it through the session's files. */
  const fileCard = async (path: string): Promise<Pick<ShownCard, 'path' | 'mime' | 'bytes'>> => {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;
    const names = namesBelow('workspace', `workspace/${relative.replace(/^\.\//, '')}`);
    const name = names.at(-1);
    const info =
      name === undefined
        ? undefined
        : await withFolder(workspace, names.slice(0, -1), false, (folder) => lstat(folder.at(name)));
    if (info === undefined || !info.isFile()) throw new PathRefusal('the path names no regular file');
    return {
      path: names.join('/'),
      mime: MIME[extname(relative).toLowerCase()] ?? 'application/octet-stream',
      bytes: info.size,
    };
  };

  const needed = <T>(value: T | undefined, name: string): T => {
    if (value === undefined) throw new ToolError(`a card of this type needs ${name}`);
    return value;
  };

  return defineTool({
    name: 'show',
    description: DESCRIPTION,
    input,
    run: async ({ title, type, text, language, url, path }): Promise<ToolResult> => {
      const content = async (): Promise<Omit<ShownCard, 'title' | 'type'>> => {
        if (type === 'link') return { url: needed(url, 'url') };
        if (type === 'code') return { text: needed(text, 'text'), ...(language === undefined ? {} : { language }) };
        if (type !== 'file') return { text: needed(text, 'text') };
        try {
          return await fileCard(needed(path, 'path'));
        } catch (error) {
          const code = (error as NodeJS.ErrnoException).code;
          if (error instanceof PathRefusal) throw new ToolError(error.message);
          if (code === 'ENOENT') throw new ToolError('the path names no regular file');
          throw error;
        }
      };
      const card: ShownCard = { title, type, ...(await content()) };
      return { title, output: `Shown to the user: ${title}`, metadata: { show: card } };
    },
  });
};
