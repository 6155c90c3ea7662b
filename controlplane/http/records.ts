// Handlers of audit and usage. Must not know where they are kept. Source: 20-control-plane §3.
import type { Project } from '#schema/resources/project.ts';
import type { listAuditRoute, listUsageRoute, projectUsageRoute } from '#schema/rest/records.ts';
import type { RecordsApp } from '../app/records.ts';
import { type Fetch, requireProject } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** The handlers, one per route of schema/rest/records.ts. */
export type RecordHandlers = Readonly<{
  listAudit: Handler<typeof listAuditRoute>;
  listUsage: Handler<typeof listUsageRoute>;
  getProjectUsage: Handler<typeof projectUsageRoute>;
}>;

/** Makes the handlers. Errors: those of the app, NotFoundError `project_not_found`. */
export const makeRecordHandlers = (
  ports: Readonly<{ records: RecordsApp; fetchProject: Fetch<Project> }>,
): RecordHandlers => {
  const { records } = ports;
  const found = requireProject(ports.fetchProject);
  return {
    listAudit: async ({ query }) => {
      const page = await records.audit(query);
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
    listUsage: async ({ query }) => {
      const page = await records.usage(query);
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
    getProjectUsage: async ({ params, query }) => {
      const project = await found(params);
      const page = await records.usage(query, project.metadata.uid);
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
  };
};
