// A model world for the project controller: one Project, its Sessions, and a control plane that answers.
// It knows only what plans read. Used for fixed points and crashes anywhere.
import assert from 'node:assert/strict';
import { deepFreeze } from '#kube/cache.ts';
import { FINALIZERS } from '#kube/names.ts';
import type { ProjectAction } from '#operator/project/actions.ts';
import { projectStatusChange } from '#operator/project/major.ts';
import type { AskedSync, ObservedProject, ObservedProjectSession, ObservedSecret } from '#operator/project/observed.ts';
import { type ProjectPlan, planProject } from '#operator/project/plan.ts';
import { type Project, ProjectKind, type ProjectSpecInput, type ProjectStatus } from '#schema/resources/project.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import type { ModelWorld } from './controller-suite.ts';
import { anInstallation, aProject, aProjectFact, at, NOON_MS } from './session-fixtures.ts';

/** One Project and all around it. */
export class ProjectWorld {
  now = NOON_MS;
  project: Project | undefined;
  fact: ProjectFact | undefined;
  sessions: ObservedProjectSession[] = [];
  controlPlane: ObservedProject['controlPlane']['state'] = 'available';
  installation = anInstallation();
  secrets: ObservedSecret[] = [];
  /** Notices that the control plane got, as `name version`. */
  readonly told: string[] = [];
  closed = false;
  serviceAccount = false;
  syncs = 0;
  readonly counts = { statusWrites: 0, writes: 0 };
  /** What the control plane answers to a sync. */
  answer: Partial<ProjectFact> = {};
  #asked: AskedSync | undefined;
  #version = 100;

  constructor(spec: Partial<ProjectSpecInput> = {}) {
    const { status: _none, ...project } = aProject(spec);
    this.project = project;
  }

  /** What the controller would see now, frozen to the bottom. */
  observe(): ObservedProject | undefined {
    if (this.project === undefined) return undefined;
    return deepFreeze(
      structuredClone({
        now: this.now,
        project: this.project,
        fact: this.fact,
        controlPlane: { state: this.controlPlane, lastContactMs: this.now },
        sessions: this.sessions,
        serviceAccountSeen: this.serviceAccount,
        lastOfNamespace: true,
        asked: this.#asked,
        secrets: this.secrets,
        installation: this.installation,
      }),
    );
  }

  plan(): ProjectPlan | undefined {
    const o = this.observe();
    return o === undefined ? undefined : planProject(o);
  }

  /** One pass that dies after `steps` of its actions; the status is the step after the last. */
  pass(steps = Number.POSITIVE_INFINITY): boolean {
    const plan = this.plan();
    if (plan === undefined) return false;
    const actions = plan.actions.slice(0, steps);
    for (const action of actions) this.perform(action);
    if (steps <= plan.actions.length) return actions.length > 0;
    const wrote = plan.status !== undefined && !plan.inTransit && this.#writeStatus(plan.status);
    return actions.length > 0 || wrote;
  }

  /** Sessions that are being deleted go. */
  surroundings(): boolean {
    const before = this.sessions.length;
    this.sessions = this.sessions.filter(({ deleting }) => !deleting);
    return this.sessions.length !== before;
  }

  settle(): void {
    for (let n = 0; n < 200; n += 1) {
      const moved = this.pass();
      if (!this.surroundings() && !moved) return;
    }
    assert.fail(`the world did not settle: ${JSON.stringify(this.plan(), undefined, 1)}`);
  }

  restart(): void {
    this.#asked = undefined;
    this.serviceAccount = false;
  }

  /** Changes the spec as a user does. */
  edit(spec: Partial<ProjectSpecInput>): void {
    if (this.project === undefined) return;
    const { metadata } = this.project;
    this.project = ProjectKind.object.parse({
      ...this.project,
      metadata: { ...metadata, generation: metadata.generation + 1 },
      spec: { ...this.project.spec, ...spec },
    });
  }

  delete(): void {
    if (this.project === undefined) return;
    const { metadata } = this.project;
    this.project = {
      ...this.project,
      metadata: { ...metadata, generation: metadata.generation + 1, deletionTimestamp: at(0) },
    };
  }

  model(): ModelWorld {
    return {
      plan: () => this.plan(),
      pass: (steps) => this.pass(steps),
      settle: () => this.settle(),
      restart: () => this.restart(),
      surroundings: () => this.surroundings(),
    };
  }

  perform(action: ProjectAction): void {
    switch (action.kind) {
      case 'addFinalizer':
        return this.#setFinalizers([FINALIZERS.project]);
      case 'releaseFinalizer':
        return this.#setFinalizers([]);
      case 'ensureServiceAccount':
        this.serviceAccount = true;
        return;
      case 'removeServiceAccount':
        this.serviceAccount = false;
        return;
      case 'syncProject': {
        const { generation, syncToken } = action.request;
        this.syncs += 1;
        this.#asked = { generation, syncToken, features: action.features, agoMs: 0 };
        this.fact = { ...aProjectFact(), uid: action.request.uid, generation, syncToken, ...this.answer };
        return;
      }
      case 'tellSecret':
        this.told.push(`${action.name} ${action.version}`);
        this.secrets = this.secrets.map((each) =>
          each.name === action.name ? { ...each, told: action.version } : each,
        );
        return;
      case 'deleteSession':
        this.sessions = this.sessions.map((each) => (each.uid === action.uid ? { ...each, deleting: true } : each));
        return;
      case 'closeProject':
        this.closed = true;
        return;
    }
  }

  #setFinalizers(finalizers: string[]): void {
    if (this.project === undefined) return;
    this.counts.writes += 1;
    const gone = finalizers.length === 0 && this.project.metadata.deletionTimestamp !== undefined;
    this.#version += 1;
    const metadata = { ...this.project.metadata, finalizers, resourceVersion: String(this.#version) };
    this.project = gone ? undefined : { ...this.project, metadata };
  }

  #writeStatus(status: ProjectStatus): boolean {
    if (this.project === undefined || projectStatusChange(this.project.status, status) === 'none') return false;
    this.counts.statusWrites += 1;
    this.project = ProjectKind.object.parse(JSON.parse(JSON.stringify({ ...this.project, status })));
    return true;
  }
}
