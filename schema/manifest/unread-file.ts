// Why a file of a repository was not read as text, in one wording for the server and the command line. Pure.
// Must not know where files come from: a commit or a folder. Source: 20-control-plane §6, A84.
import { problemAt } from './report.ts';
import type { ManifestErrorCode, ManifestProblem } from './source.ts';

/** Largest file that is read from a repository. Units: bytes. Source: 20-control-plane §6. */
export const MAX_CONFIG_FILE_BYTES = 1_048_576;

/** A file as it was found. Only regular files of UTF-8 text, up to the limit, are read. */
export type FoundFile =
  | Readonly<{ kind: 'text'; text: string }>
  | Readonly<{ kind: 'missing' | 'symlink' | 'not-a-file' | 'not-utf8' }>
  | Readonly<{ kind: 'too-large'; size: number }>;

const whyUnread = (file: FoundFile): readonly [ManifestErrorCode, string] | undefined => {
  switch (file.kind) {
    case 'symlink':
      return ['Missing', 'is a symbolic link, which is not followed; commit the file itself'];
    case 'not-a-file':
      return ['Missing', 'is no regular file; commit a text file'];
    case 'too-large':
      return ['TooLarge', `has ${file.size} bytes; at most ${MAX_CONFIG_FILE_BYTES} are read`];
    case 'not-utf8':
      return ['SyntaxError', 'is not UTF-8'];
    case 'missing':
    case 'text':
      return undefined;
  }
};

/** The problem of a file that is there and was not read; undefined for one that was read, or is simply not there. */
export const unreadProblem = (path: string, file: FoundFile): ManifestProblem | undefined => {
  const [code, message] = whyUnread(file) ?? [];
  return code === undefined ? undefined : problemAt(path, code, `${path} ${message}`);
};
