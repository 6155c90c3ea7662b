// Puts the tools of one session together: Beeuni's own that the manifest loads, then the project's.
// Must not know harnesses. Source: A44, A45.
import type { ToolHost } from '#daemon/harness/contract/tools.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import { makeCutOutput } from './cut-output.ts';
import type { Tool } from './define-tool.ts';
import { memoryTool } from './memory.ts';
import { loadProjectTools, type ProjectToolPorts } from './project/project-tools.ts';
import { createToolHost } from './registry.ts';
import { showTool } from './show.ts';
import { imageSearchTool, scrapeWebpageTool, type WebAccess, webSearchTool } from './web.ts';

/** Ports of the tools. `outputDirectory`: where long outputs are kept. */
export type SessionToolPorts = Omit<ProjectToolPorts, 'tools' | 'sessionUid'> &
  Readonly<{
    claim: Pick<ClaimAnswer, 'agent' | 'agents' | 'beeuniTools' | 'projectTools' | 'session'>;
    web: WebAccess;
    outputDirectory: string;
  }>;

/** All tools of Beeuni. */
export const beeuniTools = (workspace: string, web: WebAccess): readonly Tool[] => [
  webSearchTool(web),
  imageSearchTool(web),
  scrapeWebpageTool(web),
  memoryTool(workspace),
  showTool(workspace),
];

/** The tool host of a session. Never rejects. */
export const startToolHost = async (ports: SessionToolPorts, signal: AbortSignal): Promise<ToolHost> => {
  const { claim, workspace, web, log } = ports;
  const loaded = claim.beeuniTools;
  const own = beeuniTools(workspace, web).filter(({ spec }) => loaded === undefined || loaded.includes(spec.name));
  const project = await loadProjectTools(
    { ...ports, tools: claim.projectTools, sessionUid: claim.session.uid },
    signal,
  );
  return createToolHost({
    tools: [...own, ...project],
    agents: claim.agents,
    sessionAgent: claim.agent,
    cutOutput: makeCutOutput(ports.outputDirectory),
    log,
  });
};
