// The page with what each harness offers. Pure.
import { CAPABILITIES } from '#schema/wire/runtime.ts';
import { type Offers, VERBS } from './people-cases.ts';

/** Where the page is. */
export const MATRIX_PAGE = new URL('../../../docs/reference/harness-matrix.md', import.meta.url);

/** The page. */
export const matrixOf = (opencode: Offers, pi: Offers): string =>
  [
    '# What each harness offers',
    '',
    'Made from a run of both harnesses by test/harness/contract.test.ts. `yes`: the capability is in the list of',
    "`GET /beeuni/health`, and the daemon serves it. A number is the daemon's answer where the harness has no such thing:",
    '501 `feature_not_supported`, or 404 for a document.',
    '',
    '| capability | what | opencode | pi |',
    '| --- | --- | --- | --- |',
    ...CAPABILITIES.map((id) => `| \`${id}\` | ${VERBS[id].what} | ${opencode[id]} | ${pi[id]} |`),
    '',
  ].join('\n');
