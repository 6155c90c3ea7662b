// The readable page of an OpenAPI document.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { z } from 'zod';
import { defineRoute } from '#schema/define-route.ts';
import { openApiDocument } from './openapi.ts';
import { openApiPage } from './openapi-page.ts';

const route = defineRoute({
  operationId: 'makeThing',
  listener: 'public',
  method: 'POST',
  path: '/v1/things/:id',
  summary: 'Make a <script>alert(1)</script> "thing" & more',
  auth: { kind: 'non-resource', path: '/v1/things', verb: 'post' },
  params: z.object({ id: z.string().max(9) }),
  body: z.object({ size: z.int().min(3) }),
  responses: { 201: z.object({ size: z.int() }) },
});
const info = { title: "<b>'T'</b>", version: '1', description: 'd', error: z.object({ error: z.string() }) };
const { html, contentSecurityPolicy } = openApiPage(openApiDocument([route], info));

test('the page names every operation with method, path, caller, parameters, body and answers', () => {
  for (const part of [
    '<b>POST</b>',
    '/v1/things/{id}',
    'verb post on the non-resource URL',
    '<code>id</code>',
    '&quot;minimum&quot;: 3',
    '201 Created',
    '404 There is no such object',
  ]) {
    assert.ok(html.includes(part), part);
  }
  assert.match(html, /<a href="#makeThing">[^]*<h3 id="makeThing">/);
});

test('FF12 no text of the document becomes markup, and nothing is loaded from elsewhere', () => {
  assert.ok(html.includes('Make a &lt;script&gt;alert(1)&lt;/script&gt; &quot;thing&quot; &amp; more'));
  assert.ok(html.includes('&lt;b&gt;&#39;T&#39;&lt;/b&gt;'));
  assert.doesNotMatch(html, /<script|src=|href="(?!#|openapi\.json")|@import|url\(|\son[a-z]+=/i);
});

test('the policy lets exactly the style of the page through', () => {
  const style = /<style>([^]*?)<\/style>/.exec(html)?.[1] ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  assert.ok(contentSecurityPolicy.includes(`style-src 'sha256-${hash}'`));
  assert.match(contentSecurityPolicy, /default-src 'none'/);
});
