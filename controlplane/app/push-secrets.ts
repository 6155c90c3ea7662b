// Sends the granted secrets of a project to its running sandboxes after one of them changed.
// Must not know HTTP. Source: A180, A186, 10-kubernetes §6 (rotation within 5 s).
import type { Logger } from '#base/log.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type { SessionEnv } from './project-config.ts';

/** What the push needs. */
export type PushSecretsPorts = Readonly<{
  findProjectByUid: (uid: string) => Project | undefined;
  listSessions: (namespace: string) => readonly Session[];
  sessionEnv: (session: Session, project: Project) => Promise<SessionEnv | undefined>;
  /** False when the daemon did not take it; it reads everything again with its next claim. */
  pushEnv: (sessionUid: string, revision: number, env: Readonly<Record<string, string>>) => Promise<boolean>;
  log: Logger;
}>;

/** Pushes to every session of the project that has a pod, side by side. Never rejects for a single sandbox. */
export const makePushSecrets =
  (ports: PushSecretsPorts): ((projectUid: string) => Promise<void>) =>
  async (projectUid) => {
    const project = ports.findProjectByUid(projectUid);
    if (project === undefined) return;
    const sessions = ports
      .listSessions(project.metadata.namespace)
      .filter(({ spec, status }) => spec.projectRef.name === project.metadata.name && status?.pod?.uid !== undefined);
    await Promise.all(
      sessions.map(async (session) => {
        try {
          const granted = await ports.sessionEnv(session, project);
          if (granted !== undefined) await ports.pushEnv(session.metadata.uid, granted.revision, granted.env);
        } catch (error) {
          ports.log.warn('granted secrets could not be pushed', { session: session.metadata.name, err: error });
        }
      }),
    );
  };
