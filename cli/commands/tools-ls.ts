// `beeuni tools`: the tools that the manifest of this folder loads, and who may use them. Source: A44, A94, A112.
import { BEEUNI_TOOLS } from '#schema/manifest/manifest.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { findManifest } from '../manifest-file.ts';
import { printList } from '../print-page.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the tools that the manifest of this folder loads',
  options: { ...JSON_OPTION, all: { summary: 'with those of Beeuni that are not loaded' } },
  run: async (call) => {
    const { verdict } = findManifest(call.io.cwd);
    const manifest = verdict.manifest;
    if (manifest === undefined) throw new Error('a manifest without errors has no content');
    const agentsOf = (tool: string): readonly string[] =>
      manifest.agents
        .filter(({ tools }) => tools === 'all' || (tools !== 'none' && tools.includes(tool)))
        .map(({ name }) => name);
    const loaded: ReadonlySet<string> = new Set(manifest.beeuniTools);
    const tools = [
      ...BEEUNI_TOOLS.filter((name) => call.options.all || loaded.has(name)).map((name) => ({
        name,
        source: `beeuni:${name}`,
        loaded: loaded.has(name),
        agents: loaded.has(name) ? agentsOf(name) : [],
      })),
      ...manifest.projectTools.map(({ name, path }) => ({ name, source: path, loaded: true, agents: agentsOf(name) })),
    ];
    printList(
      call,
      call.options.json,
      tools,
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'SOURCE', cell: ({ source }) => source },
        { head: 'LOADED', cell: (tool) => (tool.loaded ? 'yes' : 'no') },
        { head: 'AGENTS', cell: ({ agents }) => agents.join(',') },
      ],
      'the manifest loads no tool',
    );
    return undefined;
  },
});
