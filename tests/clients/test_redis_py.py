"""redis-py against a server with the commands BF.*: ours, or redis-server with our module.

EVERBLOOM_PORT names the port on 127.0.0.1; `cargo test` starts the server and sets it. Every test
works on keys of its own, in database 9, which is emptied before each.
"""

import os
import time
import unittest

import redis

HOST = os.environ.get("EVERBLOOM_HOST", "127.0.0.1")
PORT = int(os.environ["EVERBLOOM_PORT"])
DATABASE = 9


def connect(**options):
    return redis.Redis(host=HOST, port=PORT, db=DATABASE, **options)


def info_fields(info):
    """BF.INFO as redis-py hands it over: an object or a dict, by its version and protocol."""
    if isinstance(info, dict):
        fields = {k.decode() if isinstance(k, bytes) else k: v for k, v in info.items()}
        return (
            fields["Capacity"],
            fields["Size"],
            fields["Number of filters"],
            fields["Number of items inserted"],
            fields["Expansion rate"],
        )
    return info.capacity, info.size, info.filterNum, info.insertedNum, info.expansionRate


class ServerTest(unittest.TestCase):
    """A client `r` per test; the subclasses choose its protocol."""

    options = {"protocol": 2}

    def setUp(self):
        self.r = connect(**self.options)
        self.addCleanup(self.r.close)
        self.r.flushdb()

    def assert_refused(self, text, call, *args, **kwargs):
        with self.assertRaises(redis.ResponseError) as caught:
            call(*args, **kwargs)
        self.assertEqual(str(caught.exception), text)


class BloomCommands(ServerTest):
    def test_reserve_then_info(self):
        bf = self.r.bf()
        self.assertTrue(bf.create("k", 0.001, 1000))
        self.assertEqual(info_fields(bf.info("k")), (1000, 2080, 1, 0, 2))
        self.assertTrue(bf.reserve("fixed", 0.001, 1000, noScale=True))
        self.assertEqual(info_fields(bf.info("fixed")), (1000, 1896, 1, 0, None))
        self.assertTrue(bf.create("wide", 0.01, 100, expansion=4))
        self.assertEqual(info_fields(bf.info("wide")), (100, 240, 1, 0, 4))

    def test_add_and_exists(self):
        bf = self.r.bf()
        self.assertEqual(bf.add("k", "foo"), 1)
        self.assertEqual(bf.add("k", "foo"), 0)
        self.assertEqual(bf.exists("k", "foo"), 1)
        self.assertEqual(bf.exists("k", "bar"), 0)
        self.assertEqual(bf.exists("absent", "foo"), 0)

    def test_the_answer_types_are_the_protocols(self):
        expected = bool if self.options.get("protocol") == 3 else int
        bf = self.r.bf()
        self.assertIs(type(bf.add("k", "foo")), expected)
        self.assertIs(type(bf.exists("k", "foo")), expected)
        self.assertEqual([type(answer) for answer in bf.madd("k", "a")], [expected])

    def test_many_at_once(self):
        bf = self.r.bf()
        self.assertEqual(bf.madd("k", "a", "b", "a"), [1, 1, 0])
        self.assertEqual(bf.mexists("k", "a", "b", "c"), [1, 1, 0])
        self.assertEqual(bf.mexists("absent", "a", "b"), [0, 0])

    def test_insert(self):
        bf = self.r.bf()
        answers = bf.insert("k", ["a", "b"], capacity=1000, error=0.001, expansion=4)
        self.assertEqual(answers, [1, 1])
        self.assertEqual(info_fields(bf.info("k")), (1000, 2080, 1, 2, 4))
        self.assertEqual(bf.insert("k", ["b", "c"], noCreate=True), [0, 1])
        self.assert_refused("not found", bf.insert, "absent", ["a"], noCreate=True)
        self.assertEqual(bf.insert("fixed", ["a"], noScale=True), [1])
        self.assertEqual(info_fields(bf.info("fixed"))[4], None)

    def test_card(self):
        bf = self.r.bf()
        self.assertEqual(bf.card("k"), 0)
        bf.madd("k", "a", "b", "b")
        self.assertEqual(bf.card("k"), 2)

    def test_a_filter_grows_and_forgets_nothing(self):
        bf = self.r.bf()
        items = [f"item:{n}" for n in range(2000)]
        for start in range(0, len(items), 100):
            bf.madd("k", *items[start : start + 100])
        self.assertEqual(sum(bf.mexists("k", *items)), len(items))
        capacity, _, layers, inserted, _ = info_fields(bf.info("k"))
        self.assertEqual((capacity, layers), (3100, 5))
        self.assertEqual(inserted, bf.card("k"))

    def test_a_full_fixed_filter_says_so(self):
        bf = self.r.bf()
        bf.create("k", 0.01, 3, noScale=True)
        answers = bf.madd("k", "a", "b", "c", "a", "d", "e")
        self.assertEqual(answers[:4], [1, 1, 1, 0])
        self.assertEqual(len(answers), 5)
        self.assertIsInstance(answers[4], redis.ResponseError)
        self.assert_refused("non scaling filter is full", bf.add, "k", "d")

    def test_a_filter_moves_in_chunks(self):
        bf = self.r.bf()
        for n in range(0, 500, 50):
            bf.madd("from", *range(n, n + 50))
        iterator = 0
        while True:
            iterator, data = bf.scandump("from", iterator)
            if iterator == 0:
                break
            bf.loadchunk("to", iterator, data)
        self.assertEqual(info_fields(bf.info("to")), info_fields(bf.info("from")))
        self.assertEqual(bf.mexists("to", *range(1000)), bf.mexists("from", *range(1000)))
        self.assert_refused("received bad data", bf.loadchunk, "new", 1, b"nonsense")

    def test_items_are_bytes(self):
        bf = self.r.bf()
        items = [b"", b"\x00", b"\r\n", b"\xff\xfe", "sëven".encode(), b"x" * 100_000]
        self.assertEqual(bf.madd("k", *items), [1] * len(items))
        self.assertEqual(bf.mexists("k", *items), [1] * len(items))
        self.assertEqual(bf.add(b"\x00\xff key", b"a"), 1)

    def test_errors(self):
        bf = self.r.bf()
        self.assert_refused("bad error rate", bf.create, "k", "x", 100)
        self.assert_refused(
            "error rate must be in the range (0.000000, 1.000000)", bf.create, "k", 1.5, 100
        )
        self.assert_refused(
            "capacity must be in the range [1, 1073741824]", bf.create, "k", 0.01, 0
        )
        self.assertEqual(self.r.exists("k"), 0)
        bf.create("k", 0.01, 100)
        self.assert_refused("item exists", bf.create, "k", 0.01, 100)
        self.assert_refused("not found", bf.info, "absent")
        self.assert_refused(
            "wrong number of arguments for 'bf.add' command", self.r.execute_command, "BF.ADD", "k"
        )
        self.r.set("text", "x")
        wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value"
        self.assert_refused(wrong_type, bf.add, "text", "a")
        self.assertEqual(bf.exists("text", "a"), 0)
        self.assert_refused(wrong_type, self.r.get, "k")

    def test_a_pipeline_without_a_transaction(self):
        pipe = self.r.pipeline(transaction=False)
        for n in range(300):
            pipe.bf().add("k", n)
        self.assertEqual(sum(pipe.execute()), self.r.bf().card("k"))
        pipe = self.r.pipeline(transaction=False)
        for n in range(300):
            pipe.execute_command("BF.EXISTS", "k", n)
        self.assertEqual([int(answer) for answer in pipe.execute()], [1] * 300)

    def test_a_pipeline_reports_each_error(self):
        pipe = self.r.pipeline(transaction=False)
        pipe.execute_command("BF.ADD", "k", "a")
        pipe.execute_command("BF.RESERVE", "k", "0.01", "100")
        pipe.execute_command("BF.CARD", "k")
        answers = pipe.execute(raise_on_error=False)
        self.assertEqual([answers[0], answers[2]], [1, 1])
        self.assertIsInstance(answers[1], redis.ResponseError)

    def test_the_blocked_layout(self):
        bf = self.r.bf()
        reserve = self.r.execute_command
        options = ("LAYOUT", "BLOCKED", "SEED", 7)
        self.assertTrue(reserve("BF.RESERVE", "k", 0.01, 100, *options))
        self.assertEqual(self.r.type("k"), b"everbloom")
        self.assertEqual([int(new) for new in bf.madd("k", "a", "b", "a")], [1, 1, 0])
        self.assertEqual([int(found) for found in bf.mexists("k", "a", "c")], [1, 0])
        self.assertEqual(info_fields(bf.info("k"))[3], 2)

        stats = self.r.execute_command("BF.STATS", "k")
        if not isinstance(stats, dict):
            stats = dict(zip(stats[::2], stats[1::2]))
        self.assertEqual(stats[b"layout"], b"blocked")
        self.assertEqual(len(stats[b"key"]), 32)
        self.assertEqual(stats[b"items"], 2)
        self.assertEqual(float(stats[b"error-rate"]), 0.01)

        self.r.restore("copy", 0, self.r.dump("k"))
        iterator, chunk = bf.scandump("k", 0)
        while iterator:
            bf.loadchunk("loaded", iterator, chunk)
            iterator, chunk = bf.scandump("k", iterator)
        for key in ("copy", "loaded"):
            self.assertEqual(self.r.dump(key), self.r.dump("k"))
        self.assert_refused(
            "a seed needs LAYOUT BLOCKED", reserve, "BF.RESERVE", "c", 0.01, 100, "SEED", 7
        )

    def test_key_commands_know_filters(self):
        bf = self.r.bf()
        bf.add("k", "a")
        self.assertEqual(self.r.type("k"), b"MBbloom--")
        self.assertEqual(list(self.r.scan_iter(_type="MBbloom--")), [b"k"])
        self.assertGreater(self.r.memory_usage("k"), 0)
        self.r.rename("k", "l")
        self.assertEqual(bf.exists("l", "a"), 1)
        self.r.expire("l", 100)
        self.assertIn(self.r.ttl("l"), (99, 100))
        self.assertEqual(self.r.delete("l"), 1)
        self.assertEqual(bf.exists("l", "a"), 0)


class BloomCommandsResp3(BloomCommands):
    options = {"protocol": 3}


class BloomTransactions(ServerTest):
    def test_a_pipeline_is_a_transaction(self):
        with self.r.pipeline() as pipe:
            pipe.execute_command("BF.MADD", "k", "a", "b")
            pipe.execute_command("BF.CARD", "k")
            pipe.set("text", "x")
            pipe.get("text")
            answers = pipe.execute()
        self.assertEqual(answers[0], [1, 1])
        self.assertEqual(answers[1:], [2, True, b"x"])

    def test_a_watched_filter_that_changed_stops_the_transaction(self):
        self.r.bf().add("k", "a")
        with self.r.pipeline() as pipe:
            pipe.watch("k")
            other = connect(**self.options)
            self.addCleanup(other.close)
            other.bf().add("k", "b")
            pipe.multi()
            pipe.execute_command("BF.ADD", "k", "c")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(self.r.bf().exists("k", "c"), 0)

    def test_a_watched_filter_that_was_only_read_does_not(self):
        self.r.bf().add("k", "a")
        with self.r.pipeline() as pipe:
            pipe.watch("k")
            self.assertEqual(pipe.execute_command("BF.EXISTS", "k", "a"), 1)
            self.r.bf().exists("k", "b")
            pipe.multi()
            pipe.execute_command("BF.ADD", "k", "c")
            self.assertEqual(pipe.execute(), [1])

    def test_a_wrong_arity_aborts(self):
        with self.r.pipeline() as pipe:
            pipe.execute_command("BF.ADD", "k", "a")
            pipe.execute_command("BF.ADD", "k")
            with self.assertRaises(redis.ResponseError):
                pipe.execute()
        self.assertEqual(self.r.exists("k"), 0)

    def test_an_error_inside_does_not_undo_the_rest(self):
        self.r.set("text", "x")
        with self.r.pipeline() as pipe:
            pipe.execute_command("BF.ADD", "k", "a")
            pipe.execute_command("BF.ADD", "text", "a")
            answers = pipe.execute(raise_on_error=False)
        self.assertEqual(answers[0], 1)
        self.assertIsInstance(answers[1], redis.ResponseError)
        self.assertEqual(self.r.bf().exists("k", "a"), 1)


class BloomTransactionsResp3(BloomTransactions):
    options = {"protocol": 3}


class DecodedResponses(ServerTest):
    options = {"protocol": 2, "decode_responses": True}

    def test_texts_are_str(self):
        bf = self.r.bf()
        self.assertTrue(bf.create("k", 0.001, 1000))
        self.assertEqual(info_fields(bf.info("k")), (1000, 2080, 1, 0, 2))
        self.assertEqual(self.r.type("k"), "MBbloom--")
        self.r.set("text", "sëven")
        self.assertEqual(self.r.get("text"), "sëven")
        self.assertEqual(self.r.keys("te*"), ["text"])

    def test_chunks_stay_bytes(self):
        bf = self.r.bf()
        bf.madd("k", *range(50))
        iterator, header = bf.scandump("k", 0)
        self.assertEqual(iterator, 1)
        self.assertIsInstance(header, bytes)


class DecodedResponsesResp3(DecodedResponses):
    options = {"protocol": 3, "decode_responses": True}


class DefaultClient(ServerTest):
    """Whatever redis-py does when it is told nothing."""

    options = {}

    def test_it_works(self):
        bf = self.r.bf()
        self.assertEqual(bf.add("k", "a"), 1)
        self.assertEqual(info_fields(bf.info("k")), (100, 240, 1, 1, 2))
        self.assertTrue(self.r.ping())


class GenericCommands(ServerTest):
    """What programs do around their filters."""

    def test_strings(self):
        self.assertTrue(self.r.set("k", "v"))
        self.assertEqual(self.r.get("k"), b"v")
        self.assertIsNone(self.r.get("absent"))
        self.assertIsNone(self.r.set("k", "w", nx=True))
        self.assertTrue(self.r.set("k", "w", xx=True))
        self.assertEqual(self.r.getdel("k"), b"w")
        self.assertTrue(self.r.mset({"a": "1", "b": "2"}))
        self.assertEqual(self.r.mget("a", "b", "c"), [b"1", b"2", None])
        self.assertEqual(self.r.incr("a", 5), 6)
        self.assertEqual(self.r.append("b", "xy"), 3)
        self.assertEqual(self.r.strlen("b"), 3)
        self.assert_refused("value is not an integer or out of range", self.r.incr, "b")

    def test_expiry(self):
        self.r.set("k", "v", ex=100)
        self.assertIn(self.r.ttl("k"), (99, 100))
        self.assertTrue(self.r.persist("k"))
        self.assertEqual(self.r.ttl("k"), -1)
        self.assertEqual(self.r.ttl("absent"), -2)
        self.assertTrue(self.r.pexpire("k", 30))
        time.sleep(0.06)
        self.assertIsNone(self.r.get("k"))
        self.assertEqual(self.r.exists("k"), 0)
        # An expired key is gone for readers at once; the count follows when it is removed.
        deadline = time.monotonic() + 5
        while self.r.dbsize() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.r.dbsize(), 0)

    def test_scan_meets_every_key(self):
        keys = {f"key:{n}".encode() for n in range(500)}
        with self.r.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.set(key, "v")
            pipe.execute()
        self.assertEqual(set(self.r.scan_iter(count=17)), keys)
        matched = set(self.r.scan_iter(match="key:1?"))
        self.assertEqual(matched, {f"key:1{n}".encode() for n in range(10)})
        self.assertEqual(set(self.r.keys("key:1?")), matched)

    def test_databases_are_apart(self):
        self.r.set("k", "v")
        other = redis.Redis(host=HOST, port=PORT, db=DATABASE + 1, **self.options)
        self.addCleanup(other.close)
        other.flushdb()
        self.assertIsNone(other.get("k"))

    def test_transactions(self):
        with self.r.pipeline() as pipe:
            pipe.set("k", "1").incr("k").get("k")
            self.assertEqual(pipe.execute(), [True, 2, b"2"])
        with self.r.pipeline() as pipe:
            pipe.watch("k")
            self.r.set("k", "5")
            pipe.multi()
            pipe.incr("k")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(self.r.get("k"), b"5")

    def test_the_client_list(self):
        self.r.client_setname("tester")
        self.assertEqual(self.r.client_getname() in (b"tester", "tester"), True)
        mine = [c for c in self.r.client_list() if int(c["id"]) == self.r.client_id()]
        self.assertEqual(len(mine), 1)
        self.assertEqual(mine[0]["name"], "tester")
        self.assertEqual(int(mine[0]["db"]), DATABASE)

    def test_info(self):
        info = self.r.info()
        self.assertEqual(info["tcp_port"], PORT)
        self.assertGreaterEqual(info["connected_clients"], 1)
        self.assertIn("redis_version", info)
        self.r.set("k", "v")
        self.assertGreater(self.r.info("memory")["used_memory"], 0)
        keyspace = self.r.info("keyspace")
        self.assertEqual(keyspace[f"db{DATABASE}"]["keys"], 1)

    def test_configuration(self):
        maxclients = self.r.config_get("maxclients")["maxclients"]
        self.assertGreater(int(maxclients), 0)
        self.assertTrue(self.r.config_set("maxclients", maxclients))

    def test_unknown_commands(self):
        self.assert_refused(
            "unknown command 'NOPE', with args beginning with: 'a' 'b' ",
            self.r.execute_command, "NOPE", "a", "b",
        )
        self.assertTrue(self.r.ping())

    def test_echo_and_time(self):
        self.assertEqual(self.r.echo("hello"), b"hello")
        seconds, _ = self.r.time()
        self.assertAlmostEqual(seconds, time.time(), delta=60)


class GenericCommandsResp3(GenericCommands):
    options = {"protocol": 3}


if __name__ == "__main__":
    unittest.main()
