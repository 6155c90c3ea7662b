// SpecAccepted: whether the Project, agent, model, template, resources and limits allow this Session. Pure.
// Checks in order, the first that fails gives reason and message. Must not know pods. Source: 10-kubernetes §3, §4.
import { type ConditionNote, findCondition } from '#kube/conditions.ts';
import type { Project } from '#schema/resources/project.ts';
import { checkModelName, isModelAllowed } from '#schema/rules/check-model.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { templateName, templateOf } from './choose-start.ts';
import { type Manifest, sessionAgent, sessionModel } from './effective.ts';
import type { ObservedSession } from './observed.ts';
import { aboveCeiling } from './resources.ts';

const TYPE = 'SpecAccepted';
const MAX_NAMES = 8;

const note = (status: ConditionNote['status'], reason: string, message: string): ConditionNote => ({
  type: TYPE,
  status,
  reason,
  message,
});

const refused = (reason: string, message: string): ConditionNote => note('False', reason, message);

/** SpecAccepted as it was written last; undefined before the first time. */
export const acceptedBefore = (o: ObservedSession): ConditionNote | undefined =>
  findCondition(o.session.status?.conditions ?? [], TYPE);

const names = (all: readonly string[]): string =>
  all.length === 0 ? 'none' : all.slice(0, MAX_NAMES).join(', ') + (all.length > MAX_NAMES ? ', …' : '');

const isAllowedImage = (image: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => (pattern.endsWith('*') ? image.startsWith(pattern.slice(0, -1)) : pattern === image));

/** ProjectNotReady: the conditions of the Project that block starts. */
const projectProblem = (project: Project): string | undefined => {
  for (const type of ['CredentialsReady', 'PolicyAccepted']) {
    const condition = findCondition(project.status?.conditions ?? [], type);
    if (condition?.status === 'False') return `${type} of project ${project.metadata.name}: ${condition.message}`;
  }
  return undefined;
};

const modelProblem = (o: ObservedSession, project: Project, fact: ProjectFact, agent: string): string | undefined => {
  const model = sessionModel(o.session, project, fact, o.registry, agent);
  if (model === undefined) return undefined;
  const verdict = checkModelName(model.value, o.registry?.providers ?? []);
  if (!verdict.valid) return `model ${model.value}, named by ${model.layer}: ${verdict.code}: ${verdict.message}`;
  const allowed = project.spec.models?.allowed;
  if (allowed === undefined || isModelAllowed(model.value, allowed)) return undefined;
  return `model ${model.value}, named by ${model.layer}: NotAllowed; spec.models.allowed of the Project lists ${names(allowed)}`;
};

const templateProblem = (o: ObservedSession, project: Project, manifest: Manifest): string | undefined => {
  const name = templateName(o.session, project, manifest);
  if (name === undefined) return undefined;
  const template = templateOf(o.session, project, manifest);
  if (template === undefined) {
    return `the manifest has no sandbox template ${name}; it has ${names(manifest.templates.map(({ slug }) => slug))}`;
  }
  const { image } = template;
  if (image === null) return undefined;
  if (!isAllowedImage(image, project.spec.sandbox?.allowedImages ?? [])) {
    return `template ${name} names image ${image}, which spec.sandbox.allowedImages of the Project does not list`;
  }
  const needsDigest = o.installation.sandbox.imagePolicy.requireDigest && !image.includes('@sha256:');
  return needsDigest ? `template ${name} names image ${image}, which has no digest` : undefined;
};

/** A Session works on a branch of its own: never on the base branch, and never on that of another Session. Source: D9, A22. */
const branchProblem = (o: ObservedSession, fact: ProjectFact): string | undefined => {
  const branch = o.session.spec.branch?.name;
  if (branch === undefined) return undefined;
  const base = o.session.spec.branch?.base ?? fact.repository.defaultBranch;
  if (branch === base || branch === fact.repository.defaultBranch) {
    return `branch ${branch} is the base branch; leave spec.branch.name out or name another one`;
  }
  if (o.branchHeldBy === undefined) return undefined;
  return `session ${o.branchHeldBy} works on branch ${branch}; delete it, or leave spec.branch.name out`;
};

const withManifest = (
  o: ObservedSession,
  project: Project,
  fact: ProjectFact,
  manifest: Manifest,
): ConditionNote | undefined => {
  const agent = sessionAgent(o.session, project, manifest);
  const agents = manifest.agents.map(({ name }) => name);
  if (!agents.includes(agent.value)) {
    return refused('AgentUnknown', `the manifest has no agent ${agent.value}; it has ${names(agents)}`);
  }
  if (fact.models.reason === 'RegistryUnavailable' || o.registry === undefined) {
    return acceptedBefore(o)?.status === 'True'
      ? undefined
      : note('Unknown', 'RegistryUnavailable', 'the provider registry could not be read');
  }
  const model = modelProblem(o, project, fact, agent.value);
  if (model !== undefined) return refused('ModelInvalid', model);
  const branch = branchProblem(o, fact);
  if (branch !== undefined) return refused('BranchNotAvailable', branch);
  const template = templateProblem(o, project, manifest);
  if (template !== undefined) return refused('TemplateUnknown', template);
  const resources = aboveCeiling(o.session, project, o.installation);
  if (resources !== undefined) return refused('ResourcesNotAllowed', resources);
  const { maxSessions } = project.spec.limits;
  if (o.unfinishedBefore !== undefined && o.unfinishedBefore >= maxSessions) {
    return refused('LimitReached', `the Project has ${maxSessions} unfinished sessions, its limit maxSessions`);
  }
  return undefined;
};

/** The condition as it is now. While the control plane cannot be asked, what was accepted stays accepted. */
export const specAccepted = (o: ObservedSession): ConditionNote => {
  const { project, projectFact, controlPlane } = o;
  const before = acceptedBefore(o);
  const name = o.session.spec.projectRef.name;
  if (project === undefined) return refused('ProjectNotFound', `there is no Project ${name} in this namespace`);
  if (project.metadata.deletionTimestamp !== undefined && before?.status !== 'True') {
    return refused('ProjectDeleting', `project ${name} is being deleted`);
  }
  if (project.spec.operatingMode === 'Suspended') return refused('ProjectSuspended', `project ${name} is suspended`);
  if (controlPlane.state !== 'available') {
    return before?.status === 'True'
      ? before
      : note('Unknown', 'ControlPlaneUnavailable', 'waiting for the control plane');
  }
  const isLookedAt = project.status?.observedGeneration === project.metadata.generation;
  if (projectFact === undefined || !isLookedAt) {
    return before?.status === 'True' ? before : refused('ProjectNotReady', `project ${name} has not been synced yet`);
  }
  const manifest = projectFact.manifest.lastValid;
  if (manifest === null) {
    const cause = findCondition(project.status?.conditions ?? [], 'Ready');
    const why = cause?.status === 'True' || cause === undefined ? '' : `: ${cause.message}`;
    return refused('ProjectNotReady', `project ${name} has no valid manifest yet${why}`);
  }
  const problem = projectProblem(project);
  if (problem !== undefined) return refused('ProjectNotReady', problem);
  return withManifest(o, project, projectFact, manifest) ?? note('True', 'Accepted', 'the Project allows this Session');
};
