// The texts of --help. Pure. Must not know what a command does.
import type { Command, OptionSpecs } from './command.ts';
import { optionsOf } from './parse-words.ts';
import type { Entry } from './tree.ts';

const columns = (rows: readonly (readonly [string, string])[]): readonly string[] => {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
};

const optionRows = (specs: OptionSpecs): readonly (readonly [string, string])[] =>
  Object.entries(specs).map(([name, { short, value, summary, choices }]) => {
    const left = `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
    return [left, choices === undefined ? summary : `${summary} (${choices.join(', ')})`];
  });

/** One line that says how a command is called. */
export const usageLine = (name: string, command: Command): string => {
  const args = (command.arguments ?? []).map((spec) => {
    const word = spec.rest === true ? `${spec.name}...` : spec.name;
    return spec.optional === true ? `[${word}]` : word;
  });
  return ['beeuni', name, ...args, '[options]'].join(' ');
};

/** The help of one command. */
export const commandHelp = (name: string, command: Command): readonly string[] => {
  const args = command.arguments ?? [];
  const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : ['', title, ...lines]);
  return [
    `Usage: ${usageLine(name, command)}`,
    '',
    `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`,
    ...section('Arguments:', columns(args.map((spec) => [spec.name, spec.summary]))),
    ...section('Options:', columns(optionRows(optionsOf(command)))),
    ...(command.details ?? []).flatMap((text) => ['', text]),
    ...section(
      'Examples:',
      (command.examples ?? []).map((line) => `  $ ${line}`),
    ),
  ];
};

/** The list of commands, all or those of one group. */
export const listHelp = (entries: readonly Entry[], group?: string): readonly string[] => {
  const shown = group === undefined ? entries : entries.filter(({ name }) => name.startsWith(`${group} `));
  return [
    `Usage: beeuni ${group === undefined ? '' : `${group} `}COMMAND [options]`,
    '',
    ...columns(shown.map(({ name, summary }) => [name, summary])),
    '',
    'beeuni COMMAND --help says more. Exit codes: 0 done, 1 failed, 2 wrong call, 3 not allowed, 4 not found,',
    '5 refused now, 6 no answer, 130 interrupted.',
  ];
};
