// An OpenAPI document as one readable HTML page: no script, no file from elsewhere, every text escaped. Pure.
// Must not know any route. Source: 20-control-plane §2.
import { createHash } from 'node:crypto';
import type { OpenApiDocument } from './openapi.ts';

type Json = Readonly<Record<string, unknown>>;
type Operation = Readonly<{
  operationId: string;
  summary: string;
  description: string;
  parameters: readonly Readonly<{ name: string; in: string; required: boolean; schema: Json }>[];
  requestBody?: Readonly<{ content: Readonly<Record<string, Readonly<{ schema: Json }>>> }>;
  responses: Readonly<
    Record<string, Readonly<{ description: string; content?: Readonly<Record<string, Readonly<{ schema: Json }>>> }>>
  >;
}>;

/** The page, and the value of the header `content-security-policy` that it needs. */
export type DocumentPage = Readonly<{ html: string; contentSecurityPolicy: string }>;

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem}
code,pre{font:.875em/1.45 ui-monospace,monospace}pre{overflow:auto;padding:.75rem;border:1px solid #8886;border-radius:.375rem}
h2{margin-top:2.5rem;border-bottom:1px solid #8886}h3{margin:2rem 0 .25rem}h3 b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid #8884}
nav ul{columns:2;padding-left:1.25rem}p{margin:.25rem 0}summary{cursor:pointer}@media(max-width:40rem){nav ul{columns:1}}`;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (value: unknown): string => String(value).replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);

/** The first word of a path behind version and namespace: what the operations of a section are about. */
const sectionOf = (path: string): string => {
  const parts = path.split('/').filter((part) => part !== '' && !part.startsWith('{'));
  const rest = parts.filter((part) => part !== 'v1' && part !== 'namespaces');
  return (rest[0] === 'workspace' ? rest.slice(0, 2).join(' ') : rest[0]) ?? 'other';
};

const inShort = (schema: Json): string => {
  const choice = (schema['enum'] as readonly unknown[] | undefined)?.map(String).join(' · ');
  const bounds = ['minimum', 'maximum', 'maxLength', 'default']
    .filter((key) => key in schema)
    .map((key) => `${key} ${JSON.stringify(schema[key])}`);
  const types = [schema['type'] ?? 'any'].flat().map(String).join(' or ');
  return [choice ?? types, ...bounds].join(', ');
};

const block = (title: string, schema: Json): string =>
  `<details><summary>${escaped(title)}</summary><pre>${escaped(JSON.stringify(schema, null, 2))}</pre></details>`;

type Answer = Operation['responses'][string];

const operationHtml = (
  path: string,
  method: string,
  operation: Operation,
  shared: Readonly<Record<string, Answer>>,
): string => {
  const rows = operation.parameters.map(
    ({ name, in: place, required, schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${escaped(place)}${required ? ', required' : ''}</td><td>${escaped(inShort(schema))}</td></tr>`,
  );
  const body = operation.requestBody?.content['application/json']?.schema;
  const answers = Object.entries(operation.responses).map(([status, answer]): readonly [string, Answer] => {
    const [, name] = /^#\/components\/responses\/(.+)$/.exec((answer as { $ref?: string }).$ref ?? '') ?? [];
    return [status, shared[name ?? ''] ?? answer];
  });
  const responses = answers.map(([status, { description, content }]) => {
    const [media, value] = Object.entries(content ?? {})[0] ?? [];
    const isError = Number(status) >= 400;
    const title = `${status} ${description}${media === undefined || isError ? '' : ` (${media})`}`;
    return value === undefined || isError ? `<p>${escaped(title)}</p>` : block(title, value.schema);
  });
  return [
    `<h3 id="${escaped(operation.operationId)}"><b>${escaped(method.toUpperCase())}</b> <code>${escaped(path)}</code></h3>`,
    `<p>${escaped(operation.summary)}. ${escaped(operation.description)}</p>`,
    rows.length === 0 ? '' : `<table><tr><th>Parameter</th><th>In</th><th>Value</th></tr>${rows.join('')}</table>`,
    body === undefined ? '' : block('Body (application/json)', body),
    ...responses,
  ].join('\n');
};

/** Writes the page of a document that `openApiDocument` made. */
export const openApiPage = (document: OpenApiDocument): DocumentPage => {
  const { title, version, description } = document['info'] as Readonly<Record<string, string>>;
  const paths = document['paths'] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const components = document['components'] as Readonly<{
    schemas: { Error: Json };
    responses: Record<string, Answer>;
  }>;
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = [...Map.groupBy(all, ({ path }) => sectionOf(path))].sort(([a], [b]) => (a < b ? -1 : 1));
  const links = all.map(
    ({ operation }) => `<li><a href="#${escaped(operation.operationId)}">${escaped(operation.summary)}</a></li>`,
  );
  const html = [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)} API</title><style>${STYLE}</style></head>`,
    `<body><h1>${escaped(title)} API ${escaped(version)}</h1><p>${escaped(description)}</p>`,
    '<p>The same as a machine reads it: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>',
    `<nav><ul>${links.join('')}</ul></nav>`,
    ...sections.flatMap(([name, operations]) => [
      `<h2>${escaped(name)}</h2>`,
      ...operations.map(({ path, method, operation }) => operationHtml(path, method, operation, components.responses)),
    ]),
    '<h2>Errors</h2>',
    block('The body of every error', components.schemas.Error),
    '</body></html>',
  ].join('\n');
  const hash = createHash('sha256').update(STYLE).digest('base64');
  const contentSecurityPolicy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return { html, contentSecurityPolicy };
};
