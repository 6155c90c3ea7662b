// `beeuni sessions files`: lists a folder of the workspace, prints a file, or writes one.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { getFilesRoute, putFilesRoute } from '#schema/rest/files.ts';
import { type FileView, MAX_FILE_BYTES } from '#schema/wire/files.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { CommandError, EXIT, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainJson, plainText } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { tableLines } from '../table.ts';
import { writeFully } from '../write-fully.ts';

const readLocal = async (io: Io, path: string): Promise<Buffer> => {
  if (path !== '-') {
    try {
      return readFileSync(resolve(io.cwd, path));
    } catch {
      throw usageError(`${path} cannot be read`);
    }
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of io.stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)?.length ?? 0;
    if (size > MAX_FILE_BYTES) break;
  }
  return Buffer.concat(chunks);
};

const printFile = async (io: Io, file: Extract<FileView, { type: 'file' }>): Promise<void> => {
  const bytes = Buffer.from(file.content, file.encoding);
  if (!io.isTerminal.stdout) {
    io.stdout.write(bytes);
    return;
  }
  if (file.encoding === 'base64') {
    throw new CommandError(EXIT.refused, `${file.path} is binary`, 'send it through a pipe or into a file');
  }
  await writeFully(io.stdout, plainText(file.content));
};

/** See the file. */
export const command = defineCommand({
  summary: 'list a folder of the workspace, print a file, or write one',
  arguments: [
    SESSION_ARGUMENT,
    { name: 'PATH', summary: 'path in the workspace; all of it otherwise', optional: true },
  ],
  options: {
    write: { summary: 'replace the file PATH by this local one; - reads a pipe', value: 'FILE' },
    ...JSON_OPTION,
  },
  needsApi: true,
  details: ['Files are read and written up to 1 MiB. Links are shown and never followed.'],
  examples: ['beeuni sessions files fix-login src', 'beeuni sessions files fix-login .env.test --write env.test'],
  run: async ({ api, args, options, io, print, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const path = (args[1] ?? '').replace(/\/+$/, '');
    const client = await api.client();
    if (options.write !== undefined) {
      if (path === '') throw usageError('--write needs the PATH of the file in the workspace');
      const bytes = await readLocal(io, options.write);
      const body = { encoding: 'base64' as const, content: bytes.toString('base64') };
      if (bytes.length > MAX_FILE_BYTES) throw new CommandError(EXIT.refused, 'a file is written up to 1 MiB');
      const written = (await client.call(putFilesRoute, { params, query: { path }, body })).body;
      if (options.json) print(plainJson(written, 2));
      else note(`${written.created ? 'made' : 'replaced'} ${written.path}, ${written.sizeBytes} bytes`);
      return undefined;
    }
    const { body } = await client.call(getFilesRoute, { params, query: { path } });
    if (options.json) print(plainJson(body, 2));
    else if (body.type === 'folder') {
      print(
        ...tableLines(
          [
            { head: 'NAME', cell: ({ name, type }) => (type === 'folder' ? `${name}/` : name) },
            { head: 'TYPE', cell: ({ type }) => type },
            { head: 'BYTES', cell: ({ sizeBytes }) => sizeBytes },
          ],
          body.entries,
        ),
      );
    } else await printFile(io, body);
    if (body.truncated) note('there is more; this is cut');
    return undefined;
  },
});
