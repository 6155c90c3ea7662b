// What a request to the API server asks for: verb, resource, name. Pure reading of method, path and content type.

/** One request in the words of Kubernetes. */
export type KubeCall = Readonly<{
  verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'apply' | 'patch' | 'delete' | 'deletecollection' | 'other';
  group: string;
  /** Plural; empty for a path outside the API groups. */
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
  mutates: boolean;
}>;

const REVIEWS = /reviews$/;

const verbOf = (method: string, named: boolean, watch: boolean, contentType: string): KubeCall['verb'] => {
  switch (method) {
    case 'GET':
      return watch ? 'watch' : named ? 'get' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return contentType.startsWith('application/apply-patch') ? 'apply' : 'patch';
    case 'DELETE':
      return named ? 'delete' : 'deletecollection';
    default:
      return 'other';
  }
};

/** The call that a request is. `url` is path and query. */
export const readKubeCall = (method: string, url: string, contentType = ''): KubeCall => {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const parts = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const group = parts[0] === 'apis' ? (parts[1] ?? '') : '';
  let rest = parts[0] === 'apis' ? parts.slice(3) : parts[0] === 'api' ? parts.slice(2) : [];
  let namespace = '';
  if (rest[0] === 'namespaces' && rest.length > 2 && rest[2] !== 'status' && rest[2] !== 'finalize') {
    namespace = rest[1] ?? '';
    rest = rest.slice(2);
  }
  const [resource = '', name = '', subresource = ''] = rest;
  const isWatch = ['1', 'true'].includes(searchParams.get('watch') ?? '');
  return {
    verb: resource === '' ? 'other' : verbOf(method, name !== '', isWatch, contentType),
    group,
    resource,
    subresource,
    namespace,
    name,
    mutates: method !== 'GET' && method !== 'HEAD' && !REVIEWS.test(resource),
  };
};
