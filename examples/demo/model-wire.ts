// How an answer of the scripted model looks on the wire: one completion, or its stream chunks. Pure.
// It must not know how the answer was decided or who reads it.
import type { Step } from './model-script.ts';

/** What the server knows of one answer. Units: bytes, seconds. */
export type CompletionContext = Readonly<{
  id: string;
  createdSeconds: number;
  model: string;
  promptBytes: number;
  newCallId: () => string;
}>;

type Call = Readonly<{ id: string; type: 'function'; function: Readonly<{ name: string; arguments: string }> }>;

/** An answer: as one object, and in the parts that a stream is made of. */
export type Completion = Readonly<{
  head: Readonly<Record<string, unknown>>;
  reason: readonly string[];
  words: readonly string[];
  calls: readonly Call[];
  finish: 'stop' | 'tool_calls';
  usage: Readonly<Record<string, unknown>>;
  whole: Readonly<Record<string, unknown>>;
}>;

const wordsOf = (text: string): readonly string[] => text.match(/\s*\S+\s*/g) ?? [];

/** The completion of a step. Tokens are counted as four bytes of prompt and as words of the answer, unless the step says. */
export const completionOf = (step: Step, context: CompletionContext): Completion => {
  const words =
    step.paced === undefined
      ? wordsOf(step.text ?? (step.mischief === undefined ? '' : 'half an answer '))
      : Array.from({ length: step.paced.words }, (_, at) => `word${at} `);
  const reason = wordsOf(step.reason ?? '');
  const calls = (step.calls ?? []).map(
    (call): Call => ({
      id: context.newCallId(),
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    }),
  );
  const prompt = step.usage?.promptTokens ?? Math.ceil(context.promptBytes / 4);
  const completion = step.usage?.completionTokens ?? Math.max(words.length + reason.length + calls.length * 20, 1);
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reason.length },
  };
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const head = { id: context.id, created: context.createdSeconds, model: context.model };
  const message = {
    role: 'assistant',
    content: words.length > 0 ? words.join('') : null,
    ...(reason.length > 0 ? { reasoning_content: reason.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const whole = {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: finish, message }],
    usage,
  };
  return { head, reason, words, calls, finish, usage, whole };
};

/** The chunks of a stream: those that carry text, and those that end it (tool calls, finish reason, usage). */
export const chunksOf = (completion: Completion): Readonly<{ text: readonly unknown[]; end: readonly unknown[] }> => {
  const chunk = (delta: unknown, finish: string | null = null) => ({
    ...completion.head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const text = [
    chunk({ role: 'assistant', content: '' }),
    ...completion.reason.map((word) => chunk({ reasoning_content: word })),
    ...completion.words.map((word) => chunk({ content: word })),
  ];
  const calls = completion.calls.flatMap((call, index) => {
    const { name, arguments: args } = call.function;
    const half = Math.ceil(args.length / 2);
    const parts = [args.slice(0, half), args.slice(half)].filter((part) => part !== '');
    return [
      chunk({ tool_calls: [{ index, id: call.id, type: call.type, function: { name, arguments: '' } }] }),
      ...parts.map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
    ];
  });
  const usage = { ...completion.head, object: 'chat.completion.chunk', choices: [], usage: completion.usage };
  return { text, end: [...calls, chunk({}, completion.finish), usage] };
};
