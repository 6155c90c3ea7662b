// `beeuni schema`: the JSON Schema of a manifest or an agent file, for editors. Source: A85.
import { AgentFrontmatterSchema } from '#schema/manifest/agent-file.ts';
import { ManifestSchema } from '#schema/manifest/manifest.ts';
import { strictJsonSchema } from '#schema/structural.ts';
import { defineCommand } from '../command.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print the JSON Schema of beeuni.yaml, or of the frontmatter of agent files',
  options: {
    version: { summary: 'version of the manifest', value: 'N', choices: ['2'] },
    agent: { summary: 'the schema of agents/*.md in place of the manifest’s' },
  },
  examples: ['beeuni schema --version 2 > .vscode/beeuni.schema.json'],
  run: async ({ options, print }) => {
    const [title, schema] = options.agent
      ? (['Frontmatter of an agent file', AgentFrontmatterSchema] as const)
      : (['beeuni.yaml', ManifestSchema] as const);
    const draft = { $schema: 'https://json-schema.org/draft/2020-12/schema', title, ...strictJsonSchema(schema) };
    print(JSON.stringify(draft, null, 2));
    return undefined;
  },
});
