// Handlers of projects: read, create, change and delete them, ask for a sync, and say what a session would run. Must not know Kubernetes clients or git.
// Source: 20-control-plane §3, D19, J2.
import { NotFoundError } from '#base/errors.ts';
import type { FeatureFlag, Project } from '#schema/resources/project.ts';
import { FEATURE_FLAGS } from '#schema/resources/project.ts';
import type {
  createProjectRoute,
  deleteProjectRoute,
  FeatureView,
  getFeaturesRoute,
  getManifestRoute,
  getProjectHarnessRoute,
  getProjectRoute,
  listAllProjectsRoute,
  listProjectsRoute,
  patchFeaturesRoute,
  patchProjectRoute,
  syncNowRoute,
  validateManifestRoute,
} from '#schema/rest/projects.ts';
import {
  effectiveFlags,
  FLAG_FACTS,
  FLAG_FIELDS,
  flagWarning,
  type PlatformFlags,
} from '#schema/rules/effective-flags.ts';
import { selectHarness } from '#schema/rules/select-harness.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { type CheckSessionSpecPorts, checkDefaultModel } from '../app/check-session-spec.ts';
import { afterKey, type PageRequest, pageFrom } from '../app/page.ts';
import { projectViewOf } from '../app/resource-views.ts';
import { type Fetch, requireProject } from './find-objects.ts';
import type { Handler } from './handler.ts';

type FileProblem = ProjectFact['manifest']['errors'][number];

type Spec = Readonly<Record<string, unknown>>;

/** What the handlers need. */
export type ProjectPorts = Readonly<{
  fetchProject: Fetch<Project>;
  /** Of a namespace or of all, by namespace and name. */
  listProjects: (namespace?: string) => readonly Project[];
  createProject: (namespace: string, name: string, spec: Spec) => Promise<Project>;
  patchProject: (project: Project, spec: Spec) => Promise<Project>;
  deleteProject: (project: Project) => Promise<boolean>;
  judgeModel: CheckSessionSpecPorts['judgeModel'];
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
  listAllProjects: Handler<typeof listAllProjectsRoute>;
  getProject: Handler<typeof getProjectRoute>;
  createProject: Handler<typeof createProjectRoute>;
  patchProject: Handler<typeof patchProjectRoute>;
  deleteProject: Handler<typeof deleteProjectRoute>;
  getProjectFeatures: Handler<typeof getFeaturesRoute>;
  patchProjectFeatures: Handler<typeof patchFeaturesRoute>;
  getManifest: Handler<typeof getManifestRoute>;
  getProjectHarness: Handler<typeof getProjectHarnessRoute>;
  syncProjectNow: Handler<typeof syncNowRoute>;
  validateManifest: Handler<typeof validateManifestRoute>;
}>;

const keyOf = ({ metadata }: Project): string => `${metadata.namespace}/${metadata.name}`;

const pageOfProjects = (projects: readonly Project[], query: PageRequest) => {
  const after = afterKey(query);
  const rest = projects.filter((project) => keyOf(project) > after).slice(0, query.limit + 1);
  const page = pageFrom(rest, query.limit, keyOf);
  return { items: page.items.map(projectViewOf), cursor: page.cursor };
};

const RUNTIMES = ['opencode', 'pi', 'beaver'] as const;
const runtimeOf = (text: string | null | undefined) => RUNTIMES.find((runtime) => runtime === text);

const STATE_OF = { true: 'Enabled', false: 'Disabled', null: 'Inherit' } as const;
const OVERRIDE_OF = { Enabled: true, Disabled: false, Inherit: null } as const;

/** Every flag of a project with the layer that decided. */
const featuresOf = (project: Project, platform: PlatformFlags): FeatureView[] => {
  const { features } = project.spec;
  const flags = effectiveFlags(features, platform);
  return FEATURE_FLAGS.map((name) => ({
    name,
    enabled: flags[name].value,
    available: flags[name].available,
    source: flags[name].layer,
    override: OVERRIDE_OF[features[FLAG_FIELDS[name]]],
    platformDefault: platform[name].default,
    ...FLAG_FACTS[name],
    warning: flagWarning(name, flags[name]),
  }));
};

/** Makes the handlers. */
export const makeProjectHandlers = (ports: ProjectPorts): ProjectHandlers => {
  const found = requireProject(ports.fetchProject);
  return {
    listProjects: async ({ params, query }) => ({
      status: 200,
      body: pageOfProjects(ports.listProjects(params.namespace), query),
    }),
    listAllProjects: async ({ query }) => ({ status: 200, body: pageOfProjects(ports.listProjects(), query) }),
    getProject: async ({ params }) => ({ status: 200, body: projectViewOf(await found(params)) }),
    createProject: async ({ params, body }) => {
      await checkDefaultModel(body.spec, ports.judgeModel);
      const project = await ports.createProject(params.namespace, params.name, body.spec);
      return { status: 201, body: projectViewOf(project) };
    },
    patchProject: async ({ params, body }) => {
      const project = await found(params);
      await checkDefaultModel(body.spec, ports.judgeModel);
      return { status: 200, body: projectViewOf(await ports.patchProject(project, body.spec)) };
    },
    deleteProject: async ({ params }) => {
      const project = await found(params);
      if (await ports.deleteProject(project)) return { status: 202, body: { uid: project.metadata.uid } };
      const { name, namespace } = params;
      throw new NotFoundError('project_not_found', `there is no project ${name} in namespace ${namespace}`);
    },
    getProjectFeatures: async ({ params }) => ({
      status: 200,
      body: { features: featuresOf(await found(params), ports.platformFlags) },
    }),
    patchProjectFeatures: async ({ params, body }) => {
      const project = await found(params);
      const wished = Object.entries(body) as [FeatureFlag, boolean | null][];
      const states = wished.map(([flag, value]) => [FLAG_FIELDS[flag], STATE_OF[`${value}`]]);
      const changed =
        states.length === 0 ? project : await ports.patchProject(project, { features: Object.fromEntries(states) });
      return { status: 200, body: { features: featuresOf(changed, ports.platformFlags) } };
    },
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
