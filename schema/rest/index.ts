// Every route of the public listener, in one list: mounted, documented and walked by tests.
import type { Route } from '../define-route.ts';
import * as policies from './agent-policies.ts';
import * as files from './files.ts';
import * as projects from './projects.ts';
import * as prompts from './prompts.ts';
import * as records from './records.ts';
import * as requests from './requests.ts';
import * as sessionVerbs from './session-verbs.ts';
import * as sessions from './sessions.ts';
import * as terminals from './terminals.ts';
import * as transcript from './transcript.ts';
import * as workspace from './workspace.ts';
import * as settings from './workspace-settings.ts';

const isRoute = (value: unknown): value is Route =>
  typeof value === 'object' && value !== null && 'operationId' in value && 'listener' in value;

/** All public routes, ordered by path and method. */
export const PUBLIC_ROUTES: readonly Route[] = [
  files,
  terminals,
  projects,
  prompts,
  records,
  requests,
  sessionVerbs,
  transcript,
  sessions,
  workspace,
  settings,
  policies,
]
  .flatMap((file) => Object.values(file).filter(isRoute))
  .sort((a, b) => (a.path + a.method < b.path + b.method ? -1 : 1));
