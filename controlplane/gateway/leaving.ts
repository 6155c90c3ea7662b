// The state of one model call on its way, and how it is ended from outside. Must not know providers' answers.
import type { ProviderUse, Revocation, RunningCall } from '../app/running-calls.ts';
import type { Attempt } from './attempt.ts';
import type { GatewayCall } from './ports.ts';

/** A call on its way: the attempt that runs, whether the client is gone, and why the call may not go on. */
export type Leaving = RunningCall & {
  current: Attempt | undefined;
  use: ProviderUse | undefined;
  isGone: boolean;
  revoked: Revocation | undefined;
};

/** A call before its first attempt; the client may have left while it was checked. */
export const leavingOf = ({ identity, response }: GatewayCall): Leaving => ({
  place: 0,
  identity,
  current: undefined,
  use: undefined,
  isGone: response.destroyed,
  revoked: undefined,
  revoke(why) {
    this.revoked = why;
    this.current?.leave('revoked');
  },
});
