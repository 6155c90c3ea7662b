// Which pushes of a sandbox go through: exactly the branch of its session, nothing deleted, nothing forced unless the
// Project allows it. Pure. It must not know how a push is carried. Source: 20-control-plane §6, A203.

/** One command of a push. A commit id of zeros stands for "no such ref". */
export type PushCommand = Readonly<{ oldId: string; newId: string; ref: string }>;

/** The commands with what the client can understand. */
export type PushRequest = Readonly<{ commands: readonly PushCommand[]; capabilities: ReadonlySet<string> }>;

/** What a session may push. */
export type PushRule = Readonly<{ branch: string; forcePush: 'Forbidden' | 'Allowed' }>;

/** Whether the id stands for "no such ref". */
export const isZeroId = (id: string): boolean => /^0+$/.test(id);

/** Commands from the lines of a push; undefined when one of them is no command. `shallow` lines are skipped. */
export const parsePushRequest = (lines: readonly Uint8Array[]): PushRequest | undefined => {
  const commands: PushCommand[] = [];
  let capabilities: ReadonlySet<string> = new Set();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for (const line of lines) {
    let text: string;
    try {
      text = decoder.decode(line);
    } catch {
      return undefined;
    }
    const zero = text.indexOf('\0');
    if (zero >= 0) {
      if (commands.length > 0) return undefined;
      capabilities = new Set(
        text
          .slice(zero + 1)
          .split(' ')
          .filter(Boolean),
      );
      text = text.slice(0, zero);
    }
    if (/^shallow [0-9a-f]{40,64}$/.test(text)) continue;
    const match = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (\S.*)$/.exec(text);
    if (match === null) return undefined;
    const [, oldId = '', newId = '', ref = ''] = match;
    commands.push({ oldId, newId, ref });
  }
  return { commands, capabilities };
};

const shown = (ref: string): string =>
  ref
    .replace(/^refs\/heads\//, '')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 100);

/** Why a command is refused before its objects are looked at; undefined when it may go on. The text names the rule. */
export const refusalOf = (command: PushCommand, rule: PushRule): string | undefined => {
  if (command.ref !== `refs/heads/${rule.branch}`) {
    return `a session pushes its own branch only: ${shown(rule.branch)}, not ${shown(command.ref)}`;
  }
  if (isZeroId(command.newId)) return 'a session does not delete its branch';
  return undefined;
};

/** Why a change of the branch is refused once its history is known; undefined when it may go on. */
export const historyRefusal = (isFastForward: boolean, rule: PushRule): string | undefined =>
  isFastForward || rule.forcePush === 'Allowed'
    ? undefined
    : 'the Project forbids forced pushes (spec.repository.forcePush); fetch and merge first';

/** Lines of the report that a client reads after a push. `refusals`: ref to reason; a ref without one was pushed. */
export const reportLines = (
  commands: readonly PushCommand[],
  refusals: ReadonlyMap<string, string>,
): readonly string[] => [
  'unpack ok\n',
  ...commands.map(({ ref }) => {
    const reason = refusals.get(ref);
    return reason === undefined ? `ok ${ref}\n` : `ng ${ref} ${reason.replace(/[\r\n\0]+/g, ' ').slice(0, 300)}\n`;
  }),
];
