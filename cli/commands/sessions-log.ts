// `beeuni sessions log`: the event log as a person reads it, or as JSON lines.
import { defineCommand } from '../command.ts';
import { makeEventView } from '../event-view.ts';
import { EXIT, usageError } from '../failure.ts';
import { followEvents } from '../follow.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { writeFully } from '../write-fully.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print the event log of a session',
  arguments: [SESSION_ARGUMENT],
  options: {
    follow: { summary: 'go on with new events until Ctrl-C', short: 'f' },
    since: { summary: 'begin after the event with this number', value: 'SEQ' },
    json: { summary: 'print each event as one line of JSON, with its number' },
    hidden: { summary: 'with events that are not for people' },
  },
  needsApi: true,
  details: [
    'A connection that breaks is opened again after the last event that was printed: none is lost or repeated.',
  ],
  examples: ['beeuni sessions log fix-login --follow', 'beeuni sessions log fix-login --json --since 120 | jq .type'],
  run: async ({ api, args, options, io, note }) => {
    if (options.since !== undefined && !/^\d{1,15}$/.test(options.since)) {
      throw usageError('--since takes the number of an event, 0 or more');
    }
    const session = api.nameOf(args[0] ?? '');
    const leaving = new AbortController();
    const forget = io.onInterrupt(() => leaving.abort());
    const view = makeEventView({ prompts: true });
    try {
      const events = followEvents(api, session, {
        since: options.since === undefined ? undefined : Number(options.since),
        follow: options.follow,
        hidden: options.hidden,
        signal: leaving.signal,
        note,
      });
      for await (const event of events) {
        await writeFully(io.stdout, options.json ? `${plainJson(event)}\n` : view(event));
      }
      return leaving.signal.aborted ? EXIT.interrupted : EXIT.done;
    } finally {
      forget();
    }
  },
});
