// The project of the contract suite, as its repository has it. Knows neither harness but by the folders that a project has
// for them.

const tool = (body: string): string =>
  `export default { description: 'A tool of the project.', parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }, async execute(args, context) { ${body} } };\n`;

const MANIFEST = `beeuni_version: 2
default_agent: dev
tools:
  web_search: beeuni:web_search
  image_search: beeuni:image_search
  scrape_webpage: beeuni:scrape_webpage
  memory: beeuni:memory
  show: beeuni:show
  weigh: tools/weigh.ts
connectors:
  - slug: tracker
    provider: mcp
    url: https://tracker.example/mcp
harnesses:
  pi:
    packages: ['./packages/plan']
agents:
  dev:
    tools: all
    skills: all
    secrets: all
    connectors: all
  writer:
    tools: [weigh]
    skills: [baking]
  lister:
    tools: {exclude: [show]}
    skills: none
  guard:
    tools: all
    skills: none
  helper:
    tools: all
    skills: all
`;

/** Path to content. */
export const PROJECT_FILES: Readonly<Record<string, string>> = {
  'beeuni.yaml': MANIFEST,
  'README.md': '# Shop\n',
  'AGENTS.md': 'Marker of the rules: bumblebee.\n',
  'src/AGENTS.md': 'Marker of a folder: wasp.\n',
  'src/hive.ts': 'export const hive = 1;\n',
  'memory/notes.md': 'The queen is in cell 7.\n',
  'agents/dev.md': `---
description: Works in the repository
mode: primary
permission:
  bash: {'*': allow, 'touch *': ask, 'touch never*': deny}
  websearch: ask
---
You are the developer.
`,
  'agents/writer.md': `---
description: Writes texts
mode: all
model: scripted/small
variant: high
temperature: 0.25
top_p: 0.5
steps: 2
options: {beeuni_option: honey}
permission:
  edit: deny
---
You are the writer.
`,
  'agents/lister.md': '---\nmode: primary\n---\nYou are the lister.\n',
  'agents/guard.md': '---\nmode: primary\npermission:\n  edit: deny\n---\nYou are the guard.\n',
  'agents/helper.md': '---\nmode: subagent\ndescription: Helps\npermission:\n  edit: deny\n---\nYou are the helper.\n',
  'skills/baking/SKILL.md': '---\nname: baking\ndescription: How to bake honey cakes.\n---\nUse the oven.\n',
  'skills/cleaning/SKILL.md': '---\nname: cleaning\ndescription: How to clean the hive.\n---\nUse water.\n',
  'tools/weigh.ts': tool('return { text: args.text, agent: context.agent, key: context.env.SHOP_KEY ?? null }'),
  'packages/plan/package.json': '{"name":"plan","version":"1.0.0","pi":{"extensions":["./plan.ts"]}}\n',
  'packages/plan/plan.ts': `export default (pi: any) => pi.registerTool({ name: 'plan_note', label: 'n', description: 'Notes a plan',
  parameters: { type: 'object', properties: { note: { type: 'string' } } },
  execute: async (_id: string, input: any) => ({ content: [{ type: 'text', text: 'noted ' + input.note }] }) });
`,
  'harnesses/pi/settings.json': '{"compaction":{"keepRecentTokens":1}}\n',
  'harnesses/pi/prompts/greet.md': '---\ndescription: Greets\n---\n@@say hello $1\n',
  'harnesses/opencode/commands/welcome.md': '---\ndescription: Welcomes\n---\n@@say welcome $1\n',
  'harnesses/opencode/opencode.jsonc': '{ "command": { "bye": { "template": "@@say bye", "description": "Bye" } } }\n',
};
