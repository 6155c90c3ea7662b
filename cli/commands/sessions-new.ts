// `beeuni sessions new`. Source: A239, D4 (a prompt in a custom resource is at most 8 KiB).
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DnsLabel46 } from '#schema/primitives.ts';
import { listPromptsRoute } from '#schema/rest/prompts.ts';
import { createSessionRoute, getSessionRoute, type SessionView } from '#schema/rest/sessions.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import type { Api, ObjectName } from '../connection/api.ts';
import { CommandError, EXIT, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainJson } from '../plain-text.ts';
import { readPiped, secondsOf, sendPrompt, watchPrompt } from '../send-prompt.ts';
import { watchState } from '../watch-state.ts';

/** Longest first prompt that stands in the resource. Units: bytes. */
const MAX_SPEC_PROMPT_BYTES = 8_192;
const POLL_MS = 500;

/** A free name from the project's, not above the limit of names. */
const newName = (project: string): string => {
  const end = `-${randomBytes(3).toString('hex')}`;
  return `${project.slice(0, (DnsLabel46.maxLength ?? 0) - end.length).replace(/-+$/, '')}${end}`;
};

/** The prompt that the session was made with, once the control plane has it in its inbox. */
const firstPrompt = async (api: Api, session: ObjectName, signal: AbortSignal): Promise<string> => {
  for (;;) {
    const client = await api.client();
    const { items } = (await client.call(listPromptsRoute, { params: session, query: { limit: 50 } })).body;
    const first = items.at(-1);
    if (first !== undefined) return first.id;
    await wait(POLL_MS, undefined, { signal });
  }
};

/** Waits until the session can work. Errors: CommandError when it has failed or the time is over. */
const waitUntilReady = async (
  api: Api,
  session: ObjectName,
  seconds: number,
  waiting: Readonly<{ note: (line: string) => void; signal: AbortSignal }>,
): Promise<void> => {
  const untilMs = performance.now() + seconds * 1_000;
  const look = (view: SessionView): boolean => {
    if (view.ready === 'True') return true;
    const why = view.message === null ? '' : `: ${view.message}`;
    if (view.phase === 'Failed') throw new CommandError(EXIT.failed, `session ${session.name} failed${why}`);
    if (performance.now() <= untilMs) return false;
    throw new CommandError(
      EXIT.unavailable,
      `session ${session.name} is not ready after ${seconds} s${why}`,
      `it goes on: beeuni sessions info ${session.name}`,
    );
  };
  await watchState(api, session, { ...waiting, look });
};

/** See the file. */
export const command = defineCommand({
  summary: 'create a session: one agent at work on one branch of a project',
  arguments: [{ name: 'NAME', summary: 'name of the session; made from the project’s otherwise', optional: true }],
  options: {
    ...PROJECT_OPTION,
    prompt: { summary: 'the first prompt; - reads it from a pipe', value: 'TEXT' },
    agent: { summary: 'agent of the session', value: 'NAME' },
    model: { summary: 'model of the session', value: 'PROVIDER/MODEL' },
    branch: { summary: 'name of the session’s branch', value: 'NAME' },
    base: { summary: 'branch that it starts from', value: 'NAME' },
    task: { summary: 'end the session with the turn of its prompt' },
    wait: { summary: 'until it is ready or, with a prompt, until its turn has ended; shows the turn', short: 'w' },
    timeout: { summary: 'how long --wait waits for it to be ready; 600 otherwise', value: 'SECONDS' },
    ...JSON_OPTION,
  },
  needsApi: true,
  details: ['With --wait the exit code is 1 when the session fails or its first turn does not succeed.'],
  examples: ['beeuni sessions new fix-login -p shop --prompt "Fix the login form." --wait'],
  run: async ({ api, args, options, io, print, note }) => {
    const project = api.requireProject(options.project);
    const text = options.prompt === '-' ? await readPiped(io) : options.prompt;
    const seconds = secondsOf(options.timeout) ?? 600;
    if (options.task && text === undefined) throw usageError('--task needs --prompt');
    const inSpec = text !== undefined && Buffer.byteLength(text) <= MAX_SPEC_PROMPT_BYTES;
    if (options.task && !inSpec) throw usageError('the prompt of a task is at most 8 KiB');
    const given = api.nameOf(args[0] ?? newName(project.name));
    if (args[0]?.includes('/') === true && given.namespace !== project.namespace) {
      throw usageError('a session lives in the namespace of its project', `it is ${project.namespace}`);
    }
    const session: ObjectName = { namespace: project.namespace, name: given.name };
    const branch = {
      ...(options.branch === undefined ? {} : { name: options.branch }),
      ...(options.base === undefined ? {} : { base: options.base }),
    };
    const spec = {
      projectRef: { name: project.name },
      ...(options.task ? { mode: 'Task' } : {}),
      ...(inSpec ? { prompt: text } : {}),
      ...(options.agent === undefined ? {} : { agent: options.agent }),
      ...(options.model === undefined ? {} : { model: options.model }),
      ...(Object.keys(branch).length === 0 ? {} : { branch }),
    };
    const client = await api.client();
    const params = { namespace: session.namespace };
    const created = (await client.call(createSessionRoute, { params, body: { name: session.name, spec } })).body;
    const sent =
      text !== undefined && !inSpec ? (await sendPrompt(api, session, { text, delivery: 'queue' })).id : undefined;
    if (!options.wait) {
      print(options.json ? plainJson(created, 2) : session.name);
      return undefined;
    }
    note(`session ${session.name} was created`);
    const exitCode = await waitFor(api, session, { seconds, note, io, sent, hasPrompt: text !== undefined });
    if (options.json) print(plainJson(await latest(api, session), 2));
    return exitCode;
  },
});

const latest = async (api: Api, session: ObjectName): Promise<SessionView> =>
  (await (await api.client()).call(getSessionRoute, { params: session })).body;

const waitFor = async (
  api: Api,
  session: ObjectName,
  settings: Readonly<{
    seconds: number;
    note: (line: string) => void;
    io: Io;
    sent: string | undefined;
    hasPrompt: boolean;
  }>,
): Promise<number> => {
  const { seconds, note, io, sent, hasPrompt } = settings;
  const over = new AbortController();
  const { signal } = over;
  const ready = waitUntilReady(api, session, seconds, { note, signal });
  if (!hasPrompt) {
    await ready;
    return EXIT.done;
  }
  /** The result of work that makes no sense once the session has failed. */
  const whileWell = <T>(work: Promise<T>): Promise<T> => Promise.race([work, ready.then(() => work)]);
  try {
    const promptId = sent ?? (await whileWell(firstPrompt(api, session, signal)));
    return await whileWell(watchPrompt(api, session, promptId, 0, { io, note }));
  } finally {
    over.abort();
  }
};
