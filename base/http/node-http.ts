// Node's own HTTP without Node's `fetch`: an import of `node:http` reads each of its exports once, and some of those load the
// whole of fetch, 37 ms and 10 MB that a sandbox does not need. Must not know who calls whom. Source: docs/decisions/0049.
const http = process.getBuiltinModule('node:http');

/** As of `node:http`; its types can be imported from there. */
export const { Agent, createServer, request, ServerResponse, STATUS_CODES } = http;
