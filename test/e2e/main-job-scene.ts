// What cases of the main job share: the installation with a project, and short ways to its sessions. Must not know any case.
import assert from 'node:assert/strict';
import {
  AGENT_FILE,
  conditionOf,
  type Installation,
  MANIFEST,
  type Resource,
  waitForResource,
} from '#test/support/installation.ts';
import { sampleSession } from '#tools/up/sample-objects.ts';

/** Files of the project `shop`. */
export const files = { 'beeuni.yaml': MANIFEST, 'agents/dev.md': AGENT_FILE, 'README.md': '# Shop\n' };

/** A line for the scripted model: run this command. */
export const bash = (command: string): string => `@@tool bash ${JSON.stringify({ command, description: 'run' })}`;

/** See the file. */
export type Scene = Readonly<{
  all: Installation;
  ready: (name: string) => Promise<Resource>;
  /** Makes a session of `shop`. */
  start: (name: string, prompt: string, more?: Record<string, unknown>) => Promise<void>;
  /** Applies an object that must be refused; gives back what was said. */
  refused: (object: object) => Promise<string>;
}>;

/** The scene over an installation. */
export const makeScene = (all: Installation): Scene => {
  const ready = (name: string): Promise<Resource> =>
    waitForResource(
      all.kubectl,
      'session',
      name,
      'Ready',
      (session) => conditionOf(session, 'Ready')?.status === 'True',
    );
  const start = async (name: string, prompt: string, more: Record<string, unknown> = {}): Promise<void> => {
    const session = sampleSession(name, 'shop', prompt) as { spec: Record<string, unknown> };
    await all.kubectl.apply([{ ...session, spec: { ...session.spec, ...more } }]);
  };
  const refused = (object: object): Promise<string> =>
    all.kubectl.apply([object]).then(
      () => assert.fail('it was accepted'),
      (error: unknown) => String(error),
    );
  return { all, ready, start, refused };
};
