// Which base URLs and addresses are let through.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkBaseUrl, isPublicAddress, mayCarryKey, mayConnect, parseAddress } from './provider-address.ts';

const refused = (text: string, allow: readonly string[] = []): boolean => !checkBaseUrl(text, allow).ok;

test('FF10 every spelling of an address that is not public is refused when it is saved', () => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '0',
    '10.1.2.3',
    '169.254.169.254',
    '100.100.100.200',
    '172.31.0.1',
    '192.168.1.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    'localhost',
    'LOCALHOST.',
    'api.localhost',
  ]) {
    assert.equal(refused(`https://${host}/v1`), true, host);
  }
});

test('a base URL with another scheme, credentials, query or fragment is refused', () => {
  for (const text of [
    'ftp://a.example/v1',
    'file:///etc/passwd',
    'https://u:p@a.example',
    'https://a.example/?x',
    'https://a.example/#x',
    'https://a.example:0/v1',
    'nonsense',
    '',
  ]) {
    assert.equal(refused(text), true, text);
  }
});

test('a public URL is kept without its trailing slash', () => {
  assert.deepEqual(checkBaseUrl('https://API.example.com/v1/', []), {
    ok: true,
    url: 'https://api.example.com/v1',
    host: 'api.example.com',
    address: undefined,
    isEncrypted: true,
  });
  assert.equal(refused('https://8.8.8.8/v1'), false);
  assert.equal(refused('https://[2606:4700::1111]/v1'), false);
});

test('the allow list lets a named host, a domain or a range through and nothing beside it', () => {
  assert.equal(refused('http://127.0.0.1:4010/v1', ['127.0.0.0/8']), false);
  assert.equal(refused('http://10.0.0.1/v1', ['127.0.0.0/8']), true);
  assert.equal(refused('http://localhost:1/v1', ['localhost']), false);
  assert.equal(mayConnect('model.demo.svc', '10.96.0.7', ['model.demo.svc']), true);
  assert.equal(mayConnect('model.demo.svc', '10.96.0.7', ['*.demo.svc']), true);
  assert.equal(mayConnect('demo.svc.evil.example', '10.96.0.7', ['*.demo.svc']), false);
  assert.equal(mayConnect('rebind.example', '169.254.169.254', ['127.0.0.1']), false);
  assert.equal(mayConnect('rebind.example', '::ffff:10.0.0.1', ['10.0.0.0/8']), true);
  assert.equal(mayConnect('rebind.example', 'not an address', ['rebind.example']), false);
});

test('a key goes unencrypted only to what the installation itself names', () => {
  assert.equal(mayCarryKey('models.example', ['203.0.114.9'], []), false, 'public');
  assert.equal(mayCarryKey('models.example', [], ['10.0.0.0/8']), false, 'without an address');
  assert.equal(mayCarryKey('models.example', [], ['models.example']), true);
  assert.equal(mayCarryKey('model.demo.svc', ['10.0.0.7'], ['10.0.0.0/8']), true);
  assert.equal(mayCarryKey('model.demo.svc', ['10.0.0.7', '203.0.114.9'], ['10.0.0.0/8']), false, 'one is elsewhere');
  assert.equal(mayCarryKey('127.0.0.1', ['127.0.0.1'], ['127.0.0.1']), true);
});

test('addresses are read as their bytes, and nothing else is an address', () => {
  assert.deepEqual(parseAddress('1.2.3.4'), [1, 2, 3, 4]);
  assert.deepEqual(parseAddress('[::ffff:1.2.3.4]'), [1, 2, 3, 4]);
  assert.deepEqual(parseAddress('::1')?.at(-1), 1);
  for (const text of ['1.2.3', '1.2.3.256', '01.2.3.4', '1:2:3', ':::', '1::2::3', 'a.example', '']) {
    assert.equal(parseAddress(text), undefined, text);
  }
  assert.equal(isPublicAddress(parseAddress('203.0.113.9') ?? []), false);
});
