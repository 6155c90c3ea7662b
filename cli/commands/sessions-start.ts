// `beeuni sessions start`.
import { startSessionRoute } from '#schema/rest/sessions.ts';
import { sessionVerb } from '../session-verb.ts';

/** See the file. */
export const command = sessionVerb({
  verb: 'start',
  route: startSessionRoute,
  summary: 'start a suspended session',
  said: 'is being started',
  unchanged: ({ spec, ready, phase }) => {
    if (spec['operatingMode'] === 'Suspended') return undefined;
    if (ready === 'True') return 'runs already; nothing changes';
    return phase === 'Starting' ? 'is being started already; nothing changes' : undefined;
  },
});
