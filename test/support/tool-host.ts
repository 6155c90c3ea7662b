// A tool host without tools, for tests of what does not call any. Must not know what is tested.
import type { ToolHost } from '#daemon/harness/contract/tools.ts';

/** Knows no tool. */
export const noTools: ToolHost = {
  specs: [],
  visibleTo: () => new Set(),
  access: () => 'unknown',
  call: async ({ name }) => ({ kind: 'failed', message: `there is no tool "${name}"` }),
};
