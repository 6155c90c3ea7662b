// A small custom resource for tests of the Kubernetes room: defaults, a rule, a status. Knows nothing of the product.
import type { ResourceType } from '#kube/resource-types.ts';

/** The kind of the test resource. */
export const WIDGETS: ResourceType = {
  group: 'test.beeuni.dev',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

/** Its definition, for `applyYaml`. */
export const WIDGET_CRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.beeuni.dev}
spec:
  group: test.beeuni.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                operatingMode: {type: string, enum: [Running, Suspended], default: Running}
                color: {type: string, maxLength: 32}
                size: {type: integer, format: int32, minimum: 0, maximum: 10}
                egress:
                  type: object
                  default: {mode: Restricted}
                  properties:
                    mode: {type: string, enum: [Restricted, Public], default: Restricted}
                    allow: {type: array, maxItems: 4, items: {type: string, maxLength: 64}}
                  x-kubernetes-validations:
                    - {rule: "self.mode != 'Restricted' || !has(self.allow)", message: mode Restricted takes no allow list}
            status:
              type: object
              properties:
                observedGeneration: {type: integer, format: int64}
                pod: {type: string, maxLength: 64}
                conditions:
                  type: array
                  maxItems: 8
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [type]
                  items:
                    type: object
                    required: [type, status]
                    properties:
                      type: {type: string, maxLength: 64}
                      status: {type: string, maxLength: 16}
                      reason: {type: string, maxLength: 64}
                      message: {type: string, maxLength: 1024}
                      observedGeneration: {type: integer, format: int64}
                      lastTransitionTime: {type: string, format: date-time}
`;
