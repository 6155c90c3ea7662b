// The bodies of errors in the shapes that OpenAI's and Anthropic's clients read, whole and inside a stream. Pure.
// It must not know why there is an error. Source: 20-control-plane §2, §5, A47.
import type { ErrorShape } from '#base/http/error-response.ts';
import type { ProblemCode } from '#schema/problem.ts';
import type { Wire } from './wires.ts';
import { finalMessage, type GatewayError, isFinalCode, isFinalText, typeOf } from './wording.ts';

/** What of an error is in its body. */
export type SaidError = Pick<GatewayError, 'status' | 'code' | 'message' | 'type' | 'isOverflow'>;

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
};

const openaiError = (error: SaidError) => ({
  message: error.isOverflow === true ? `context_length_exceeded: ${error.message}` : error.message,
  type: error.type,
  param: error.isOverflow === true ? 'messages' : null,
  // The code of OpenAI, by which harnesses compact.
  code: error.isOverflow === true ? 'context_length_exceeded' : error.code,
});

const anthropicError = (error: SaidError) => ({
  type: ANTHROPIC_TYPES[error.status] ?? (error.status >= 500 ? 'api_error' : 'invalid_request_error'),
  message: error.isOverflow === true ? `prompt is too long: ${error.message}` : error.message,
  code: error.code,
});

const bodyFor = (errors: Wire['errors'], error: SaidError): Readonly<Record<string, unknown>> =>
  errors === 'anthropic' ? { type: 'error', error: anthropicError(error) } : { error: openaiError(error) };

/** The body of an answer. */
export const errorBody = (errors: Wire['errors'], error: SaidError): string => JSON.stringify(bodyFor(errors, error));

/** One event that ends a stream which cannot go on. */
export const errorEvent = (wire: Pick<Wire, 'id' | 'errors'>, error: SaidError): string => {
  if (wire.id === 'responses') {
    const { code, message, param } = openaiError(error);
    // The member `error` makes the client throw; the rest is the event as the API describes it.
    const data = { type: 'error', code, message, param, sequence_number: 0, error: openaiError(error) };
    return `event: error\ndata: ${JSON.stringify(data)}\n\n`;
  }
  const data = errorBody(wire.errors, error);
  return wire.errors === 'anthropic' ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`;
};

/** Shape of errors that the server raises around the gateway; their status is already decided. */
export const gatewayErrorShape =
  (errors: Wire['errors']): ErrorShape =>
  (answer) => {
    const { status, code } = answer;
    const isFinal = status < 500 && status !== 429;
    const own = isFinalCode(code) ? finalMessage(code) : 'the gateway refuses this request';
    const message = !isFinal || isFinalText(answer.message) ? answer.message : own;
    return bodyFor(errors, { status, code: code satisfies ProblemCode, message, type: typeOf(status) });
  };
