// node-redis's client.cf against a server with the commands CF.*: ours, or redis-server with our
// module.
//
// EVERBLOOM_PORT names the port on 127.0.0.1; `cargo test` starts the server and sets it. Every
// test works in database 12, which is emptied before each.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';

import { createClient, RESP_TYPES } from 'redis';

const host = process.env.EVERBLOOM_HOST ?? '127.0.0.1';
const port = Number(process.env.EVERBLOOM_PORT);
const database = 12;

// Counts come as numbers; node-redis leaves the shape of CF.INFO to the protocol.
function infoFields(info) {
  const field = (name) => (info instanceof Map ? info.get(name) : info[name]);
  return [
    field('Size'),
    field('Number of buckets'),
    field('Number of filters'),
    field('Number of items inserted'),
    field('Number of items deleted'),
    field('Bucket size'),
    field('Expansion rate'),
    field('Max iterations'),
  ];
}

for (const RESP of [2, 3]) {
  describe(`cuckoo filters, RESP${RESP}`, () => {
    let client;

    before(async () => {
      client = await createClient({ socket: { host, port }, database, RESP })
        .on('error', (error) => {
          throw error;
        })
        .connect();
    });
    beforeEach(() => client.flushDb());
    after(() => client.close());

    it('reserves and describes', async () => {
      assert.equal(await client.cf.reserve('k', 1000), 'OK');
      assert.deepEqual(infoFields(await client.cf.info('k')), [1080, 512, 1, 0, 0, 2, 1, 20]);
      const options = { BUCKETSIZE: 8, MAXITERATIONS: 7, EXPANSION: 3 };
      assert.equal(await client.cf.reserve('all', 1000, options), 'OK');
      assert.deepEqual(infoFields(await client.cf.info('all')), [1080, 128, 1, 0, 0, 8, 4, 7]);
      await assert.rejects(client.cf.reserve('k', 1000), { message: 'ERR item exists' });
    });

    it('adds, finds, counts and deletes', async () => {
      assert.equal(await client.cf.add('k', 'a'), true);
      assert.equal(await client.cf.add('k', 'a'), true);
      assert.equal(await client.cf.addNX('k', 'a'), false);
      assert.equal(await client.cf.addNX('k', 'b'), true);
      assert.equal(await client.cf.count('k', 'a'), 2);
      assert.equal(await client.cf.exists('k', 'c'), false);
      const deleted = [1, 2, 3].map(() => client.cf.del('k', 'a'));
      assert.deepEqual(await Promise.all(deleted), [true, true, false]);
      assert.equal(await client.cf.exists('k', 'a'), false);
      assert.equal(await client.cf.exists('k', 'b'), true);
      assert.deepEqual(infoFields(await client.cf.info('k')).slice(3, 5), [1, 2]);
    });

    it('takes many at once', async () => {
      assert.deepEqual(await client.cf.insert('k', ['a', 'a'], { CAPACITY: 1000 }), [true, true]);
      assert.deepEqual((await client.cf.insertNX('k', ['a', 'b'])).map(Number), [0, 1]);
      assert.deepEqual(await client.cf.mExists('k', ['a', 'c', 'b']), [true, false, true]);
      assert.equal(infoFields(await client.cf.info('k'))[1], 512);
      await assert.rejects(client.cf.insert('absent', 'a', { NOCREATE: true }), {
        message: 'ERR not found',
      });
    });

    it('moves in chunks', async () => {
      const items = Array.from({ length: 500 }, (_, n) => `item:${n}`);
      await client.cf.reserve('from', 100);
      await client.cf.insert('from', items);
      const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      let iterator = 0;
      for (;;) {
        const dump = await binary.cf.scanDump('from', iterator);
        iterator = dump.iterator;
        if (iterator === 0) break;
        assert.equal(String(await client.cf.loadChunk('to', iterator, dump.chunk)), 'OK');
      }
      const [from, to] = await Promise.all([client.cf.info('from'), client.cf.info('to')]);
      assert.deepEqual(infoFields(to), infoFields(from));
      assert.ok((await client.cf.mExists('to', items)).every((found) => found));
    });

    it('answers with errors', async () => {
      await client.cf.add('k', 'a');
      const wrongType = 'WRONGTYPE Operation against a key holding the wrong kind of value';
      const cases = [
        [client.cf.info('absent'), 'ERR not found'],
        [client.cf.del('absent', 'a'), 'Not found'],
        [client.bf.add('k', 'a'), wrongType],
        [client.cf.reserve('l', 1), 'Capacity must be in the range [2 * BUCKETSIZE, 1073741824]'],
      ];
      for (const [promise, message] of cases) {
        await assert.rejects(promise, { message });
      }
    });

    it('is pipelined by itself, and works in transactions', async () => {
      const items = Array.from({ length: 1000 }, (_, n) => `item:${n}`);
      for (const command of ['add', 'exists', 'del']) {
        const answers = await Promise.all(items.map((item) => client.cf[command]('k', item)));
        assert.ok(answers.every((answer) => answer));
      }
      const answers = await client
        .multi()
        .cf.add('k', 'a')
        .cf.count('k', 'a')
        .cf.del('k', 'a')
        .exec();
      assert.deepEqual(answers, [true, 1, true]);
    });
  });
}
