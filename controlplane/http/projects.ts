// Handlers of projects: read them, ask for a sync, and say what a session would run. Must not know Kubernetes clients or git.
// Source: 20-control-plane §3, D19, J2.
import type { Project } from '#schema/resources/project.ts';
import { FEATURE_FLAGS } from '#schema/resources/project.ts';
import type {
  getManifestRoute,
  getProjectHarnessRoute,
  getProjectRoute,
  listProjectsRoute,
  syncNowRoute,
  validateManifestRoute,
} from '#schema/rest/projects.ts';
import { effectiveFlags, type PlatformFlags } from '#schema/rules/effective-flags.ts';
import { selectHarness } from '#schema/rules/select-harness.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { afterKey, pageFrom } from '../app/page.ts';
import { projectViewOf } from '../app/resource-views.ts';
import { type Fetch, requireProject } from './find-objects.ts';
import type { Handler } from './handler.ts';

type FileProblem = ProjectFact['manifest']['errors'][number];

/** What the handlers need. */
export type ProjectPorts = Readonly<{
  fetchProject: Fetch<Project>;
  listProjects: (namespace: string) => readonly Project[];
  patchProject: (project: Project, spec: Readonly<Record<string, unknown>>) => Promise<Project>;
  /** What the last sync found; undefined before the first. */
  findProjectFact: (projectUid: string) => Promise<ProjectFact | undefined>;
  /** Judges a manifest text with the agent files of the newest commit. */
  judgeManifest: (
    project: Project,
    text: string,
  ) => Promise<Readonly<{ errors: readonly FileProblem[]; warnings: readonly FileProblem[] }>>;
  platformFlags: PlatformFlags;
  /** A new value for `syncToken`. */
  newToken: () => string;
}>;

/** The handlers, one per route of schema/rest/projects.ts. */
export type ProjectHandlers = Readonly<{
  listProjects: Handler<typeof listProjectsRoute>;
  getProject: Handler<typeof getProjectRoute>;
  getManifest: Handler<typeof getManifestRoute>;
  getProjectHarness: Handler<typeof getProjectHarnessRoute>;
  syncProjectNow: Handler<typeof syncNowRoute>;
  validateManifest: Handler<typeof validateManifestRoute>;
}>;

const keyOf = (project: Project): string => project.metadata.name;

const RUNTIMES = ['opencode', 'pi', 'beaver'] as const;
const runtimeOf = (text: string | null | undefined) => RUNTIMES.find((runtime) => runtime === text);

/** Makes the handlers. */
export const makeProjectHandlers = (ports: ProjectPorts): ProjectHandlers => {
  const found = requireProject(ports.fetchProject);
  return {
    listProjects: async ({ params, query }) => {
      const after = afterKey(query);
      const projects = ports
        .listProjects(params.namespace)
        .filter((project) => keyOf(project) > after)
        .slice(0, query.limit + 1);
      const page = pageFrom(projects, query.limit, keyOf);
      return { status: 200, body: { items: page.items.map(projectViewOf), cursor: page.cursor } };
    },
    getProject: async ({ params }) => ({ status: 200, body: projectViewOf(await found(params)) }),
    getManifest: async ({ params }) => {
      const project = await found(params);
      const fact = await ports.findProjectFact(project.metadata.uid);
      return { status: 200, body: { manifest: fact?.manifest ?? null } };
    },
    getProjectHarness: async ({ params }) => {
      const project = await found(params);
      const fact = await ports.findProjectFact(project.metadata.uid);
      const flags = effectiveFlags(project.spec.features, ports.platformFlags);
      const choice = selectHarness({
        llmGateway: flags.llm_gateway.value,
        piHarness: flags.pi_harness.value,
        manifestRuntime: runtimeOf(fact?.manifest.lastValid?.runtime ?? project.status?.manifest?.runtime),
      });
      const shown = FEATURE_FLAGS.map((name) => ({ name, enabled: flags[name].value, layer: flags[name].layer }));
      return { status: 200, body: { ...choice, flags: shown } };
    },
    syncProjectNow: async ({ params }) => ({
      status: 202,
      body: projectViewOf(await ports.patchProject(await found(params), { syncToken: ports.newToken() })),
    }),
    validateManifest: async ({ params, body }) => {
      const { errors, warnings } = await ports.judgeManifest(await found(params), body.text);
      const verdict = errors.length > 0 ? 'blocked' : warnings.length > 0 ? 'warning' : 'ready';
      return { status: 200, body: { verdict, errors: [...errors], warnings: [...warnings] } };
    },
  };
};
