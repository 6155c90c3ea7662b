// Runs one call from its words to its exit code. Must not know the process; io is handed over. Nothing that goes wrong here
// reaches a person as a stack trace.
import { didYouMean } from '#schema/rules/nearest-names.ts';
import type { Call, Command, OptionSpecs } from './command.ts';
import type { Api } from './connection/api.ts';
import { EXIT, failureOf, usageError } from './failure.ts';
import { commandHelp, listHelp } from './help.ts';
import type { Io } from './io.ts';
import { type ParsedWords, parseWords } from './parse-words.ts';
import { ENTRIES, entriesFor, findCommand } from './tree.ts';

/** Whether this runs in a sandbox of Beeuni, where the daemon sets these for every command. Source: A202. */
export const isSandbox = (env: Io['env']): boolean =>
  env['BEEUNI_SESSION_UID'] !== undefined && env['BEEUNI_SESSION'] !== undefined;

const writeLines = (stream: NodeJS.WritableStream, lines: readonly string[]): void => {
  if (lines.length > 0) stream.write(`${lines.join('\n')}\n`);
};

/** Loaded only where it is needed: schemas and the client take longer than a short command. */
const openApi = async (io: Io, options: ParsedWords['options']): Promise<Api> => {
  const { makeApi } = await import('./connection/api.ts');
  const text = (name: string): string | undefined => {
    const value = options[name];
    return typeof value === 'string' ? value : undefined;
  };
  return makeApi(io, { server: text('server'), namespace: text('namespace') });
};

const runCommand = async (io: Io, name: string, command: Command, words: readonly string[]): Promise<number> => {
  const { options, args } = parseWords(name, command, words);
  if (options['help'] === true) {
    writeLines(io.stdout, commandHelp(name, command));
    return EXIT.done;
  }
  const api = command.needsApi === true ? await openApi(io, options) : undefined;
  try {
    const call = {
      options,
      args,
      io,
      api,
      print: (...lines: readonly string[]) => writeLines(io.stdout, lines),
      note: (...lines: readonly string[]) => writeLines(io.stderr, lines),
    } as Call<OptionSpecs>;
    return (await command.run(call)) ?? EXIT.done;
  } catch (error) {
    const { lines, exitCode } = failureOf(error, api?.hintOf);
    writeLines(io.stderr, lines);
    return exitCode;
  } finally {
    api?.close();
  }
};

/** Runs the call that `words` make and gives back its exit code. Never rejects. */
export const runCli = async (words: readonly string[], io: Io): Promise<number> => {
  try {
    const entries = entriesFor(isSandbox(io.env) ? 'sandbox' : 'people');
    const [first] = words;
    if (first === undefined || first === '--help' || first === '-h' || (first === 'help' && words.length === 1)) {
      writeLines(io.stdout, listHelp(entries));
      return first === undefined ? EXIT.usage : EXIT.done;
    }
    if (first === '--version') return await runCli(['version'], io);
    if (first === 'help') return await runCli([...words.slice(1), '--help'], io);
    const found = findCommand(entries, words);
    if (found.kind === 'group') {
      writeLines(io.stdout, listHelp(entries, found.name));
      return words.includes('--help') || words.includes('-h') ? EXIT.done : EXIT.usage;
    }
    if (found.kind === 'unknown') {
      if (findCommand(ENTRIES, words).kind !== 'unknown') {
        throw usageError(
          `beeuni ${words.slice(0, 2).join(' ')} does not work inside a sandbox`,
          'there is no credential here; call it from your own terminal',
        );
      }
      const known = entries
        .filter(({ name }) => found.group === '' || name.startsWith(`${found.group} `))
        .map(({ name }) => name.split(' ')[found.group === '' ? 0 : 1] ?? '');
      const near = didYouMean(found.word, new Set(known)).replaceAll('"', '');
      throw usageError(
        `there is no command ${`${found.group} ${found.word}`.trim()}${near}`,
        'beeuni --help lists all',
      );
    }
    const { command } = await found.entry.load();
    return await runCommand(io, found.entry.name, command, found.rest);
  } catch (error) {
    const { lines, exitCode } = failureOf(error);
    writeLines(io.stderr, lines);
    return exitCode;
  }
};
