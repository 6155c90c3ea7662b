// What the scripted model answers: a pure function of the request. Lines `@@…` of a user message are its script; a plain
// prompt gets a small, believable agent run that writes the file asked for and commits it.
// It must not know HTTP, time or any harness; tool names and argument names come from the request.

/** One message of a chat-completions request, as far as the script reads it. */
export type ScriptMessage = Readonly<{ role: string; content?: unknown; tool_calls?: unknown }>;
/** One offered tool. */
export type ScriptTool = Readonly<{
  function?: Readonly<{ name?: string; parameters?: Readonly<{ properties?: Readonly<Record<string, unknown>> }> }>;
}>;
/** A chat-completions request, as far as the script reads it. */
export type ScriptRequest = Readonly<{
  model?: string;
  stream?: boolean;
  stream_options?: Readonly<{ include_usage?: boolean }> | null;
  messages?: readonly ScriptMessage[];
  tools?: readonly ScriptTool[];
}>;

/** A tool call; `arguments` is JSON text, passed on as it is. */
export type ScriptCall = Readonly<{ name: string; arguments: string }>;

/**
 * One answer. `fail` steps do their mischief for the first `times` tries, then say "recovered".
 * Units: milliseconds. `usage` overrides the counted tokens.
 */
export type Step = Readonly<{
  reason?: string | undefined;
  text?: string | undefined;
  calls?: readonly ScriptCall[] | undefined;
  usage?: Readonly<{ promptTokens: number; completionTokens: number }> | undefined;
  paced?: Readonly<{ words: number; gapMs: number }> | undefined;
  delayMs?: number | undefined;
  retryAfterSeconds?: number | undefined;
  mischief?: Mischief | undefined;
}>;

/** What goes wrong. */
export type Mischief =
  /** Headers and one word, then nothing. */
  | Readonly<{ kind: 'hang' }>
  /** Not even headers. */
  | Readonly<{ kind: 'silent' }>
  /** The stream ends cleanly, without finish reason and end mark. */
  | Readonly<{ kind: 'truncate' }>
  /** An error object inside a 200 stream; `final` asks for no other call. */
  | Readonly<{ kind: 'error-inside'; message: string; final?: boolean }>
  /** An HTTP error for the first `times` tries. */
  | Readonly<{ kind: 'error'; times: number; status: number; message: string }>
  /** The context overflow error of OpenAI for the first `times` tries. */
  | Readonly<{ kind: 'overflow'; times: number }>
  /** The connection is cut in mid-stream for the first `times` tries. */
  | Readonly<{ kind: 'drop'; times: number }>;

/** What to answer, and under which key its tries are counted. */
export type Decision = Readonly<{ step: Step; triesKey: string | undefined }>;

/** The text of a message's content: a string, or the text parts of a list. */
export const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => (typeof part === 'object' && part !== null && 'text' in part ? String(part.text) : ''))
    .join('\n');
};

const parseCall = (text: string): ScriptCall => {
  const [, name = '', args = ''] = /^\s*(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  return { name, arguments: args.trim() === '' ? '{}' : args.trim() };
};

const numbers = (text: string): readonly number[] => text.split(/\s+/).filter(Boolean).map(Number);

/**
 * The steps of a text. Steps: `@@say TEXT`, `@@tool NAME {json}`, `@@tools NAME {json} ;; NAME {json}`,
 * `@@stream WORDS GAP_MS`, `@@hang`, `@@silent`, `@@truncate`, `@@inside MESSAGE`, `@@inside-final MESSAGE`, `@@error TIMES STATUS MESSAGE`,
 * `@@overflow TIMES`, `@@drop TIMES`. Lines that colour the step after them: `@@reason TEXT`, `@@text TEXT`,
 * `@@usage PROMPT COMPLETION`, `@@delay MS`, `@@retry-after SECONDS`. Unknown verbs are skipped.
 */
export const parseScript = (text: string): readonly Step[] => {
  const steps: Step[] = [];
  let colour: Step = {};
  const add = (step: Step) => {
    steps.push({ ...colour, ...step });
    colour = {};
  };
  for (const line of text.split('\n')) {
    const [, verb = '', rest = ''] = /^\s*@@(\S+)\s?(.*)$/.exec(line) ?? [];
    const [first = 0, second] = numbers(rest);
    switch (verb) {
      case 'reason':
        colour = { ...colour, reason: rest };
        break;
      case 'text':
        colour = { ...colour, text: rest };
        break;
      case 'usage':
        colour = { ...colour, usage: { promptTokens: first, completionTokens: second ?? 1 } };
        break;
      case 'delay':
        colour = { ...colour, delayMs: first };
        break;
      case 'retry-after':
        colour = { ...colour, retryAfterSeconds: first };
        break;
      case 'say':
        add({ text: rest });
        break;
      case 'tool':
        add({ calls: [parseCall(rest)] });
        break;
      case 'tools':
        add({ calls: rest.split(';;').map(parseCall) });
        break;
      case 'stream':
        add({ paced: { words: first, gapMs: second ?? 0 } });
        break;
      case 'hang':
      case 'silent':
      case 'truncate':
        add({ mischief: { kind: verb } });
        break;
      case 'inside':
        add({ mischief: { kind: 'error-inside', message: rest } });
        break;
      case 'inside-final':
        add({ mischief: { kind: 'error-inside', message: rest, final: true } });
        break;
      case 'error': {
        const [, times = '1', status = '500', message = ''] = /^(\d+)\s+(\d{3})\s*(.*)$/.exec(rest) ?? [];
        const said = message === '' ? 'scripted failure' : message;
        add({ mischief: { kind: 'error', times: Number(times), status: Number(status), message: said } });
        break;
      }
      case 'overflow':
      case 'drop':
        add({ mischief: { kind: verb, times: Math.max(first, 1) } });
        break;
    }
  }
  return steps;
};

const DIRECTIVE = /^\s*@@\S/m;

/** The answer to one request. Which step it is follows from the assistant messages after the user message with the script. */
export const decide = (request: ScriptRequest): Decision => {
  const messages = request.messages ?? [];
  const system = messages
    .filter((message) => message.role === 'system' || message.role === 'developer')
    .map((message) => textOf(message.content))
    .join('\n');
  const lastUser = messages.findLastIndex((message) => message.role === 'user');
  const prompt = textOf(messages[lastUser]?.content);
  if ((request.tools ?? []).length === 0) {
    const side = answerWithoutTools(system, prompt);
    if (side !== undefined) return { step: side, triesKey: undefined };
  }
  const scripted = messages.findLastIndex(
    (message) => message.role === 'user' && DIRECTIVE.test(textOf(message.content)),
  );
  if (scripted >= 0) {
    const text = textOf(messages[scripted]?.content);
    const at = messages.slice(scripted + 1).filter((message) => message.role === 'assistant').length;
    return { step: parseScript(text)[at] ?? { text: 'done' }, triesKey: `${at}|${text}` };
  }
  const turn = messages.slice(lastUser + 1);
  return { step: agentStep(prompt, system, turn, request.tools ?? []), triesKey: undefined };
};

const answerWithoutTools = (system: string, prompt: string): Step | undefined => {
  if (/title/i.test(system) && /generat|brief|short/i.test(system)) {
    return { text: prompt.replace(/\s+/g, ' ').trim().slice(0, 40) || 'A session' };
  }
  if (/summar|compact/i.test(system + prompt.slice(0, 400))) {
    return { text: 'Goal: the task above. Done so far: see the branch. Next: go on.' };
  }
  return undefined;
};

type Task =
  | Readonly<{ kind: 'write'; path: string; content: string }>
  | Readonly<{ kind: 'read'; path: string }>
  | Readonly<{ kind: 'run'; command: string }>;

const FILE = /(?:^|[\s"'`(])((?:[\w.-]+\/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?=$|[\s"'`),;:!?]|\.(?:\s|$))/;
const QUOTED = /(?:says?|saying|with|contains?|containing|text|content)[^"“`']*["“`']([^"”`']+)["”`']/i;
const SAYS = /(?:that|which)?\s*(?:says?|saying|contains?|containing|reads?)\s*:?\s+([\s\S]+)$/i;

/** What a plain prompt asks for; undefined when it is nothing that the script can do. */
export const taskOf = (prompt: string): Task | undefined => {
  const command = /\b(?:run|execute)\s+`([^`]+)`/i.exec(prompt)?.[1];
  if (command !== undefined) return { kind: 'run', command };
  const path = FILE.exec(prompt)?.[1];
  if (path === undefined) return undefined;
  if (/\b(?:add|create|write|make|put|save)\b/i.test(prompt)) {
    const after = prompt.slice(prompt.indexOf(path) + path.length);
    const said = QUOTED.exec(after)?.[1] ?? SAYS.exec(after)?.[1] ?? 'hello';
    return { kind: 'write', path, content: `${said.trim().replace(/[.]$/, '')}\n` };
  }
  return /\b(?:read|show|print|open|look|what)\b/i.test(prompt) ? { kind: 'read', path } : undefined;
};

const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const agentStep = (
  prompt: string,
  system: string,
  turn: readonly ScriptMessage[],
  tools: readonly ScriptTool[],
): Step => {
  const offered = new Map(tools.map((tool) => [tool.function?.name ?? '', tool]));
  const task = taskOf(prompt);
  if (task === undefined || !offered.has('bash')) return { text: `You said: ${prompt.slice(0, 200)}` };
  const at = turn.filter((message) => message.role === 'assistant').length;
  const results = turn.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
  const last = results.at(-1) ?? '';
  const bash = (command: string, description: string, text: string): Step => ({
    text,
    calls: [{ name: 'bash', arguments: JSON.stringify({ command, description }) }],
  });
  const named = (tool: string): string => (tool in fields(offered.get('write')) ? tool : 'path');
  switch (task.kind) {
    case 'run':
      if (at === 0) return bash(task.command, 'Runs the command', 'I run that command.');
      return { text: `The command answered:\n${last.slice(0, 2000)}` };
    case 'read':
      if (at === 0) return bash(`cat -- ${shellQuote(task.path)}`, `Reads ${task.path}`, `I look at ${task.path}.`);
      return { text: `This is in ${task.path}:\n${last.slice(0, 2000)}` };
    case 'write': {
      const commit = `git add -- ${shellQuote(task.path)} && git commit -q -m ${shellQuote(`Add ${task.path}`)} && git log -1 --oneline`;
      if (at === 0) {
        const intro = `I add ${task.path}.`;
        if (!offered.has('write')) {
          const folder = task.path.includes('/')
            ? `mkdir -p -- ${shellQuote(task.path.replace(/\/[^/]*$/, ''))} && `
            : '';
          const print = `printf '%s' ${shellQuote(task.content)} > ${shellQuote(task.path)}`;
          return bash(folder + print, `Writes ${task.path}`, intro);
        }
        const root = /(?:working directory|cwd)\s*[:=]\s*["'`]?(\/[^\s"'`<]*)/i.exec(system)?.[1];
        const path = root === undefined ? task.path : `${root.replace(/\/$/, '')}/${task.path}`;
        const args = { [named('filePath')]: path, content: task.content };
        return { text: intro, calls: [{ name: 'write', arguments: JSON.stringify(args) }] };
      }
      if (at === 1) return bash(commit, `Commits ${task.path}`, `${task.path} is written. I commit it.`);
      return /fatal:|error:|nothing to commit|not permitted|denied/i.test(last)
        ? { text: `I wrote ${task.path}, but the commit did not work:\n${last.slice(0, 500)}` }
        : { text: `Done: ${task.path} says "${task.content.trim()}" and is committed.` };
    }
  }
};

const fields = (tool: ScriptTool | undefined): Readonly<Record<string, unknown>> =>
  tool?.function?.parameters?.properties ?? {};
