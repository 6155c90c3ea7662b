// `beeuni sessions chat`: a conversation where a person types, else one prompt and its turn.
import { getSessionRoute } from '#schema/rest/sessions.ts';
import { chat } from '../chat.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../failure.ts';
import { fetchHead } from '../follow.ts';
import { plainJson, plainLine } from '../plain-text.ts';
import { followCall, readPiped, secondsOf, sendAndWatch, sendPrompt } from '../send-prompt.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

const WAITS_ON = '   this call waits until then: --timeout SECONDS ends the wait, -d sends the prompt without one';

/** See the file. */
export const command = defineCommand({
  summary: 'talk to a session, or send one prompt and show its turn',
  arguments: [
    SESSION_ARGUMENT,
    { name: 'PROMPT', summary: 'one prompt; without it you type', optional: true, rest: true },
  ],
  options: {
    agent: { summary: 'agent that the prompts are for', value: 'NAME' },
    model: { summary: 'model that the prompts are for', value: 'PROVIDER/MODEL' },
    queue: { summary: 'wait behind what runs (this is how it is without an option)' },
    steer: { summary: 'join the running turn at its next step, where the harness can' },
    interrupt: { summary: 'end the running turn first' },
    detach: { summary: 'send the prompt and do not wait for its turn', short: 'd' },
    json: { summary: 'with --detach: print the prompt as JSON' },
    timeout: { summary: 'how long one prompt waits for the end of its turn; no limit otherwise', value: 'SECONDS' },
  },
  needsApi: true,
  details: [
    'Ctrl-C ends the running turn, a second Ctrl-C leaves; the session goes on without you. A prompt that comes through a pipe is one prompt. With a prompt the exit code is 0 when it succeeded, 1 when it did not and 6 when --timeout came first. A prompt whose turn broke off, because harness or sandbox died, is tried once more; the call waits for that.',
  ],
  examples: ['beeuni sessions chat fix-login', 'beeuni sessions chat fix-login "Add a test." && git fetch'],
  run: async ({ api, args, options, io, note, print }) => {
    const [name = '', ...words] = args;
    const session = api.nameOf(name);
    if ([options.queue, options.steer, options.interrupt].filter(Boolean).length > 1) {
      throw usageError('--queue, --steer and --interrupt exclude one another');
    }
    if (options.json && !options.detach)
      throw usageError('--json is for --detach', 'sessions log --json has the events');
    const seconds = secondsOf(options.timeout);
    if (seconds !== undefined && options.detach) throw usageError('--timeout and --detach exclude one another');
    const isOnePrompt = words.length > 0 || !io.isTerminal.stdin;
    if (!isOnePrompt && seconds !== undefined) throw usageError('--timeout is for one PROMPT');
    const leaveHint = io.isTerminal.stdin || seconds !== undefined ? undefined : WAITS_ON;
    const delivery = options.interrupt ? 'interrupt' : options.steer ? 'steer' : 'queue';
    const { agent, model } = options;
    if (isOnePrompt) {
      const text = words.length > 0 ? words.join(' ') : await readPiped(io);
      const prompt = { text, delivery, agent, model } as const;
      if (!options.detach)
        return sendAndWatch(api, session, () => sendPrompt(api, session, prompt), { io, note, seconds, leaveHint });
      const sent = await sendPrompt(api, session, prompt);
      if (options.json) print(plainJson(sent, 2));
      else {
        note(`prompt ${sent.id} was sent; follow it: ${followCall(session)}`);
        if (sent.note !== null) note(plainLine(sent.note));
      }
      return undefined;
    }
    await (await api.client()).call(getSessionRoute, { params: session });
    const since = await fetchHead(api, session, AbortSignal.timeout(60_000));
    return chat(api, session, io, { since, withPrompts: false, delivery, agent, model });
  },
});
