// Reads the words of a call: which command, its options and arguments, or what is wrong with them. Pure.
import { parseArgs } from 'node:util';
import { didYouMean } from '#schema/rules/nearest-names.ts';
import { API_OPTIONS, type Command, HELP_OPTION, type OptionSpec, type OptionSpecs } from './command.ts';
import { usageError } from './failure.ts';

/** All options that a command takes, its own first. */
export const optionsOf = (command: Command): OptionSpecs => ({
  ...command.options,
  ...(command.needsApi === true ? API_OPTIONS : {}),
  ...HELP_OPTION,
});

/** What was given, by option name. */
export type ParsedWords = Readonly<{
  options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
  args: readonly string[];
}>;

const settingOf = (spec: OptionSpec) => ({
  type: spec.value === undefined ? ('boolean' as const) : ('string' as const),
  ...(spec.short === undefined ? {} : { short: spec.short }),
  ...(spec.many === true ? { multiple: true } : {}),
});

const REFUSED_OPTIONS: Readonly<Record<string, string>> = {
  harness: 'the harness follows from the project’s flags and its manifest: see beeuni projects harness',
  token: 'a token on a command line is seen by others: set BEEUNI_TOKEN, or log in: beeuni login',
};

const parseError = (name: string, specs: OptionSpecs, error: unknown): Error => {
  const message = error instanceof Error ? error.message : String(error);
  const help = `beeuni ${name} --help lists its options`;
  const unknown = /Unknown option '(-{1,2}[^']*)'/.exec(message)?.[1];
  if (unknown !== undefined) {
    const word = unknown.replace(/^-+/, '');
    const refused = Object.hasOwn(REFUSED_OPTIONS, word) ? REFUSED_OPTIONS[word] : undefined;
    const near = didYouMean(word, Object.keys(specs)).replaceAll('"', '');
    return usageError(`beeuni ${name} has no option ${unknown}${near}`, refused ?? help);
  }
  const missing = /Option '(?:-\w, )?(--[\w-]+)[^']*' argument (?:missing|is ambiguous)/.exec(message)?.[1];
  if (missing !== undefined) return usageError(`${missing} needs a value`, help);
  const given = /Option '(?:-\w, )?(--[\w-]+)[^']*' does not take an argument/.exec(message)?.[1];
  if (given !== undefined) return usageError(`${given} takes no value`, help);
  return usageError(message.split('.')[0] ?? message, help);
};

const checkChoices = (specs: OptionSpecs, options: ParsedWords['options']): void => {
  for (const [name, { choices }] of Object.entries(specs)) {
    const value = options[name];
    if (choices !== undefined && typeof value === 'string' && !choices.includes(value)) {
      throw usageError(`--${name} takes ${choices.join(', ')}, not ${value}`);
    }
  }
};

/**
 * Options and arguments of a command. Switches that were not given are false, lists empty. With `--help` the arguments are not
 * checked. Throws CommandError (usage) that names what is wrong.
 */
export const parseWords = (name: string, command: Command, words: readonly string[]): ParsedWords => {
  const specs = optionsOf(command);
  let parsed: Readonly<{ values: Record<string, unknown>; positionals: readonly string[] }>;
  try {
    parsed = parseArgs({
      args: [...words],
      options: Object.fromEntries(Object.entries(specs).map(([key, spec]) => [key, settingOf(spec)])),
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw parseError(name, specs, error);
  }
  const options = Object.fromEntries(
    Object.entries(specs).map(([key, spec]) => {
      const value = parsed.values[key] as string | boolean | readonly string[] | undefined;
      if (spec.value === undefined) return [key, value === true];
      return [key, spec.many === true ? (value ?? []) : value];
    }),
  );
  checkChoices(specs, options);
  if (options['help'] !== true) checkArguments(name, command, parsed.positionals);
  return { options, args: parsed.positionals };
};

const checkArguments = (name: string, command: Command, given: readonly string[]): void => {
  const specs = command.arguments ?? [];
  const help = `beeuni ${name} --help says how it is called`;
  const missing = specs.find((spec, at) => spec.optional !== true && given[at] === undefined);
  if (missing !== undefined) throw usageError(`${missing.name} is missing`, help);
  const takesRest = specs.some(({ rest }) => rest === true);
  if (!takesRest && given.length > specs.length) {
    throw usageError(`beeuni ${name} does not know what to do with ${given[specs.length]}`, help);
  }
};
