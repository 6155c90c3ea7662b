// `beeuni sessions restart`.
import { restartSessionRoute } from '#schema/rest/sessions.ts';
import { sessionVerb } from '../session-verb.ts';

/** See the file. */
export const command = sessionVerb({
  verb: 'restart',
  route: restartSessionRoute,
  summary: 'restart the sandbox of a session; this also clears a failure',
  said: 'is being restarted',
});
