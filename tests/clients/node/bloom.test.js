// node-redis against a server with the commands BF.*: ours, or redis-server with our module.
//
// EVERBLOOM_PORT names the port on 127.0.0.1; `cargo test` starts the server and sets it. Every
// test works in database 10, which is emptied before each.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';

import { createClient, RESP_TYPES, WatchError } from 'redis';

const host = process.env.EVERBLOOM_HOST ?? '127.0.0.1';
const port = Number(process.env.EVERBLOOM_PORT);
const database = 10;

function makeClient(RESP) {
  const client = createClient({ socket: { host, port }, database, RESP });
  client.on('error', (error) => {
    throw error;
  });
  return client;
}

// Counts come as numbers; node-redis leaves the shape of BF.INFO to the protocol.
function infoFields(info) {
  const field = (name) => (info instanceof Map ? info.get(name) : info[name]);
  return [
    field('Capacity'),
    field('Size'),
    field('Number of filters'),
    field('Number of items inserted'),
    field('Expansion rate'),
  ];
}

for (const RESP of [2, 3]) {
  describe(`RESP${RESP}`, () => {
    let client;

    before(async () => {
      client = await makeClient(RESP).connect();
    });
    beforeEach(() => client.flushDb());
    after(() => client.close());

    describe('filters', () => {
      it('reserves and describes', async () => {
        assert.equal(await client.bf.reserve('k', 0.001, 1000), 'OK');
        assert.deepEqual(infoFields(await client.bf.info('k')), [1000, 2080, 1, 0, 2]);
        assert.equal(await client.bf.reserve('fixed', 0.001, 1000, { NONSCALING: true }), 'OK');
        assert.deepEqual(infoFields(await client.bf.info('fixed')), [1000, 1896, 1, 0, null]);
        assert.equal(await client.bf.reserve('wide', 0.01, 100, { EXPANSION: 4 }), 'OK');
        assert.deepEqual(infoFields(await client.bf.info('wide')), [100, 240, 1, 0, 4]);
      });

      it('adds and finds', async () => {
        assert.equal(await client.bf.add('k', 'foo'), true);
        assert.equal(await client.bf.add('k', 'foo'), false);
        assert.equal(await client.bf.exists('k', 'foo'), true);
        assert.equal(await client.bf.exists('k', 'bar'), false);
        assert.equal(await client.bf.exists('absent', 'foo'), false);
      });

      it('takes many at once', async () => {
        assert.deepEqual(await client.bf.mAdd('k', ['a', 'b', 'a']), [true, true, false]);
        assert.deepEqual(await client.bf.mExists('k', ['a', 'b', 'c']), [true, true, false]);
        assert.equal(await client.bf.card('k'), 2);
        assert.equal(await client.bf.card('absent'), 0);
      });

      it('inserts', async () => {
        const options = { CAPACITY: 1000, ERROR: 0.001, EXPANSION: 4 };
        assert.deepEqual(await client.bf.insert('k', ['a', 'b'], options), [true, true]);
        assert.deepEqual(infoFields(await client.bf.info('k')), [1000, 2080, 1, 2, 4]);
        assert.deepEqual(await client.bf.insert('k', 'b', { NOCREATE: true }), [false]);
        await assert.rejects(client.bf.insert('absent', 'a', { NOCREATE: true }), {
          message: 'ERR not found',
        });
        assert.deepEqual(await client.bf.insert('fixed', 'a', { NONSCALING: true }), [true]);
      });

      it('moves in chunks', async () => {
        const items = Array.from({ length: 500 }, (_, n) => `item:${n}`);
        await client.bf.mAdd('from', items);
        const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
        let iterator = 0;
        for (;;) {
          const dump = await binary.bf.scanDump('from', iterator);
          iterator = dump.iterator;
          if (iterator === 0) break;
          assert.equal(String(await client.bf.loadChunk('to', iterator, dump.chunk)), 'OK');
        }
        const [from, to] = await Promise.all([client.bf.info('from'), client.bf.info('to')]);
        assert.deepEqual(infoFields(to), infoFields(from));
        assert.ok((await client.bf.mExists('to', items)).every((found) => found));
      });

      it('answers with errors', async () => {
        await client.bf.reserve('k', 0.01, 100);
        const cases = [
          [client.bf.reserve('k', 0.01, 100), 'ERR item exists'],
          [client.bf.reserve('l', 0.01, 0), 'ERR capacity must be in the range [1, 1073741824]'],
          [client.bf.info('absent'), 'ERR not found'],
          [
            client.sendCommand(['BF.ADD', 'k']),
            "ERR wrong number of arguments for 'bf.add' command",
          ],
          [client.get('k'), 'WRONGTYPE Operation against a key holding the wrong kind of value'],
        ];
        for (const [promise, message] of cases) {
          await assert.rejects(promise, { message });
        }
      });

      it('is pipelined by itself', async () => {
        const items = Array.from({ length: 1000 }, (_, n) => `item:${n}`);
        const added = await Promise.all(items.map((item) => client.bf.add('k', item)));
        assert.equal(added.filter((isNew) => isNew).length, await client.bf.card('k'));
        const found = await Promise.all(items.map((item) => client.bf.exists('k', item)));
        assert.ok(found.every((isThere) => isThere));
      });

      it('works in transactions', async () => {
        const answers = await client
          .multi()
          .bf.add('k', 'a')
          .bf.mExists('k', ['a', 'b'])
          .bf.card('k')
          .exec();
        assert.deepEqual(answers, [true, [true, false], 1]);
      });
    });

    describe('keys', () => {
      it('knows strings', async () => {
        assert.equal(await client.set('k', 'v', { EX: 100 }), 'OK');
        assert.equal(await client.get('k'), 'v');
        assert.ok((await client.ttl('k')) >= 99);
        assert.equal(await client.get('absent'), null);
        assert.equal(await client.incr('n'), 1);
        assert.equal(await client.del(['k', 'n', 'absent']), 2);
      });

      it('scans', async () => {
        await Promise.all(Array.from({ length: 200 }, (_, n) => client.set(`key:${n}`, 'v')));
        const seen = new Set();
        for await (const keys of client.scanIterator({ COUNT: 17 })) {
          for (const key of keys) seen.add(key);
        }
        assert.equal(seen.size, 200);
      });

      it('watches', async () => {
        await client.set('k', '1');
        const watcher = await makeClient(RESP).connect();
        await watcher.watch('k');
        await client.set('k', '2');
        await assert.rejects(watcher.multi().incr('k').exec(), WatchError);
        await watcher.close();
        assert.equal(await client.get('k'), '2');
      });

      it('introduces itself', async () => {
        await client.clientSetName('tester');
        assert.equal(await client.clientGetName(), 'tester');
        const mine = (await client.clientList()).filter((other) => other.name === 'tester');
        assert.equal(mine.length, 1);
        assert.equal(mine[0].db, database);
        assert.match(await client.info('server'), /^tcp_port:\d+\r?$/m);
        assert.equal(await client.ping(), 'PONG');
      });
    });
  });
}
