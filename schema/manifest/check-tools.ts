// The tools that a manifest loads, and grants of them to agents. Source: A40, A44, A92, A94.
import { didYouMean } from '../rules/nearest-names.ts';
import { type AgentEntry, BEEUNI_TOOLS, type BeeuniTool, HARNESS_TOOLS, type Manifest } from './manifest.ts';
import type { Report } from './report.ts';
import type { DocumentPath } from './source.ts';
import type { GrantSet, ProjectTool } from './summary.ts';

/** The tools that are loaded for the project. */
export type LoadedTools = Readonly<{ beeuniTools: readonly BeeuniTool[]; projectTools: readonly ProjectTool[] }>;

const MODULE = /\.(ts|js|mts|mjs|cts|cjs)$/;
const RELATIVE = /^(\.\/)?(?!\.{0,2}(\/|$))[^/\\]+(\/(?!\.{0,2}(\/|$))[^/\\]+)*$/;
const BEEUNI_PREFIX = 'beeuni:';
const isBeeuniTool = (name: string): name is BeeuniTool => (BEEUNI_TOOLS as readonly string[]).includes(name);

function sourceProblem(name: string, source: string): string | undefined {
  if ((HARNESS_TOOLS as readonly string[]).includes(name))
    return `"${name}" is a tool of the harness; choose another name`;
  if (source.startsWith(BEEUNI_PREFIX)) {
    const tool = source.slice(BEEUNI_PREFIX.length);
    if (!isBeeuniTool(tool)) return `there is no Beeuni tool "${tool}"${didYouMean(tool, BEEUNI_TOOLS)}`;
    return tool === name ? undefined : `must be ${BEEUNI_PREFIX}${name} or the path of a module`;
  }
  if (isBeeuniTool(name)) return `"${name}" is the name of a Beeuni tool; choose another name`;
  if (!RELATIVE.test(source)) return 'must be a relative path inside the repository';
  return MODULE.test(source) ? undefined : 'must end in .ts, .js, .mts, .mjs, .cts or .cjs';
}

/** Tools of a manifest: without the key `tools` all five of Beeuni, with it exactly those that it lists. */
export function checkTools(manifest: Manifest, report: Report): LoadedTools {
  if (manifest.tools === undefined) return { beeuniTools: BEEUNI_TOOLS, projectTools: [] };
  const beeuniTools: BeeuniTool[] = [];
  const projectTools: ProjectTool[] = [];
  for (const [name, source] of Object.entries(manifest.tools ?? {})) {
    const problem = sourceProblem(name, source);
    if (problem !== undefined) report.error(['tools', name], problem);
    else if (isBeeuniTool(name)) beeuniTools.push(name);
    else projectTools.push({ name, path: source.replace(/^\.\//, '') });
  }
  if (beeuniTools.length === 0) report.warn(['tools'], 'lists no Beeuni tool, so none is loaded', 'key');
  return { beeuniTools, projectTools };
}

/** A grant: absent is none, a text that is neither all nor none counts as none and is warned about. Source: A92. */
export function checkGrant(
  value: string | readonly string[] | undefined,
  path: DocumentPath,
  report: Report,
): GrantSet {
  if (value === undefined || value === 'none') return 'none';
  if (value === 'all' || typeof value !== 'string') return value;
  report.warn(path, `"${value}" is not all, none or a list, so nothing is granted`);
  return 'none';
}

/** The tools that an agent is granted, of those that are loaded. */
export function checkToolGrant(
  tools: AgentEntry['tools'],
  loaded: LoadedTools,
  path: DocumentPath,
  report: Report,
): GrantSet {
  const names = [...loaded.beeuniTools, ...loaded.projectTools.map(({ name }) => name)];
  const warnAboutUnknown = (listed: readonly string[], at: DocumentPath) => {
    for (const [index, name] of listed.entries()) {
      if (names.includes(name)) continue;
      const why = isBeeuniTool(name)
        ? `the Beeuni tool "${name}" is not loaded; add it to tools`
        : `no tool is named "${name}"`;
      report.warn([...at, index], `${why}${didYouMean(name, names)}`);
    }
  };
  if (typeof tools === 'object' && 'exclude' in tools) {
    warnAboutUnknown(tools.exclude, [...path, 'exclude']);
    return names.filter((name) => !tools.exclude.includes(name));
  }
  const granted = checkGrant(tools, path, report);
  if (typeof granted !== 'string') warnAboutUnknown(granted, path);
  return granted;
}
