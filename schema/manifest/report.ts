// Collects problems of one file, each with its place.
// It must not know what is checked.
import { dotted, type Issue } from './issues.ts';
import type { DocumentPath, ManifestErrorCode, ManifestProblem, ParsedYaml } from './source.ts';

/** Problems of one file. `errors` make the manifest invalid, `warnings` do not. */
export type Report = Readonly<{
  errors: readonly ManifestProblem[];
  warnings: readonly ManifestProblem[];
  /** The message is put behind the dotted path of the value. */
  error: (path: DocumentPath, message: string, part?: 'key' | 'value') => void;
  warn: (path: DocumentPath, message: string, part?: 'key' | 'value') => void;
  issues: (issues: readonly Issue[]) => void;
}>;

/** Longest message; the wire and the status take no more. */
const MESSAGE_MAX = 512;

/** One problem of a file as a whole, or at a place of it. */
export function problemAt(
  path: string,
  code: ManifestErrorCode,
  message: string,
  place = { line: 1, column: 1 },
): ManifestProblem {
  const cut = message.length <= MESSAGE_MAX ? message : `${message.slice(0, MESSAGE_MAX - 1)}…`;
  return { path, line: place.line, column: place.column, code, message: cut };
}

/** An empty report about a file. `lineOffset` is added to lines: a document may begin below the first line of its file. */
export function makeReport(file: string, placeOf: ParsedYaml['placeOf'], lineOffset = 0): Report {
  const errors: ManifestProblem[] = [];
  const warnings: ManifestProblem[] = [];
  const problem = (path: DocumentPath, message: string, part: 'key' | 'value'): ManifestProblem => {
    const { line, column } = placeOf(path, part);
    const named = path.length === 0 ? message : `${dotted(path)}: ${message}`;
    return problemAt(file, 'SchemaError', named, { line: line + lineOffset, column });
  };
  return {
    errors,
    warnings,
    error: (path, message, part = 'value') => void errors.push(problem(path, message, part)),
    warn: (path, message, part = 'value') => void warnings.push(problem(path, message, part)),
    issues: (issues) => {
      for (const { path, message, part } of issues) errors.push(problem(path, message, part));
    },
  };
}
