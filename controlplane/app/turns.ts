// Gives a daemon its next turn: the oldest prompt that waits, or the one that it already runs.
// Must not know SQL or HTTP. Source: 10-kubernetes §3 (agent and model count from the next turn).
import { ConflictError } from '#base/errors.ts';
import type { ProcessLimits } from '#schema/settings/budgets.ts';
import type { Turn } from '#schema/wire/turns.ts';
import type { FindSessionByUid } from './ports.ts';
import { turnIdOf } from './prompts.ts';
import type { PreparePin } from './run-settings.ts';
import type { PinSettings, SandboxClaim, Taking } from './session-records.ts';

/** What turns need. */
export type TurnsPorts = Readonly<{
  take: (
    claim: SandboxClaim,
    turnId: (promptId: string, attempt: number) => string,
    pin: PinSettings,
  ) => Promise<Taking>;
  preparePin: PreparePin;
  limits: ProcessLimits;
  findSessionByUid: FindSessionByUid;
}>;

/** The next turn of a claim, null when nothing waits. Errors: ConflictError `superseded`, UnavailableError. */
export type TakeNextTurn = (claim: SandboxClaim) => Promise<Turn | null>;

/** Makes the function. */
export const makeTakeNextTurn =
  (ports: TurnsPorts): TakeNextTurn =>
  async (claim) => {
    const taking = await ports.take(claim, turnIdOf, await ports.preparePin(claim.sessionUid));
    if (taking.state === 'superseded') {
      throw new ConflictError('superseded', `generation ${claim.generation} is not the newest claim of the session`);
    }
    if (taking.state === 'nothing') return null;
    const { turnId, prompt, settings } = taking.turn;
    const spec = ports.findSessionByUid(claim.sessionUid)?.spec;
    return {
      turnId,
      promptId: prompt.id,
      messageId: prompt.message_id,
      parts: [...prompt.parts],
      agent: prompt.agent ?? spec?.agent ?? null,
      model: prompt.model ?? spec?.model ?? null,
      ...(settings === null ? {} : { settings }),
      limits: { ...ports.limits },
    };
  };
