// The other model APIs of the scripted model: OpenAI's responses and embeddings, Anthropic's messages. Pure.
// A request is turned into the chat that the script reads, and the script's answer into the shape of the API.
// It must not know HTTP or how an answer was decided.
import type { ScriptMessage, ScriptRequest } from './model-script.ts';
import { textOf } from './model-script.ts';
import type { Completion } from './model-wire.ts';

/** One server-sent event of a stream. */
export type Frame = Readonly<{ event: string; data: Readonly<Record<string, unknown>> }>;

/** An answer of an API: as one object, and as the events that carry text and those that end it. */
export type ApiAnswer = Readonly<{
  whole: Readonly<Record<string, unknown>>;
  text: readonly Frame[];
  end: readonly Frame[];
  /** The event of an error inside a stream. */
  error: (message: string) => Frame;
}>;

type Fields = Readonly<Record<string, unknown>>;
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A request of the responses API as a chat. */
export const chatOfResponses = (body: Fields): ScriptRequest => {
  const { input, instructions } = body;
  const system: ScriptMessage[] = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  const items: readonly Fields[] = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input);
  const messages = items.map((item): ScriptMessage => {
    if (item['type'] === 'function_call') return { role: 'assistant', content: '' };
    if (item['type'] === 'function_call_output') return { role: 'tool', content: text(item['output']) };
    return { role: text(item['role']), content: textOf(item['content']) };
  });
  const tools = listOf(body['tools']).map((tool) => ({
    function: { name: text(tool['name']), parameters: tool['parameters'] as { properties?: Fields } },
  }));
  return { model: text(body['model']), messages: [...system, ...messages], tools };
};

/** A request of the messages API as a chat. */
export const chatOfMessages = (body: Fields): ScriptRequest => {
  const system: ScriptMessage[] =
    body['system'] === undefined ? [] : [{ role: 'system', content: textOf(body['system']) }];
  const messages = listOf(body['messages']).map((message): ScriptMessage => {
    const isResult = listOf(message['content']).some((part) => part['type'] === 'tool_result');
    return { role: isResult ? 'tool' : text(message['role']), content: textOf(message['content']) };
  });
  const tools = listOf(body['tools']).map((tool) => ({
    function: { name: text(tool['name']), parameters: tool['input_schema'] as { properties?: Fields } },
  }));
  return { model: text(body['model']), messages: [...system, ...messages], tools };
};

const tokensOf = ({ usage }: Completion): Readonly<{ input: number; output: number }> => ({
  input: Number(usage['prompt_tokens']),
  output: Number(usage['completion_tokens']),
});

/** The answer in the shape of the responses API. */
export const responsesAnswer = (completion: Completion): ApiAnswer => {
  const { input, output } = tokensOf(completion);
  const id = `resp_${String(completion.head['id'])}`;
  const said = completion.words.join('');
  const part = (content: string) => ({ type: 'output_text', text: content, annotations: [] });
  const message = (content: string, status: string) => ({
    type: 'message',
    id: `msg_${id}`,
    role: 'assistant',
    status,
    content: content === '' ? [] : [part(content)],
  });
  const calls = completion.calls.map((call) => ({
    type: 'function_call',
    id: `fc_${call.id}`,
    call_id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
    status: 'completed',
  }));
  const base = {
    id,
    object: 'response',
    created_at: completion.head['created'],
    model: completion.head['model'],
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
  };
  const whole = {
    ...base,
    status: 'completed',
    output: [...(said === '' ? [] : [message(said, 'completed')]), ...calls],
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output,
    },
  };
  let sequence = 0;
  const frame = (type: string, data: Fields): Frame => ({
    event: type,
    data: { type, sequence_number: sequence++, ...data },
  });
  const place = { item_id: `msg_${id}`, output_index: 0, content_index: 0 };
  const opening = [
    frame('response.created', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
    frame('response.output_item.added', { output_index: 0, item: message('', 'in_progress') }),
    frame('response.content_part.added', { ...place, part: part('') }),
  ];
  const deltas = completion.words.map((delta) =>
    frame('response.output_text.delta', { ...place, delta, logprobs: [] }),
  );
  const closing = [
    frame('response.output_text.done', { ...place, text: said, logprobs: [] }),
    frame('response.content_part.done', { ...place, part: part(said) }),
    frame('response.output_item.done', { output_index: 0, item: message(said, 'completed') }),
  ];
  const called = calls.flatMap((item, index) => {
    const at = { item_id: item.id, output_index: index + 1 };
    return [
      frame('response.output_item.added', {
        output_index: index + 1,
        item: { ...item, arguments: '', status: 'in_progress' },
      }),
      frame('response.function_call_arguments.delta', { ...at, delta: item.arguments }),
      frame('response.function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments }),
      frame('response.output_item.done', { output_index: index + 1, item }),
    ];
  });
  return {
    whole,
    text: [...opening, ...deltas],
    end: [...closing, ...called, frame('response.completed', { response: whole })],
    error: (message_) => frame('error', { code: 'server_error', message: message_, param: null }),
  };
};

/** The answer in the shape of the messages API. Arguments that are no JSON are sent as they are, in a stream only. */
export const messagesAnswer = (completion: Completion): ApiAnswer => {
  const { input, output } = tokensOf(completion);
  const said = completion.words.join('');
  const inputOf = (json: string): unknown => {
    try {
      return JSON.parse(json);
    } catch {
      return {};
    }
  };
  const blocks = [
    ...(said === '' ? [] : [{ type: 'text', text: said }]),
    ...completion.calls.map((call) => ({
      type: 'tool_use',
      id: call.id,
      name: call.function.name,
      input: inputOf(call.function.arguments),
    })),
  ];
  const cache = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const base = {
    id: `msg_${String(completion.head['id'])}`,
    type: 'message',
    role: 'assistant',
    model: completion.head['model'],
    stop_sequence: null,
  };
  const stop = completion.calls.length > 0 ? 'tool_use' : 'end_turn';
  const frame = (type: string, data: Fields = {}): Frame => ({ event: type, data: { type, ...data } });
  const opening = [
    frame('message_start', {
      message: { ...base, content: [], stop_reason: null, usage: { input_tokens: input, output_tokens: 1, ...cache } },
    }),
    frame('ping'),
    ...(said === '' ? [] : [frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })]),
  ];
  const deltas = completion.words.map((word) =>
    frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word } }),
  );
  const first = said === '' ? 0 : 1;
  const called = completion.calls.flatMap((call, at) => {
    const index = first + at;
    const half = Math.ceil(call.function.arguments.length / 2);
    const parts = [call.function.arguments.slice(0, half), call.function.arguments.slice(half)];
    return [
      frame('content_block_start', {
        index,
        content_block: { type: 'tool_use', id: call.id, name: call.function.name, input: {} },
      }),
      ...parts.map((json) =>
        frame('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: json } }),
      ),
      frame('content_block_stop', { index }),
    ];
  });
  return {
    whole: {
      ...base,
      content: blocks,
      stop_reason: stop,
      usage: { input_tokens: input, output_tokens: output, ...cache },
    },
    text: [...opening, ...deltas],
    end: [
      ...(said === '' ? [] : [frame('content_block_stop', { index: 0 })]),
      ...called,
      frame('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: output } }),
      frame('message_stop'),
    ],
    error: (message) => frame('error', { error: { type: 'overloaded_error', message } }),
  };
};

/** Vectors of two numbers for every text of an embeddings request, as numbers or as base64 of floats. */
export const embeddingsAnswer = (body: Fields, promptBytes: number): Fields => {
  const input = body['input'];
  const texts = Array.isArray(input) ? input.map(String) : [String(input)];
  const tokens = Math.ceil(promptBytes / 4);
  const data = texts.map((each, index) => {
    const numbers = [each.length, 1];
    const bytes = Buffer.from(new Float32Array(numbers).buffer).toString('base64');
    return { object: 'embedding', index, embedding: body['encoding_format'] === 'base64' ? bytes : numbers };
  });
  return { object: 'list', data, model: body['model'], usage: { prompt_tokens: tokens, total_tokens: tokens } };
};
