// `beeuni connectors`: what the manifest of this folder declares, and whether this session's agent is granted it. Source: A237.
import { defineCommand, JSON_OPTION } from '../command.ts';
import { findManifest } from '../manifest-file.ts';
import { printList } from '../print-page.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the connectors that the manifest of this folder declares',
  options: JSON_OPTION,
  run: async (call) => {
    const manifest = findManifest(call.io.cwd).verdict.manifest;
    if (manifest === undefined) throw new Error('a manifest without errors has no content');
    const name = call.io.env['BEEUNI_AGENT'] ?? manifest.defaultAgent;
    const grant = manifest.agents.find((agent) => agent.name === name)?.connectors ?? 'none';
    const isGranted = (slug: string): boolean => grant === 'all' || (grant !== 'none' && grant.includes(slug));
    printList(
      call,
      call.options.json,
      manifest.connectors.map((slug) => ({ slug, agent: name, granted: isGranted(slug) })),
      [
        { head: 'NAME', cell: ({ slug }) => slug },
        { head: 'AGENT', cell: ({ agent }) => agent },
        { head: 'GRANTED', cell: ({ granted }) => (granted ? 'yes' : 'no') },
      ],
      'the manifest declares no connector',
    );
    return undefined;
  },
});
