// One problem of a file as compilers print it, so that editors find the place. Pure. Source: 20-control-plane §6.
import { plainLine } from './plain-text.ts';

/** A problem with its place; `code` is the machine's word for it. */
export type FileProblem = Readonly<{ path: string; line: number; column: number; code: string; message: string }>;

/** `path:line:column: error: message [code]`. */
export const problemLine = (problem: FileProblem, kind: 'error' | 'warning'): string =>
  `${plainLine(problem.path, 512)}:${problem.line}:${problem.column}: ${kind}: ${plainLine(problem.message)} [${problem.code}]`;
