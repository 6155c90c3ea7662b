// The OpenAPI document of the public API. Pure; written to docs/reference and served at /openapi.json.
import { type OpenApiDocument, openApiDocument } from '#base/http/openapi.ts';
import { errorBody } from '#schema/rest/errors.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';

/** The document; `version` is the product's. */
export const apiDocument = (version: string): OpenApiDocument =>
  openApiDocument(PUBLIC_ROUTES, {
    title: 'Beeuni',
    version,
    description:
      'Coding agents as Kubernetes resources. Callers send a Kubernetes bearer token; Kubernetes RBAC decides. ' +
      'Every write accepts the header Idempotency-Key. Lists are paged with limit and cursor.',
    error: errorBody,
  });
