// What a command is: words, arguments, options, and what it does. Must not know any single command or how words are parsed.
import type { Api } from './connection/api.ts';
import type { Io } from './io.ts';

/** One option. `value` names what follows it; without one it is a switch. `many`: may be given more than once. */
export type OptionSpec = Readonly<{
  summary: string;
  value?: string;
  short?: string;
  many?: true;
  /** The values that are allowed, for messages and completion. */
  choices?: readonly string[];
}>;

/** Options by their long name. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** The values of options: a switch gives a boolean, a value a text or undefined, many values a list. */
export type OptionValues<O extends OptionSpecs> = {
  readonly [K in keyof O]: O[K] extends { value: string }
    ? O[K] extends { many: true }
      ? readonly string[]
      : string | undefined
    : boolean;
};

/** One argument. `rest` takes all that follow. */
export type ArgumentSpec = Readonly<{ name: string; summary: string; optional?: true; rest?: true }>;

/** One call of a command. */
export type Call<O extends OptionSpecs> = Readonly<{
  options: OptionValues<O>;
  /** The arguments in order; an optional one that was not given is missing. */
  args: readonly string[];
  io: Io;
  /** The control plane, reached on the first use. Errors: CommandError. */
  api: Api;
  /** Writes lines to stdout. */
  print: (...lines: readonly string[]) => void;
  /** Writes lines to stderr. */
  note: (...lines: readonly string[]) => void;
}>;

/** One command. `run` gives back an exit code, 0 when it gives nothing. `needsApi`: takes the options of a connection. */
export type Command<O extends OptionSpecs = OptionSpecs> = Readonly<{
  summary: string;
  arguments?: readonly ArgumentSpec[];
  options: O;
  /** Paragraphs below the options. */
  details?: readonly string[];
  examples?: readonly string[];
  needsApi?: boolean;
  run: (call: Call<O>) => Promise<number | undefined>;
}>;

/** Gives back the command with the exact types of its options. */
export const defineCommand = <const O extends OptionSpecs>(command: Command<O>): Command =>
  command as unknown as Command;

/** Every command takes this. */
export const HELP_OPTION: OptionSpecs = { help: { summary: 'show this help', short: 'h' } };

/** Commands that call the control plane take these. */
export const API_OPTIONS: OptionSpecs = {
  namespace: { summary: 'namespace of projects and sessions', value: 'NAME', short: 'n' },
  server: { summary: 'address of the control plane, in place of the one of the login', value: 'URL' },
};

/** Lists and single objects take this. */
export const JSON_OPTION = { json: { summary: 'print JSON' } } as const satisfies OptionSpecs;
/** Lists over namespaces take this. */
export const ALL_OPTION = {
  'all-namespaces': { summary: 'of all namespaces; needs the right to list in the whole cluster', short: 'A' },
} as const satisfies OptionSpecs;
/** Commands that are about one project take this. */
export const PROJECT_OPTION = {
  project: { summary: 'the project; else BEEUNI_PROJECT_ID, the folder’s, the default one', value: 'NAME', short: 'p' },
} as const satisfies OptionSpecs;
