// All conditions of a Project, Ready first, as notes. Pure; facts decide, and what cannot be known keeps its value or is
// Unknown, as the table of the specification says. Must not know actions. Source: 10-kubernetes §2.
import { type ConditionNote, findCondition } from '#kube/conditions.ts';
import { PROJECT_CONDITIONS, type ProjectConditionType } from '#schema/resources/conditions.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { timestamp } from '../runtime/time.ts';
import type { ObservedProject } from './observed.ts';
import { policyAccepted } from './policy-accepted.ts';
import { isAnswered } from './sync.ts';

const note = (
  type: ProjectConditionType,
  status: ConditionNote['status'],
  reason: string,
  message: string,
): ConditionNote => ({ type, status, reason, message });

const stored = (o: ObservedProject, type: ProjectConditionType): ConditionNote | undefined =>
  findCondition(o.project.status?.conditions ?? [], type);

/** The status that the closed lists give a reason of this type. */
const statusOf = (type: ProjectConditionType, reason: string): ConditionNote['status'] => {
  const words = PROJECT_CONDITIONS[type];
  if (reason in words.True) return 'True';
  return reason in words.False ? 'False' : 'Unknown';
};

/** What a reason means, from the closed lists: the message where a fact brings no better one. */
const meaningOf = (type: ProjectConditionType, reason: string): string => {
  const { True, False, Unknown } = PROJECT_CONDITIONS[type];
  const words: Readonly<Record<string, string>> = { ...True, ...False, ...Unknown };
  return words[reason] ?? reason;
};

const manifestMessage = (fact: ProjectFact): string => {
  const { errors, reason, path } = fact.manifest;
  const [first] = errors;
  if (first === undefined)
    return reason === 'Valid' ? `${path} is valid` : `${path}: ${meaningOf('ManifestValid', reason)}`;
  const place = first.line > 0 ? `:${first.line}:${first.column}` : '';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return `${first.path}${place}: ${first.message}${more}`;
};

const FACTS: Readonly<
  Record<
    'RepositoryReady' | 'ManifestValid' | 'ModelsValid' | 'ReleasePublished' | 'CredentialsReady',
    Readonly<{
      unread: string;
      unreadMessage: string;
      read: (fact: ProjectFact) => Readonly<{ reason: string; message: string }>;
    }>
  >
> = {
  RepositoryReady: {
    unread: 'Syncing',
    unreadMessage: 'the repository has not been fetched yet',
    read: ({ repository }) => ({
      reason: repository.reason,
      message:
        repository.message ||
        (repository.reason === 'Synced'
          ? `${repository.defaultBranch} is mirrored`
          : meaningOf('RepositoryReady', repository.reason)),
    }),
  },
  ManifestValid: {
    unread: 'NotRead',
    unreadMessage: 'no commit has been read yet',
    read: (fact) => ({ reason: fact.manifest.reason, message: manifestMessage(fact) }),
  },
  ModelsValid: {
    unread: 'RegistryUnavailable',
    unreadMessage: 'the provider registry has not been asked yet',
    read: ({ models }) => ({
      reason: models.reason,
      message: models.message || meaningOf('ModelsValid', models.reason),
    }),
  },
  ReleasePublished: {
    unread: 'NotBuilt',
    unreadMessage: 'no commit has been read yet',
    read: ({ release }) => ({
      reason: release.reason,
      message:
        release.current === null
          ? meaningOf('ReleasePublished', release.reason)
          : `release ${release.current.slice(0, 12)}`,
    }),
  },
  CredentialsReady: {
    unread: 'NotRead',
    unreadMessage: 'the Secrets have not been looked at yet',
    read: ({ credentials }) => ({
      reason: credentials.reason,
      message: credentials.message || meaningOf('CredentialsReady', credentials.reason),
    }),
  },
};

const since = ({ controlPlane: { lastContactMs } }: ObservedProject): string =>
  lastContactMs === undefined ? 'this operator started' : timestamp(lastContactMs);

const downNote = (o: ObservedProject, type: ProjectConditionType): ConditionNote | undefined => {
  if (PROJECT_CONDITIONS[type].controlPlaneDown === 'Keeps') return stored(o, type);
  const reason = type === 'ModelsValid' ? 'RegistryUnavailable' : 'ControlPlaneUnavailable';
  return note(type, 'Unknown', reason, `no contact with the control plane since ${since(o)}`);
};

const factNote = (o: ObservedProject, type: keyof typeof FACTS): ConditionNote => {
  const { unread, unreadMessage, read } = FACTS[type];
  const nothing = note(type, statusOf(type, unread), unread, unreadMessage);
  if (o.controlPlane.state === 'down') return downNote(o, type) ?? nothing;
  if (o.fact === undefined) return (o.controlPlane.state === 'connecting' ? stored(o, type) : undefined) ?? nothing;
  const { reason, message } = read(o.fact);
  return note(type, statusOf(type, reason), reason, message);
};

const withinLimits = (o: ObservedProject): ConditionNote => {
  const type = 'WithinLimits';
  if (o.controlPlane.state === 'down') {
    return note(type, 'Unknown', 'ControlPlaneUnavailable', `no contact with the control plane since ${since(o)}`);
  }
  if (o.fact === undefined && o.controlPlane.state === 'connecting') {
    const before = stored(o, type);
    if (before !== undefined) return before;
  }
  if (o.fact?.budget.reached === true) return note(type, 'False', 'BudgetReached', o.fact.budget.message);
  if (o.fact?.budget.runsReached === true) return note(type, 'False', 'RunsReached', o.fact.budget.message);
  const unfinished = o.sessions.filter(({ finished, deleting }) => !finished && !deleting).length;
  const { maxSessions } = o.project.spec.limits;
  return unfinished >= maxSessions
    ? note(type, 'False', 'SessionLimit', `${maxSessions} unfinished sessions exist, the limit maxSessions`)
    : note(type, 'True', 'WithinLimits', 'no limit is reached');
};

const deletionNote = (o: ObservedProject): ConditionNote => {
  const left = o.sessions.length;
  const { name } = o.project.metadata;
  if (left > 0 && o.project.spec.deletionPolicy === 'Block') {
    const message = `project ${name} has ${left} sessions and deletionPolicy Block; delete them first or set spec.deletionPolicy to Cascade`;
    return note('Ready', 'False', 'DeletionBlocked', message);
  }
  if (left > 0) return note('Ready', 'False', 'Deleting', `${left} sessions are being deleted`);
  return note('Ready', 'False', 'Deleting', 'waiting for the control plane to drop the mirror and the releases');
};

const readyNote = (o: ObservedProject, others: readonly ConditionNote[]): ConditionNote => {
  if (o.project.metadata.deletionTimestamp !== undefined) return deletionNote(o);
  if (o.project.spec.operatingMode === 'Suspended') {
    return note('Ready', 'False', 'Suspended', 'spec.operatingMode is Suspended');
  }
  if (o.controlPlane.state === 'down') return downNote(o, 'Ready') ?? note('Ready', 'Unknown', 'Syncing', '');
  if (o.controlPlane.state === 'connecting' && o.fact === undefined) {
    return stored(o, 'Ready') ?? note('Ready', 'Unknown', 'Syncing', 'waiting for the control plane');
  }
  if (!isAnswered(o)) return note('Ready', 'Unknown', 'Syncing', 'the control plane looks at the repository');
  const failing = others.find(({ type, status }) => status !== 'True' && type !== 'WithinLimits');
  if (failing === undefined) return note('Ready', 'True', 'Ready', 'sessions can start');
  const message = `${failing.type} ${failing.reason}: ${failing.message}`;
  return note('Ready', 'False', 'NotReady', message);
};

/** The conditions in the order they are listed. */
export const projectConditions = (o: ObservedProject): ConditionNote[] => {
  const others = [
    factNote(o, 'RepositoryReady'),
    factNote(o, 'ManifestValid'),
    factNote(o, 'ModelsValid'),
    factNote(o, 'ReleasePublished'),
    factNote(o, 'CredentialsReady'),
    policyAccepted(o.project.spec, o.installation),
    withinLimits(o),
  ];
  return [readyNote(o, others), ...others];
};
