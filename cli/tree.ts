// The words of the command line: each command with its one line of help and where its code is. The code of a command is loaded
// when it is called, so that help and completion of words start at once. Must not know what a command does.
import type { Command } from './command.ts';

/** One entry. `where`: for people, or inside a sandbox, or both. */
export type Entry = Readonly<{
  name: string;
  summary: string;
  where: 'people' | 'sandbox' | 'both';
  load: () => Promise<Readonly<{ command: Command }>>;
}>;

const people = (name: string, summary: string, load: Entry['load']): Entry => ({
  name,
  summary,
  where: 'people',
  load,
});

/** Every command, in the order of the help. */
export const ENTRIES: readonly Entry[] = [
  people('login', 'connect to a control plane with the current kube context', () => import('./commands/login.ts')),
  people('logout', 'forget the control plane', () => import('./commands/logout.ts')),
  people('whoami', 'show which control plane and namespace are used', () => import('./commands/whoami.ts')),
  people('projects ls', 'list projects', () => import('./commands/projects-ls.ts')),
  people('projects get', 'show one project', () => import('./commands/projects-get.ts')),
  people(
    'projects use',
    'choose the default project, for everywhere or for this folder',
    () => import('./commands/projects-use.ts'),
  ),
  people(
    'projects validate',
    'check a manifest against a project on the server',
    () => import('./commands/projects-validate.ts'),
  ),
  people('projects sync', 'look at the repository now', () => import('./commands/projects-sync.ts')),
  people(
    'projects harness',
    'show which harness a session would run, and why',
    () => import('./commands/projects-harness.ts'),
  ),
  people('agents ls', 'list the agents of a project', () => import('./commands/agents-ls.ts')),
  people('sessions new', 'create a session', () => import('./commands/sessions-new.ts')),
  people('sessions ls', 'list sessions', () => import('./commands/sessions-ls.ts')),
  people('sessions info', 'show one session', () => import('./commands/sessions-info.ts')),
  people('sessions chat', 'talk to a session, or send one prompt', () => import('./commands/sessions-chat.ts')),
  people('sessions connect', 'show what was said so far, then talk', () => import('./commands/sessions-connect.ts')),
  people('sessions log', 'print the event log of a session', () => import('./commands/sessions-log.ts')),
  people('sessions abort', 'end the running turn', () => import('./commands/sessions-abort.ts')),
  people('sessions start', 'start a suspended session', () => import('./commands/sessions-start.ts')),
  people('sessions stop', 'suspend a session and keep its files', () => import('./commands/sessions-stop.ts')),
  people('sessions restart', 'restart the sandbox of a session', () => import('./commands/sessions-restart.ts')),
  people('sessions rm', 'delete a session with its files and log', () => import('./commands/sessions-rm.ts')),
  people('sessions approve', 'allow or refuse what an agent asks for', () => import('./commands/sessions-approve.ts')),
  people('sessions answer', 'answer what an agent asks', () => import('./commands/sessions-answer.ts')),
  people('sessions model', 'show or change the model of a session', () => import('./commands/sessions-model.ts')),
  people('sessions scope', 'show or choose the secrets that it may see', () => import('./commands/sessions-scope.ts')),
  people('sessions files', 'list, print or write files of the workspace', () => import('./commands/sessions-files.ts')),
  people('sessions diff', 'show what a session has changed', () => import('./commands/sessions-diff.ts')),
  people('sessions logs', 'print what the sandbox has logged', () => import('./commands/sessions-logs.ts')),
  people('sessions shell', 'open a shell in the sandbox', () => import('./commands/sessions-shell.ts')),
  people('sessions commands', 'list slash commands, or run one', () => import('./commands/sessions-commands.ts')),
  people('sessions compact', 'shrink the conversation', () => import('./commands/sessions-compact.ts')),
  people('sessions rewind', 'go back to before a message', () => import('./commands/sessions-rewind.ts')),
  people(
    'sessions fork',
    'go on from before a message as another conversation',
    () => import('./commands/sessions-fork.ts'),
  ),
  people(
    'sessions children',
    'list conversations of subagents, or print one',
    () => import('./commands/sessions-children.ts'),
  ),
  people('sessions search', 'search the visible text', () => import('./commands/sessions-search.ts')),
  people('sessions todo', 'show the plan of the agent', () => import('./commands/sessions-todo.ts')),
  people('sessions mcp', 'list the MCP servers of the harness', () => import('./commands/sessions-mcp.ts')),
  people('sessions runs', 'list the runs and their outcomes', () => import('./commands/sessions-runs.ts')),
  people('sessions harness', 'show which harness runs now and next', () => import('./commands/sessions-harness.ts')),
  people('requests', 'list what waits for your answer', () => import('./commands/requests.ts')),
  people('prompts ls', 'list the prompts of a session', () => import('./commands/prompts-ls.ts')),
  people('prompts rm', 'withdraw a prompt that still waits', () => import('./commands/prompts-rm.ts')),
  people('models ls', 'list the registered models', () => import('./commands/models-ls.ts')),
  people('models validate', 'check model names', () => import('./commands/models-validate.ts')),
  people('providers ls', 'list the model providers', () => import('./commands/providers-ls.ts')),
  people('providers check', 'reach a provider and list its models', () => import('./commands/providers-check.ts')),
  {
    name: 'tools ls',
    summary: 'list the tools that the manifest of this folder loads',
    where: 'both',
    load: () => import('./commands/tools-ls.ts'),
  },
  {
    name: 'connectors',
    summary: 'list the connectors that the manifest of this folder declares',
    where: 'both',
    load: () => import('./commands/connectors.ts'),
  },
  {
    name: 'system-skills list',
    summary: 'list the skills that come with Beeuni',
    where: 'both',
    load: () => import('./commands/system-skills-list.ts'),
  },
  {
    name: 'system-skills get',
    summary: 'print one of them',
    where: 'both',
    load: () => import('./commands/system-skills-get.ts'),
  },
  {
    name: 'system-skills path',
    summary: 'print where they are',
    where: 'both',
    load: () => import('./commands/system-skills-path.ts'),
  },
  {
    name: 'validate',
    summary: 'check a beeuni.yaml in a folder, offline',
    where: 'both',
    load: () => import('./commands/validate.ts'),
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of beeuni.yaml',
    where: 'both',
    load: () => import('./commands/schema.ts'),
  },
  {
    name: 'completion',
    summary: 'print a completion script for a shell',
    where: 'people',
    load: () => import('./commands/completion.ts'),
  },
  { name: 'version', summary: 'print the version', where: 'both', load: () => import('./commands/version.ts') },
];

/** Other words for commands; each stands for the words of one entry. `connect` is A237's. */
export const ALIASES: Readonly<Record<string, string>> = {
  connect: 'sessions connect',
  tools: 'tools ls',
  'sessions queue': 'prompts ls',
  'sessions pending': 'requests',
  'sessions approvals': 'requests',
  'system-skills ls': 'system-skills list',
  'projects list': 'projects ls',
  'sessions list': 'sessions ls',
  'sessions get': 'sessions info',
  'sessions status': 'sessions info',
  'sessions delete': 'sessions rm',
  'sessions create': 'sessions new',
};

/** The entries that can be called here. */
export const entriesFor = (place: 'people' | 'sandbox'): readonly Entry[] =>
  ENTRIES.filter(({ where }) => where === place || where === 'both');

/** What the words of a call name. `unknown`: nothing; `group`: words that only begin commands. */
export type Found =
  | Readonly<{ kind: 'command'; entry: Entry; rest: readonly string[] }>
  | Readonly<{ kind: 'group'; name: string }>
  | Readonly<{ kind: 'unknown'; word: string; group: string }>;

/** Finds the command whose words begin the call; the longest name wins. */
export const findCommand = (entries: readonly Entry[], words: readonly string[]): Found => {
  for (const count of [2, 1]) {
    const given = words.slice(0, count).join(' ');
    if (words.length < count || words.slice(0, count).some((word) => word.startsWith('-'))) continue;
    const name = Object.hasOwn(ALIASES, given) ? ALIASES[given] : given;
    const entry = entries.find((candidate) => candidate.name === name);
    if (entry !== undefined) return { kind: 'command', entry, rest: words.slice(count) };
  }
  const [first = '', second] = words;
  const isGroup = entries.some(({ name }) => name.startsWith(`${first} `));
  if (isGroup && (second === undefined || second.startsWith('-'))) return { kind: 'group', name: first };
  return isGroup ? { kind: 'unknown', word: second ?? '', group: first } : { kind: 'unknown', word: first, group: '' };
};
