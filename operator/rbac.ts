// The rights of the operator as data: those of its controllers, merged. The chart's role is made from this.
// Must not know the chart. Source: 10-kubernetes §9.
import { PROJECT_RBAC } from './project/controller.ts';
import type { RbacRule } from './runtime/controller.ts';
import { SESSION_RBAC } from './session/controller.ts';

/** Rules with one resource each, verbs joined and sorted; the same right appears once. */
export const mergeRules = (rules: readonly RbacRule[]): RbacRule[] => {
  const verbs = new Map<string, Set<string>>();
  for (const rule of rules) {
    for (const group of rule.apiGroups) {
      for (const resource of rule.resources) {
        const key = `${group}/${resource}`;
        verbs.set(key, new Set([...(verbs.get(key) ?? []), ...rule.verbs]));
      }
    }
  }
  return [...verbs]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, all]) => {
      const slash = key.indexOf('/');
      return { apiGroups: [key.slice(0, slash)], resources: [key.slice(slash + 1)], verbs: [...all].sort() };
    });
};

/** In every watched namespace. */
export const OPERATOR_RULES: readonly RbacRule[] = mergeRules([...PROJECT_RBAC, ...SESSION_RBAC]);

/** In the namespace of the operator. */
export const LEASE_RULES: readonly RbacRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'list', 'patch', 'watch'] },
];
