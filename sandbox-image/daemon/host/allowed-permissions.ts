// Keeps what people allowed for the whole session in a file of the session's volume, so that it outlives a restart.
// Must not know who asks. Source: A119.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { Logger } from '#base/log.ts';
import type { Allowed, BrokerPorts } from './broker.ts';

const stored = z.object({ uid: z.string(), allowed: z.record(z.string(), z.array(z.string())) });

/** The store in one file; another session's content counts as nothing. Neither function throws. */
export const allowedPermissions = (file: string, sessionUid: string, log: Logger): BrokerPorts['allowed'] => ({
  read: (): Allowed => {
    try {
      const content = stored.parse(JSON.parse(readFileSync(file, 'utf8')));
      return content.uid === sessionUid ? content.allowed : {};
    } catch {
      return {};
    }
  },
  write: (allowed) => {
    try {
      writeFileSync(`${file}.next`, JSON.stringify({ uid: sessionUid, allowed }), { mode: 0o600 });
      renameSync(`${file}.next`, file);
    } catch (error) {
      log.warn('what was allowed for the session is kept in memory only', { err: error });
    }
  },
});
