// `beeuni sessions start`.
import { startSessionRoute } from '#schema/rest/sessions.ts';
import { sessionVerb } from '../session-verb.ts';

/** See the file. */
export const command = sessionVerb({
  verb: 'start',
  route: startSessionRoute,
  summary: 'start a suspended session',
  said: 'is being started',
});
