// Which addresses a token may be sent to. Pure. Must not know how they are reached.
import { usageError } from '../failure.ts';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * The address without a slash at its end. Throws CommandError (usage) for what is no http(s) URL, has a user, a query or a fragment,
 * or would carry the token in the clear to another machine, unless `allowHttp`. `way`: how a person allows it.
 */
export const serverUrl = (text: string, allowHttp: boolean, way: string): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw usageError(`${text} is no address of a server`, 'it begins with https:// or http://');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw usageError('the address of a server holds no user, query or fragment');
  }
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname) && !allowHttp) {
    throw usageError(
      `${url.origin} would get your token in the clear`,
      `use https://, or ${way} inside a network that you trust`,
    );
  }
  return url.href.replace(/\/+$/, '');
};
