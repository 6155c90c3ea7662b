// YAML as people write it, read with limits: size, depth, aliases, duplicate keys; every problem and value with its place.
// It must not know what a document means. Source: 20-control-plane §6 (1 MiB, depth 64, bounded aliases).
import {
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  parseDocument,
  stringify,
} from 'yaml';
import type { DocumentPath, ParsedYaml, Place, YamlProblem } from '#schema/manifest/source.ts';

/** Largest text that is read. Units: bytes of UTF-8. */
export const MAX_YAML_BYTES = 1024 * 1024;
/** Deepest nesting of lists and maps that is read. */
export const MAX_YAML_DEPTH = 64;
/** Most lexical tokens that are read; the parser takes seconds for a megabyte of tiny values. */
export const MAX_YAML_TOKENS = 50_000;
/** Most uses of one anchor that are expanded. */
const MAX_ALIASES = 100;

const TOP: Place = { line: 1, column: 1 };

const failed = (code: YamlProblem['code'], message: string, place: Place = TOP): ParsedYaml => ({
  value: undefined,
  problems: [{ code, message, ...place }],
  placeOf: () => TOP,
});

const sentence = (message: string) => `${message.charAt(0).toLowerCase()}${message.slice(1)}`;

/**
 * The value of one YAML 1.2 document with the place of each part. Duplicate keys, several documents and keys that are no
 * text are problems of code SyntaxError; size, depth and aliases above their limits are TooLarge. Never throws for a text.
 */
export function parseYaml(text: string): ParsedYaml {
  if (Buffer.byteLength(text) > MAX_YAML_BYTES)
    return failed('TooLarge', `is larger than ${MAX_YAML_BYTES / 1024 / 1024} MiB`);
  const problem = limitProblem(text);
  return problem === undefined ? parseBounded(text) : failed('TooLarge', problem);
}

const TOO_DEEP = `is nested deeper than ${MAX_YAML_DEPTH}`;

/**
 * Why a text is not given to the parser, which recurses and is slow for what is nested thousands deep: too many tokens, or a
 * depth of brackets and indentation far above the limit. The exact depth is measured on the parsed nodes.
 */
function limitProblem(text: string): string | undefined {
  const columns: number[] = [];
  let tokens = 0;
  let brackets = 0;
  let column = 0;
  let lineStarts = true;
  for (const token of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > MAX_YAML_TOKENS) return `has more than ${MAX_YAML_TOKENS} tokens`;
    if (token === '\n' || token === '\r\n') {
      column = 0;
      lineStarts = true;
      continue;
    }
    if (token === '[' || token === '{') brackets += 1;
    if (token === ']' || token === '}') brackets -= 1;
    if (brackets === 0 && token.trim() !== '') {
      if (lineStarts) while ((columns.at(-1) ?? -1) >= column) columns.pop();
      if ((columns.at(-1) ?? -1) < column && (lineStarts || token === '-' || token === '?')) columns.push(column);
      lineStarts = false;
    }
    if (brackets > MAX_YAML_DEPTH || columns.length > 2 * MAX_YAML_DEPTH) return TOO_DEEP;
    column += token.length;
  }
  return undefined;
}

function parseBounded(text: string): ParsedYaml {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    version: '1.2',
    merge: false,
    uniqueKeys: true,
    stringKeys: true,
    prettyErrors: false,
    logLevel: 'error',
  });
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const placeOfNode = (node: unknown): Place | undefined => {
    const range = isScalar(node) || isCollection(node) || isAlias(node) ? node.range : undefined;
    return range ? placeAt(range[0]) : undefined;
  };
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ message, pos }) => ({
      code: 'SyntaxError' as const,
      message: sentence(message),
      ...placeAt(pos[0]),
    }));
    return { value: undefined, problems, placeOf: () => TOP };
  }
  const tooDeep = nodeDeeperThan(document.contents, MAX_YAML_DEPTH);
  if (tooDeep !== undefined) {
    return failed('TooLarge', TOO_DEEP, placeOfNode(tooDeep) ?? TOP);
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    if (error instanceof ReferenceError) return failed('TooLarge', 'expands too many aliases');
    throw error;
  }
  const resolve = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node);
  const placeOf = (path: DocumentPath, part: 'key' | 'value' = 'value'): Place => {
    let node: unknown = document.contents;
    let place = placeOfNode(node) ?? TOP;
    for (const [index, step] of path.entries()) {
      const parent = resolve(node);
      if (isMap(parent)) {
        const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
        if (pair === undefined) return place;
        const asKey = part === 'key' && index === path.length - 1;
        node = asKey ? pair.key : (pair.value ?? pair.key);
      } else if (isSeq(parent)) {
        node = parent.items[Number(step)];
      } else {
        return place;
      }
      place = placeOfNode(node) ?? place;
    }
    return place;
  };
  return { value, problems: [], placeOf };
}

/** A node that lies deeper than `limit`; undefined when none does. Does not go further than that. */
function nodeDeeperThan(root: Node | null, limit: number): unknown {
  const waiting: { node: unknown; depth: number }[] = [{ node: root, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth } = next;
    if (!isCollection(node)) continue;
    if (depth >= limit) return node;
    for (const item of node.items) {
      const child = isMap(node) ? (item as { value: unknown }).value : item;
      waiting.push({ node: child, depth: depth + 1 });
    }
  }
  return undefined;
}

/** YAML text of a value, for people: no line folding, no anchors. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}
