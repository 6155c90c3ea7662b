// Whether a prompt runs again after its turn ended: once, and only when nobody wanted the end. Pure.
// Must not know who noticed the end. Source: A155, 10-kubernetes §4 (finish).
import type { EndedTurn, TurnVerdict } from './ports.ts';

/** How often a prompt may be tried. Source: A155: "healed and re-prompted once". */
export const MAX_ATTEMPTS = 2;

const wasUnwanted = (ended: EndedTurn): boolean =>
  ended.outcome === 'Interrupted' ||
  ended.outcome === 'Aborted' ||
  (ended.outcome === 'Failed' && (ended.code === 'harness_died' || ended.code === 'sandbox_lost'));

/** See TurnVerdict. An end that somebody asked for is `Aborted`, whatever else went wrong on the way. */
export const decideTurnEnd = (ended: EndedTurn): TurnVerdict => {
  const { outcome, code, message } = ended;
  if (ended.abortAsked && wasUnwanted(ended)) {
    return {
      requeue: false,
      outcome: 'Aborted',
      code: 'aborted',
      message: message ?? 'the turn was aborted on request',
    };
  }
  if (!wasUnwanted(ended)) return { requeue: false, outcome, code, message };
  if (ended.attempt < MAX_ATTEMPTS) return { requeue: true, outcome, code, message };
  return { requeue: false, outcome, code, message: message ?? 'runtime aborted' };
};
