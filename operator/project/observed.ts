// What a Project controller sees in one pass: one immutable record, from caches and facts. Types only.
// Must not know where the parts come from.
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import type { ControlPlane } from '../runtime/control-plane.ts';

/** A Session of the Project, as far as it counts. */
export type ObservedProjectSession = Readonly<{
  name: string;
  uid: string;
  deleting: boolean;
  finished: boolean;
  hasPod: boolean;
  phase: string | undefined;
}>;

/** What was asked of the control plane last in this process. */
export type AskedSync = Readonly<{ generation: number; syncToken: string | null; features: string; agoMs: number }>;

/** A Secret that the Project refers to: its version now, and the one that the control plane was told; empty: there is none. */
export type ObservedSecret = Readonly<{ name: string; version: string; told: string }>;

/** Everything that a Project plan may look at. Source: 10-kubernetes §5. */
export type ObservedProject = Readonly<{
  /** API-server time. Units: milliseconds since 1970. Source: K20. */
  now: number;
  project: Project;
  fact: ProjectFact | undefined;
  controlPlane: ControlPlane;
  sessions: readonly ObservedProjectSession[];
  serviceAccountSeen: boolean;
  /** No other Project is in the namespace. */
  lastOfNamespace: boolean;
  asked: AskedSync | undefined;
  /** Only Secrets whose metadata may be read and was read. */
  secrets: readonly ObservedSecret[];
  installation: Installation;
}>;
