// Networks and what is taken out of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BLOCKED_CIDRS, contains, parseCidr, reachOf } from './cidr.ts';

const rules = { allowedPrivateCidrs: ['10.20.0.0/16'], extraBlockedCidrs: ['203.0.113.128/25', '10.20.30.0/24'] };

test('a text with host bits, a wrong length or a wrong address is no network', () => {
  for (const text of [
    '10.0.0.1/8',
    '10.0.0.0/33',
    '256.0.0.0/8',
    '10.0.0.0',
    '1::2::3/64',
    '::/129',
    'fe80::1/10',
    '01.0.0.0/8',
    'fe80::%eth0/64',
    '[::1]/128',
    '::ffff:10.0.0.0/104',
  ])
    assert.equal(parseCidr(text), undefined, text);
  for (const text of [...BLOCKED_CIDRS, '2001:db8::/32', '0.0.0.0/0', '::/0']) assert.ok(parseCidr(text), text);
});

test('networks of different versions never contain one another', () => {
  const all4 = parseCidr('0.0.0.0/0');
  const all6 = parseCidr('::/0');
  assert.ok(all4 && all6 && !contains(all4, all6) && !contains(all6, all4));
});

test('the whole Internet loses every blocked range of its version', () => {
  const four = reachOf('0.0.0.0/0', rules);
  assert.ok(four.allowed && four.except.includes('169.254.0.0/16') && four.except.includes('203.0.113.128/25'));
  assert.ok(four.allowed && !four.except.some((range) => range.includes(':')));
  const six = reachOf('::/0', rules);
  assert.ok(six.allowed && six.except.includes('fc00::/7') && six.except.every((range) => range.includes(':')));
});

test('a private network counts only where the installation covers it', () => {
  assert.deepEqual(reachOf('10.0.0.0/8', rules), { allowed: false, blockedBy: '10.0.0.0/8' });
  assert.deepEqual(reachOf('10.20.0.0/16', rules), { allowed: true, except: ['10.20.30.0/24'] });
  assert.deepEqual(reachOf('10.20.30.0/25', rules), { allowed: false, blockedBy: '10.20.30.0/24' });
  assert.deepEqual(reachOf('203.0.113.0/25', rules), { allowed: true, except: [] });
});
