// `beeuni completion`: a script that completes commands and options, made from the commands themselves.
import { defineCommand, type OptionSpecs } from '../command.ts';
import { usageError } from '../failure.ts';
import { optionsOf } from '../parse-words.ts';
import { type Entry, entriesFor } from '../tree.ts';

type Known = Readonly<{ entry: Entry; specs: OptionSpecs }>;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const flagsOf = (specs: OptionSpecs): readonly string[] =>
  Object.entries(specs).flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);

/** Words after each group, and the groups themselves under the empty text. */
const wordsAfter = (known: readonly Known[]): ReadonlyMap<string, readonly string[]> => {
  const after = new Map<string, string[]>([['', []]]);
  for (const { entry } of known) {
    const [first = '', second] = entry.name.split(' ');
    const top = after.get('') ?? [];
    if (!top.includes(first)) top.push(first);
    if (second !== undefined) after.set(first, [...(after.get(first) ?? []), second]);
  }
  return after;
};

const bash = (known: readonly Known[]): readonly string[] => [
  '# beeuni completion bash: put `source <(beeuni completion bash)` into ~/.bashrc',
  '_beeuni() {',
  '  local word="${COMP_WORDS[COMP_CWORD]}" first="${COMP_WORDS[1]}" second="${COMP_WORDS[2]}" words=""',
  '  if [ "$COMP_CWORD" -eq 1 ]; then',
  `    words=${quoted((wordsAfter(known).get('') ?? []).join(' '))}`,
  '  else',
  '    case "$first $second" in',
  ...known
    .filter(({ entry }) => entry.name.includes(' '))
    .map(({ entry, specs }) => `      ${quoted(entry.name)}) words=${quoted(flagsOf(specs).join(' '))} ;;`),
  '      *)',
  '        case "$first" in',
  ...[...wordsAfter(known)]
    .filter(([group]) => group !== '')
    .map(([group, words]) => `          ${group}) words=${quoted(words.join(' '))} ;;`),
  ...known
    .filter(({ entry }) => !entry.name.includes(' '))
    .map(({ entry, specs }) => `          ${entry.name}) words=${quoted(flagsOf(specs).join(' '))} ;;`),
  '        esac ;;',
  '    esac',
  '  fi',
  '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
  '}',
  'complete -o default -F _beeuni beeuni kubectl-beeuni',
];

const zsh = (known: readonly Known[]): readonly string[] => [
  '#compdef beeuni kubectl-beeuni',
  '# beeuni completion zsh: put `source <(beeuni completion zsh)` into ~/.zshrc, after compinit',
  'autoload -Uz bashcompinit && bashcompinit',
  ...bash(known),
];

const fish = (known: readonly Known[]): readonly string[] => [
  '# beeuni completion fish: put `beeuni completion fish | source` into ~/.config/fish/config.fish',
  'complete -c beeuni -f',
  ...known.flatMap(({ entry, specs }) => {
    const [first = '', second] = entry.name.split(' ');
    const seen = second === undefined ? first : `${first}; and __fish_seen_subcommand_from ${second}`;
    const start =
      second === undefined
        ? `complete -c beeuni -n __fish_use_subcommand -a ${first} -d ${quoted(entry.summary)}`
        : `complete -c beeuni -n "__fish_seen_subcommand_from ${first}" -a ${second} -d ${quoted(entry.summary)}`;
    const flags = Object.entries(specs).map(([name, { short, value, summary }]) => {
      const words = `-l ${name}${short === undefined ? '' : ` -s ${short}`}${value === undefined ? '' : ' -r'}`;
      return `complete -c beeuni -n "__fish_seen_subcommand_from ${seen}" ${words} -d ${quoted(summary)}`;
    });
    return [start, ...flags];
  }),
  ...[...new Set(known.map(({ entry }) => entry.name.split(' ')))]
    .filter(([, second]) => second !== undefined)
    .map(([first = '']) => first)
    .filter((first, at, all) => all.indexOf(first) === at)
    .map((first) => `complete -c beeuni -n __fish_use_subcommand -a ${first}`),
];

/** See the file. */
export const command = defineCommand({
  summary: 'print a completion script for a shell',
  arguments: [{ name: 'SHELL', summary: 'bash, zsh or fish' }],
  options: {},
  run: async ({ args, print }) => {
    const shells = { bash, zsh, fish } as const;
    const shell = args[0] ?? '';
    if (!Object.hasOwn(shells, shell)) {
      throw usageError(`there is no completion for ${shell}`, 'bash, zsh and fish have one');
    }
    const known = await Promise.all(
      entriesFor('people').map(async (entry) => ({ entry, specs: optionsOf((await entry.load()).command) })),
    );
    print(...shells[shell as keyof typeof shells](known));
    return undefined;
  },
});
