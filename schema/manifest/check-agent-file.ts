// One agent file: its frontmatter and prompt, every problem with its line in the file. Source: A99 to A101.
import { didYouMean } from '../rules/nearest-names.ts';
import {
  ACTION_ONLY_KEYS,
  type AgentFrontmatter,
  AgentFrontmatterSchema,
  RENAMED_FRONTMATTER,
  splitAgentFile,
} from './agent-file.ts';
import { checkShape, kindOf } from './issues.ts';
import { makeReport, problemAt } from './report.ts';
import type { ManifestProblem, ParseYaml } from './source.ts';

/** What an agent file says. With errors, `frontmatter` is empty. */
export type AgentFileResult = Readonly<{
  frontmatter: AgentFrontmatter;
  prompt: string;
  errors: readonly ManifestProblem[];
  warnings: readonly ManifestProblem[];
}>;

/** Longest agent file. Units: characters. */
const MAX_AGENT_FILE_LENGTH = 1024 * 1024;

/** Reads the text of an agent file. */
export function checkAgentFile(path: string, text: string, parseYaml: ParseYaml): AgentFileResult {
  const failed = (...errors: ManifestProblem[]): AgentFileResult => ({
    frontmatter: {},
    prompt: '',
    errors,
    warnings: [],
  });
  if (text.length > MAX_AGENT_FILE_LENGTH) return failed(problemAt(path, 'TooLarge', 'is larger than 1 MiB'));
  const parts = splitAgentFile(text);
  if (parts === undefined) return failed(problemAt(path, 'SyntaxError', 'the frontmatter has no closing line ---'));
  const document = parseYaml(parts.frontmatter);
  const lineOffset = parts.firstLine - 1;
  if (document.problems.length > 0) {
    return failed(
      ...document.problems.map(({ code, message, line, column }) =>
        problemAt(path, code, message, { line: line + lineOffset, column }),
      ),
    );
  }
  const report = makeReport(path, document.placeOf, lineOffset);
  const value = document.value ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    report.error([], `the frontmatter must be a map, not ${kindOf(value)}`);
    return failed(...report.errors);
  }
  for (const key of Object.keys(value)) {
    const renamed = Object.hasOwn(RENAMED_FRONTMATTER, key) ? RENAMED_FRONTMATTER[key] : undefined;
    if (renamed !== undefined) report.error([key], `is not a key of agent files; use ${renamed}`, 'key');
    else if (!Object.hasOwn(AgentFrontmatterSchema.shape, key))
      report.warn([key], `unknown key is ignored${didYouMean(key, Object.keys(AgentFrontmatterSchema.shape))}`, 'key');
  }
  const shape = checkShape(AgentFrontmatterSchema, value);
  report.issues(shape.issues);
  const permission = shape.value?.permission;
  if (typeof permission === 'object') {
    for (const key of ACTION_ONLY_KEYS) {
      if (typeof permission[key] === 'object')
        report.error(['permission', key], 'takes ask, allow or deny, and no patterns');
    }
  }
  return { frontmatter: shape.value ?? {}, prompt: parts.prompt, errors: report.errors, warnings: report.warnings };
}
