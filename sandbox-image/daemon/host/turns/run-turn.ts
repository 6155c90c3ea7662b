// Brings one turn to the part of the harness that runs it: prompts to `submit`, everything else to the optional member of
// its kind. Must not know any harness. Source: A47, A62, A64, A135.
import type { Harness, PromptTurn, TurnEnd } from '#daemon/harness/contract/adapter.ts';
import { CAPABILITY_OF, type OptionalMembers } from '#daemon/harness/contract/capabilities.ts';
import type { Turn, TurnPart } from '#schema/wire/turns.ts';

type TextPart = Extract<TurnPart, { type: 'text' }>;

const isText = (part: TurnPart): part is TextPart => part.type === 'text';

const lacks = (member: keyof OptionalMembers): TurnEnd => ({
  kind: 'failed',
  code: 'feature_not_supported',
  message: `this harness does not offer ${CAPABILITY_OF[member]}`,
});

/** Runs a turn; resolves for failure too. A turn that mixes kinds of parts, or has two of a kind that stands alone, fails. */
export const runTurn = async (
  harness: Pick<Harness, 'submit' | 'optional'>,
  { parts, ...turn }: Turn,
  signal: AbortSignal,
): Promise<TurnEnd> => {
  const texts = parts.filter(isText);
  if (texts.length === parts.length) return harness.submit({ ...turn, parts: texts } satisfies PromptTurn, signal);
  const [part] = parts;
  if (parts.length !== 1 || part === undefined || part.type === 'text') {
    return {
      kind: 'failed',
      code: 'unknown',
      message: 'a command, a shell command or a compaction is a turn of its own',
    };
  }
  const { compact, commands, shell } = harness.optional;
  switch (part.type) {
    case 'command':
      return commands?.run(turn, part.name, part.arguments, signal) ?? lacks('commands');
    case 'shell':
      return shell?.(turn, part.command, signal) ?? lacks('shell');
    case 'compact':
      return compact?.(turn, signal) ?? lacks('compact');
  }
};
