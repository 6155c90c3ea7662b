// What a session works with: the material of its project, and the tools that run in this daemon, offered through the relay with
// the judge of subagents' calls. Must not know how the harness calls them. Source: A44, A45, A110, A127.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import type { DaemonConfig } from '../config.ts';
import type { HarnessHost } from '../harness/contract/adapter.ts';
import type { ToolHost } from '../harness/contract/tools.ts';
import { makeRunModule } from '../tools/project/run-module.ts';
import { startToolHost } from '../tools/tool-host.ts';
import { makeJudge } from './child-rules.ts';
import type { SessionCalls } from './control-plane.ts';
import type { RunGit } from './git/run-git.ts';
import { type ProjectMaterial, prepareMaterial } from './project/material.ts';
import type { Relay } from './relay/relay.ts';

/** The skills that the image brings. Source: A129. */
const MANAGED_SKILLS = fileURLToPath(new URL('../../skills', import.meta.url));

/** Ports. `commandEnvironment` is asked at each call, so that a rotated secret is in it. */
export type SessionToolsPorts = Readonly<{
  config: DaemonConfig;
  claim: ClaimAnswer;
  web: SessionCalls['web'];
  run: RunGit;
  relay: Relay;
  marker: Readonly<{ name: string; value: string }>;
  commandEnvironment: () => Readonly<Record<string, string>>;
  ask: HarnessHost['ask'];
  output: (line: string) => void;
  clock: Clock;
  log: Logger;
}>;

/** Prepares both; the relay serves the tools from here on. Rejects when the signal fires. */
export const prepareSessionTools = async (
  ports: SessionToolsPorts,
  signal: AbortSignal,
): Promise<Readonly<{ material: ProjectMaterial; tools: ToolHost }>> => {
  const { config, claim, relay, marker, log } = ports;
  const { workspaceDir: workspace, searchPath } = config;
  const target = join(config.configDir, 'project');
  const request = { claim, workspace, searchPath, target, managedSkills: MANAGED_SKILLS, signal };
  const material = await prepareMaterial(ports.run, request, log);
  const plainEnvironment = {
    PATH: searchPath,
    HOME: config.homeDir,
    TMPDIR: config.temporaryDir,
    LANG: 'C.UTF-8',
    [marker.name]: marker.value,
  };
  const tools = await startToolHost(
    {
      claim,
      workspace,
      web: ports.web,
      outputDirectory: join(config.temporaryDir, 'beeuni-tool-output'),
      sourceDirectory: material.sourceDirectory,
      run: makeRunModule({ clock: ports.clock, output: ports.output }),
      plainEnvironment,
      callEnvironment: () => ({ ...ports.commandEnvironment(), ...plainEnvironment }),
      log,
    },
    signal,
  );
  relay.offerTools(tools);
  const { agents, agent } = claim;
  relay.judgeBy(makeJudge({ agents, agent, workspace, skills: material.skills, tools: tools.specs, ask: ports.ask }));
  return { material, tools };
};
