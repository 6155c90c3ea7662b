// What a harness may offer besides prompts: the capability ids, and the daemon's routes behind them on port 8000.
// Must not know which harness offers what. Source: A30 to A33, A62 to A67, A143.

/** Ids of session features that a harness may offer, in the order of health's list. Source: A31, A32. */
export const CAPABILITIES = [
  'session.subagents',
  'session.compact',
  'session.commands',
  'session.rewind',
  'session.mcp',
  'session.todo',
  'session.attach',
  'session.config',
  'session.fork',
  'session.shell',
  'session.steer',
] as const;

/** One of CAPABILITIES. */
export type Capability = (typeof CAPABILITIES)[number];
