// Files of a session's workspace and what has changed in them, as the daemon gives them and as clients see them.
// Paths are relative to the workspace, with `/` between names. Source: 20-control-plane §3, A200; FF5, FF6.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** Largest file that is read or written at once. Units: bytes. */
export const MAX_FILE_BYTES = 1_048_576;
/** Most entries of one folder that are listed. */
export const MAX_FOLDER_ENTRIES = 2_000;
/** Body limit of a write: a text of MAX_FILE_BYTES with its JSON escapes. Units: bytes. */
export const FILE_BODY_BYTES = 4_194_304;

/** A path; empty is the workspace itself. What the parts may be is checked where the file is opened. */
export const filePath = z.string().max(4_096);

/** One entry of a folder. `link`: a symbolic link, which is never followed. */
export const folderEntry = z.object({
  name: z.string(),
  type: z.enum(['file', 'folder', 'link', 'other']),
  sizeBytes: z.int().min(0).nullable(),
});

/** A folder with its entries, by name; or a file with its beginning. `truncated`: there is more than is shown. */
export const fileView = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('folder'),
    path: z.string(),
    entries: z.array(folderEntry).max(MAX_FOLDER_ENTRIES),
    truncated: z.boolean(),
  }),
  z.object({
    type: z.literal('file'),
    path: z.string(),
    sizeBytes: z.int().min(0),
    encoding: z.enum(['utf8', 'base64']),
    content: z.string(),
    truncated: z.boolean(),
  }),
]);

/** The whole new content of a file. */
export const fileContent = z.object({
  encoding: z.enum(['utf8', 'base64']).default('utf8'),
  content: z.string().max(1_398_104),
});

/** A file that was written. */
export const writtenFile = z.object({ path: z.string(), sizeBytes: z.int().min(0), created: z.boolean() });

/** One changed file; the counts are null for a binary one. */
export const changedFile = z.object({
  path: z.string(),
  additions: z.int().min(0).nullable(),
  deletions: z.int().min(0).nullable(),
});

/**
 * All that differs from the base commit: commits of the session and what is not committed. Files that git does not know yet are
 * listed, without content. `patch` is cut at 1 MiB, the lists at 2,000.
 */
export const workspaceDiff = z.object({
  baseCommit: z.string(),
  headCommit: z.string().nullable(),
  files: z.array(changedFile).max(2_000),
  untracked: z.array(z.string()).max(2_000),
  patch: z.string(),
  truncated: z.boolean(),
});

/** `GET /beeuni/files?path=` on port 8000. 404 for nothing there, 403 `path_not_allowed` for links and what leads out. */
export const readFileRoute = defineRoute({
  operationId: 'readWorkspaceFile',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/files',
  summary: 'Read a file or list a folder of the workspace',
  auth: { kind: 'control-plane' },
  query: z.object({ path: filePath.default('') }),
  responses: { 200: fileView },
});

/** `PUT /beeuni/files?path=` on port 8000: replaces the file as a whole, or makes it in a folder that is there. */
export const writeFileRoute = defineRoute({
  operationId: 'writeWorkspaceFile',
  listener: 'daemon',
  method: 'PUT',
  path: '/beeuni/files',
  summary: 'Write a file of the workspace',
  auth: { kind: 'control-plane' },
  bodyLimitBytes: FILE_BODY_BYTES,
  query: z.object({ path: filePath }),
  body: fileContent,
  responses: { 200: writtenFile },
});

/** `GET /beeuni/diff` on port 8000. */
export const diffRoute = defineRoute({
  operationId: 'diffWorkspace',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/diff',
  summary: 'What differs from the base commit',
  auth: { kind: 'control-plane' },
  responses: { 200: workspaceDiff },
});

/** See fileView. */
export type FileView = z.output<typeof fileView>;
/** See fileContent. */
export type FileContent = z.output<typeof fileContent>;
/** See writtenFile. */
export type WrittenFile = z.output<typeof writtenFile>;
/** See workspaceDiff. */
export type WorkspaceDiff = z.output<typeof workspaceDiff>;
