// Whether a node cluster does what its users count on: the API answers, the node is Ready, names resolve.
import type { AdminRequest } from './api-client.ts';
import type { NodeLayout } from './node-layout.ts';

/** What keeps a cluster from being usable; undefined when nothing does. */
export async function unmetCondition(layout: NodeLayout, request: AdminRequest): Promise<string | undefined> {
  const ready = await request('GET', '/readyz');
  if (ready.status !== 200) return `its API server is not ready (${ready.status || 'no answer'})`;
  const node = await readJson<{ status?: { conditions?: { type: string; status: string; message?: string }[] } }>(
    request,
    `/api/v1/nodes/${layout.nodeName}`,
  );
  const nodeReady = node?.status?.conditions?.find((condition) => condition.type === 'Ready');
  if (nodeReady?.status !== 'True')
    return `its node is not Ready: ${nodeReady?.message ?? 'it has no such condition yet'}`;
  const account = await request('GET', '/api/v1/namespaces/default/serviceaccounts/default');
  if (account.status !== 200) return 'the default service account is missing';
  const dns = await readJson<{ status?: { availableReplicas?: number } }>(
    request,
    '/apis/apps/v1/namespaces/kube-system/deployments/coredns',
  );
  return (dns?.status?.availableReplicas ?? 0) > 0 ? undefined : 'CoreDNS is not available';
}

async function readJson<T>(request: AdminRequest, path: string): Promise<T | undefined> {
  const answer = await request('GET', path);
  return answer.status === 200 ? (JSON.parse(answer.body) as T) : undefined;
}
