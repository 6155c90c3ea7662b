// The whole status of a Project: what the facts say of the newest commit, what a start now would run, how many Sessions
// there are. Pure. Must not know how it is written. Source: 10-kubernetes §2.
import { setConditions } from '#kube/conditions.ts';
import type { ProjectPhase, ProjectStatus } from '#schema/resources/project.ts';
import { MANIFEST_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { chooseHarness } from '../runtime/choose-harness.ts';
import { timestamp } from '../runtime/time.ts';
import { projectConditions } from './conditions.ts';
import type { ObservedProject } from './observed.ts';
import { featuresOf, isAnswered } from './sync.ts';

const SHORT = 12;

const repositoryStatus = (fact: ProjectFact | undefined, before: ProjectStatus['repository']) => {
  const { defaultBranch, commit } = fact?.repository ?? {};
  if (commit === undefined || commit === null) return before;
  return { defaultBranch: defaultBranch ?? undefined, commit, shortCommit: commit.slice(0, SHORT) };
};

const MAX_ERROR_PATH = 512;

const manifestStatus = (
  fact: ProjectFact | undefined,
  before: ProjectStatus['manifest'],
): ProjectStatus['manifest'] => {
  if (fact === undefined || fact.manifest.reason === 'NotRead') return before;
  const { manifest } = fact;
  const valid = manifest.lastValid;
  return {
    path: manifest.path,
    version: manifest.version ?? undefined,
    valid: manifest.reason === 'Valid',
    hash: manifest.hash ?? undefined,
    runtime: MANIFEST_RUNTIMES.find((runtime) => runtime === valid?.runtime),
    defaultAgent: valid?.defaultAgent,
    agents: valid?.agents.map(({ name }) => name),
    errors:
      manifest.errors.length === 0
        ? undefined
        : manifest.errors.map(({ path, line, code, message }) => ({
            path: path.slice(0, MAX_ERROR_PATH),
            line: line === 0 ? undefined : line,
            code,
            message,
          })),
  };
};

const MODEL_CODES = ['UnknownModel', 'ModelDisabled', 'ProviderDisabled', 'NotAllowed'] as const;

const modelsStatus = (fact: ProjectFact | undefined, before: ProjectStatus['models']): ProjectStatus['models'] => {
  if (fact === undefined || fact.models.reason === 'RegistryUnavailable') return before;
  const invalid = fact.models.invalid.flatMap(({ name, code, usedBy, suggestion }) => {
    const known = MODEL_CODES.find((word) => word === code);
    return known === undefined
      ? []
      : [{ name, code: known, usedBy: usedBy.slice(0, 253), suggestion: suggestion ?? undefined }];
  });
  return {
    default: fact.models.default ?? undefined,
    registryGeneration: fact.models.registryGeneration,
    invalid: invalid.length === 0 ? undefined : invalid,
  };
};

const releaseStatus = (fact: ProjectFact | undefined, before: ProjectStatus['release']): ProjectStatus['release'] => {
  const { current, commit } = fact?.release ?? {};
  if (current === undefined || current === null) return before;
  const changed = before?.current !== undefined && before.current !== current;
  return {
    current,
    short: current.slice(0, SHORT),
    commit: commit ?? undefined,
    previous: changed ? before.current : before?.previous,
    quarantined: before?.quarantined,
  };
};

const harnessStatus = (o: ObservedProject): ProjectStatus['harness'] => {
  const manifest = o.fact?.manifest.lastValid;
  if (manifest === undefined || manifest === null) return o.project.status?.harness;
  return chooseHarness(o.project.spec.features, manifest.runtime, o.installation);
};

const sessionCounts = ({ sessions }: ObservedProject): NonNullable<ProjectStatus['sessions']> => ({
  total: sessions.length,
  running: sessions.filter(({ hasPod }) => hasPod).length,
  suspended: sessions.filter(({ phase }) => phase === 'Suspended').length,
  failed: sessions.filter(({ phase }) => phase === 'Failed').length,
});

const phaseOf = (o: ObservedProject, ready: string | undefined, commit: string | undefined): ProjectPhase => {
  if (o.project.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (o.project.spec.operatingMode === 'Suspended') return 'Suspended';
  if (ready === 'True') return 'Ready';
  return commit === undefined ? 'Pending' : 'Degraded';
};

/** The status of a Project. */
export const projectStatus = (o: ObservedProject): ProjectStatus => {
  const { project, fact } = o;
  const before = project.status ?? {};
  const { generation } = project.metadata;
  const conditions = setConditions(before.conditions ?? [], projectConditions(o), generation, timestamp(o.now));
  const repository = repositoryStatus(fact, before.repository);
  const answered = isAnswered(o);
  const phase = phaseOf(o, conditions.find(({ type }) => type === 'Ready')?.status, repository?.commit);
  // While the answer is on its way the phase stays: people see Syncing in the condition.
  const isSyncing = !answered && o.controlPlane.state !== 'down' && phase === 'Degraded' && before.phase === 'Ready';
  return {
    observedGeneration: generation,
    observedSyncToken: answered ? (fact?.syncToken ?? undefined) : before.observedSyncToken,
    phase: isSyncing ? 'Ready' : phase,
    repository,
    manifest: manifestStatus(fact, before.manifest),
    features: answered || before.features === undefined ? featuresOf(o) : before.features,
    harness: harnessStatus(o),
    models: modelsStatus(fact, before.models),
    release: releaseStatus(fact, before.release),
    sessions: sessionCounts(o),
    conditions,
  };
};
