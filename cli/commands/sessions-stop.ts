// `beeuni sessions stop`.
import { suspendSessionRoute } from '#schema/rest/sessions.ts';
import { sessionVerb } from '../session-verb.ts';

/** See the file. */
export const command = sessionVerb({
  verb: 'stop',
  route: suspendSessionRoute,
  summary: 'suspend a session; its turn ends at once, its files are kept',
  said: 'is being suspended; its files are kept',
  unchanged: ({ spec, phase }) => {
    const isSuspended = phase === 'Suspended';
    if (spec['operatingMode'] === 'Suspended')
      return `is ${isSuspended ? '' : 'being '}suspended already; nothing changes`;
    return isSuspended ? 'is suspended already; from now on only a start wakes it' : undefined;
  },
});
