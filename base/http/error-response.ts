// The one mapping from an error to an HTTP answer, and our shape of it.
// Must not know routes; must never show the text of a foreign error. Source: 20-control-plane §2, docs/decisions/0005.
import { BeeuniError, InvalidError, LimitError, NotFoundError, UnavailableError } from '#base/errors.ts';
import { PROBLEMS, type ProblemCode } from '#schema/problem.ts';

/** An answer that is ready to be sent. `isBug`: the error is ours to mend, so its chain belongs in the error log. */
export type ErrorAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string>>;
  code: ProblemCode;
  message: string;
  details: Readonly<Record<string, unknown>> | undefined;
  isBug: boolean;
}>;

const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** Errors of fastify and of Node's HTTP parser by their code; undefined for anything that is not the caller's doing. */
const translateForeign = (error: unknown): BeeuniError | undefined => {
  const options = { cause: error };
  switch (codeOf(error)) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new InvalidError('body_too_large', 'the body is above the limit of this route', options);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
    case 'FST_ERR_CTP_EMPTY_TYPE':
      return new InvalidError('unsupported_media_type', 'the content type must be application/json', options);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new InvalidError('invalid_request', 'the body is not as long as content-length says', options);
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
    case 'FST_ERR_ASYNC_CONSTRAINT':
      return new InvalidError('invalid_request', 'the path is not valid', options);
    case 'FST_ERR_NOT_FOUND':
      return new NotFoundError('not_found', 'there is no such route', options);
    case 'ECONNRESET':
    case 'ERR_STREAM_PREMATURE_CLOSE':
      return new InvalidError('invalid_request', 'the request ended too early', options);
    default:
      return undefined;
  }
};

const headersFor = (error: BeeuniError): Record<string, string> => {
  const headers: Record<string, string> = {};
  if (error.status === 401) headers['www-authenticate'] = 'Bearer';
  if ((error instanceof LimitError || error instanceof UnavailableError) && error.retryAfterMs !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  }
  return headers;
};

/** The answer for any error: ours as they say, those of the HTTP layer by their code, everything else 500 `internal`. */
export const errorAnswer = (error: unknown): ErrorAnswer => {
  const ours = error instanceof BeeuniError ? error : translateForeign(error);
  if (ours === undefined) {
    return {
      status: PROBLEMS.internal.status,
      headers: {},
      code: 'internal',
      message: 'something went wrong in Beeuni; the request id finds it in the log',
      details: undefined,
      isBug: true,
    };
  }
  return {
    status: ours.status,
    headers: headersFor(ours),
    code: ours.code,
    message: ours.message,
    details: ours.details,
    isBug: ours.group === 'bug',
  };
};

/** Makes the body of an error answer. */
export type ErrorShape = (answer: ErrorAnswer, requestId: string) => Readonly<Record<string, unknown>>;

/** `{"error": {code, message, details?, requestId}}`. Source: 20-control-plane §2. */
export const beeuniErrorShape: ErrorShape = (answer, requestId) => ({
  error: {
    code: answer.code,
    message: answer.message,
    ...(answer.details === undefined ? {} : { details: answer.details }),
    requestId,
  },
});
