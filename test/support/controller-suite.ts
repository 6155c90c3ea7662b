// What every controller must hold, as tests: golden plans, a fixed point, a crash anywhere, no mutation.
// Must not know any controller; each brings its states and its model world.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { deepFreeze } from '#kube/cache.ts';

/** A plan as the suite reads it. */
export type AnyPlan = Readonly<{ actions: readonly unknown[]; status: unknown; events: readonly unknown[] }>;

/** A world that a controller works on: maps that actions change. */
export type ModelWorld = Readonly<{
  /** The plan of what is seen now; undefined when there is nothing left. */
  plan: () => AnyPlan | undefined;
  /** One pass that dies after so many of its actions; the status is the last step. */
  pass: (steps?: number) => boolean;
  /** Passes and everything around them until nothing moves; throws when that does not happen. */
  settle: () => void;
  /** The process is started again: what it remembered is gone. */
  restart: () => void;
  /** One step of what surrounds the controller (nodes, daemons, time); true when something moved. */
  surroundings: () => boolean;
}>;

/** What a controller brings. */
export type ControllerSuite<Observed> = Readonly<{
  name: string;
  plan: (observed: Observed) => AnyPlan;
  /** Named states for golden plans. */
  states: Readonly<Record<string, () => Observed>>;
  /** Fresh worlds, each with a wish that it must reach; `reached` throws when it is not there. */
  worlds: Readonly<Record<string, () => Readonly<{ world: ModelWorld; reached: () => void }>>>;
}>;

/** YAML without the schema's noise: what is undefined is left out. */
const toYaml = (value: unknown): string => stringify(JSON.parse(JSON.stringify(value)), { lineWidth: 0 });

type Condition = Readonly<{ type: string; reason: string; message: string }>;

const conditionsOf = ({ status }: AnyPlan): readonly Condition[] =>
  (status as Readonly<{ conditions?: readonly Condition[] }> | undefined)?.conditions ?? [];

/** Registers the tests. */
export const controllerSuite = <Observed>(suite: ControllerSuite<Observed>): void => {
  for (const [state, observe] of Object.entries(suite.states)) {
    test(`the ${suite.name} plan of "${state}" is the recorded one`, (t) => {
      const plan = suite.plan(deepFreeze(observe()));
      const file = `${state.replaceAll(/[^a-z0-9]+/gi, '-')}.yaml`;
      t.assert.fileSnapshot(plan, new URL(`../../operator/${suite.name}/golden/${file}`, import.meta.url).pathname, {
        serializers: [toYaml],
      });
    });
  }

  test(`every condition of a ${suite.name} plan has a message of its own words`, () => {
    let seen = 0;
    for (const [state, observe] of Object.entries(suite.states)) {
      for (const { type, reason, message } of conditionsOf(suite.plan(deepFreeze(observe())))) {
        seen += 1;
        assert.doesNotMatch(message, new RegExp(`^$|^(\\S+: )?${reason}$`), `${state}: ${type}`);
      }
    }
    assert.ok(seen > 0, 'no condition was seen');
  });

  test(`no ${suite.name} plan changes what it was given`, () => {
    for (const observe of Object.values(suite.states)) suite.plan(deepFreeze(observe()));
  });

  test(`a ${suite.name} plan of the same observation is the same plan`, () => {
    for (const observe of Object.values(suite.states)) {
      assert.deepEqual(suite.plan(deepFreeze(observe())), suite.plan(deepFreeze(observe())));
    }
  });

  for (const [name, make] of Object.entries(suite.worlds)) {
    test(`a converged ${suite.name} world has an empty plan: ${name}`, () => {
      const { world, reached } = make();
      world.settle();
      reached();
      assert.deepEqual(world.plan()?.actions ?? [], []);
      assert.equal(world.pass(), false, 'a second pass changed something');
      world.restart();
      world.settle();
      reached();
      assert.deepEqual(world.plan()?.actions ?? [], []);
    });

    test(`a ${suite.name} controller that dies anywhere converges all the same: ${name}`, () => {
      const step = fc.oneof(
        { weight: 4, arbitrary: fc.nat(4).map((steps) => ({ kind: 'pass' as const, steps })) },
        { weight: 2, arbitrary: fc.constant({ kind: 'surroundings' as const }) },
        { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
      );
      fc.assert(
        fc.property(fc.array(step, { maxLength: 24 }), (steps) => {
          const { world, reached } = make();
          for (const each of steps) {
            if (each.kind === 'pass') world.pass(each.steps);
            else if (each.kind === 'restart') world.restart();
            else world.surroundings();
          }
          world.restart();
          world.settle();
          reached();
        }),
        { numRuns: 25 },
      );
    });
  }
};
