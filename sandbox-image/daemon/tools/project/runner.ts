// The program of a process that holds one project tool: it loads the module, describes it or runs it once, and ends. Job
// and answer are JSON on descriptors of their own, so that what a module prints disturbs nothing.
// Started by run-module.ts only. Imports nothing of ours. Source: A106, A107, A109.
import { readFileSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

type Job = Readonly<{
  module: string;
  /** undefined: only describe. */
  call?: Readonly<{ arguments: unknown; context: Readonly<Record<string, unknown>> }> | undefined;
}>;

const ANSWER_DESCRIPTOR = 3;

const answer = (value: unknown): never => {
  const bytes = Buffer.from(JSON.stringify(value));
  for (let at = 0; at < bytes.length; ) at += writeSync(ANSWER_DESCRIPTOR, bytes, at);
  process.exit(0);
};

const wordError = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 4_096);

type Exported = Readonly<{ description?: unknown; parameters?: unknown; execute?: unknown }>;

const problemOf = ({ description, parameters, execute }: Exported): string | undefined => {
  if (typeof description !== 'string' || description.trim() === '') return 'its description is no text, or empty';
  const isSchema = typeof parameters === 'object' && parameters !== null && !Array.isArray(parameters);
  if (!isSchema || (parameters as Readonly<Record<string, unknown>>)['type'] !== 'object') {
    return 'its parameters are no JSON Schema of type object';
  }
  return typeof execute === 'function' ? undefined : 'its execute is no function';
};

const main = async (): Promise<void> => {
  const job = JSON.parse(readFileSync(0, 'utf8')) as Job;
  let exported: Exported | undefined;
  try {
    exported = ((await import(pathToFileURL(job.module).href)) as Readonly<{ default?: Exported }>).default;
  } catch (error) {
    answer({ kind: 'unusable', message: `it does not load: ${wordError(error)}` });
  }
  if (typeof exported !== 'object' || exported === null) {
    return answer({ kind: 'unusable', message: 'it has no default export' });
  }
  const problem = problemOf(exported);
  if (problem !== undefined) answer({ kind: 'unusable', message: problem });
  if (job.call === undefined) {
    return answer({ kind: 'described', description: exported.description, parameters: exported.parameters });
  }
  const abort = new AbortController();
  process.on('SIGTERM', () => abort.abort(new Error('the call was aborted')));
  const execute = exported.execute as (args: unknown, context: unknown) => unknown;
  try {
    const context = { ...job.call.context, env: { ...process.env }, signal: abort.signal };
    const result = await execute(job.call.arguments, context);
    const output = typeof result === 'string' ? result : JSON.stringify(result ?? null, null, 2);
    answer({ kind: 'completed', output });
  } catch (error) {
    answer({ kind: 'failed', message: wordError(error) });
  }
};

await main();
