// What each built-in harness offers, so that a loss is told before a switch. What a running one really serves is in health.
// Must not know adapters. Source: A34, A62, A152.
import { CAPABILITIES } from '../wire/runtime.ts';

/** Capability ids by harness; an id that is not here is another build's. */
export const HARNESS_CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  opencode: CAPABILITIES,
  pi: ['session.subagents', 'session.compact', 'session.commands'],
};

/** What a session offers now and another harness is known not to; empty for a harness that is not known. */
export const lostCapabilities = (now: readonly string[], nextHarness: string): readonly string[] => {
  const next = Object.hasOwn(HARNESS_CAPABILITIES, nextHarness) ? HARNESS_CAPABILITIES[nextHarness] : undefined;
  if (next === undefined) return [];
  return now.filter((id) => id.startsWith('session.') && !next.includes(id));
};
