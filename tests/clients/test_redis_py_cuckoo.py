"""redis-py's client.cf() against a server with the commands CF.*: ours, or redis-server with our
module.

EVERBLOOM_PORT names the port on 127.0.0.1; `cargo test` starts the server and sets it. Every test
works in a database that is emptied before it.
"""

import unittest

import redis

from test_redis_py import ServerTest, connect


def info_fields(info):
    """CF.INFO as redis-py hands it over: an object or a dict, by its version and protocol."""
    if isinstance(info, dict):
        fields = {k.decode() if isinstance(k, bytes) else k: v for k, v in info.items()}
        names = (
            "Size",
            "Number of buckets",
            "Number of filters",
            "Number of items inserted",
            "Number of items deleted",
            "Bucket size",
            "Expansion rate",
            "Max iterations",
        )
        return tuple(fields[name] for name in names)
    return (
        info.size,
        info.bucketNum,
        info.filterNum,
        info.insertedNum,
        info.deletedNum,
        info.bucketSize,
        info.expansionRate,
        info.maxIteration,
    )


class CuckooCommands(ServerTest):
    def test_create_with_each_option(self):
        cf = self.r.cf()
        self.assertTrue(cf.create("plain", 1000))
        self.assertTrue(cf.create("wide", 1000, expansion=3))
        self.assertTrue(cf.create("bucket", 1000, bucket_size=4))
        self.assertTrue(cf.reserve("all", 1000, bucket_size=8, expansion=0, max_iterations=7))
        self.assertEqual(info_fields(cf.info("plain")), (1080, 512, 1, 0, 0, 2, 1, 20))
        self.assertEqual(info_fields(cf.info("wide"))[6], 4)
        self.assertEqual(info_fields(cf.info("bucket"))[1:6], (256, 1, 0, 0, 4))
        self.assertEqual(info_fields(cf.info("all")), (1080, 128, 1, 0, 0, 8, 0, 7))
        self.assert_refused("item exists", cf.create, "plain", 1000)

    def test_add_and_addnx(self):
        cf = self.r.cf()
        self.assertEqual(cf.add("k", "a"), 1)
        self.assertEqual(cf.add("k", "a"), 1)
        self.assertEqual(cf.count("k", "a"), 2)
        self.assertEqual(cf.addnx("k", "a"), 0)
        self.assertEqual(cf.addnx("k", "b"), 1)
        self.assertEqual((cf.count("k", "b"), cf.count("k", "c")), (1, 0))
        self.assertEqual(cf.count("absent", "a"), 0)

    def test_insert_and_insertnx(self):
        cf = self.r.cf()
        self.assertEqual(cf.insert("k", ["a"], capacity=1000), [1])
        self.assertEqual(cf.insert("k", ["a", "b"]), [1, 1])
        self.assertEqual(cf.insertnx("k", ["a", "b", "c"], capacity=50), [0, 0, 1])
        self.assertEqual(info_fields(cf.info("k"))[:4], (1080, 512, 1, 4))
        self.assertEqual([cf.count("k", item) for item in "abc"], [2, 1, 1])
        self.assertEqual(cf.insert("k", ["d"], nocreate=True), [1])
        self.assert_refused("not found", cf.insert, "absent", ["a"], nocreate=True)
        self.assert_refused("not found", cf.insertnx, "absent", ["a"], nocreate=True)

    def test_exists_and_delete(self):
        cf = self.r.cf()
        cf.insert("k", ["a", "a", "b"])
        self.assertEqual([cf.exists("k", item) for item in "abc"], [1, 1, 0])
        self.assertEqual(cf.mexists("k", "a", "c", "b"), [1, 0, 1])
        self.assertEqual([cf.delete("k", "a") for _ in range(3)], [1, 1, 0])
        self.assertEqual(cf.mexists("k", "a", "b"), [0, 1])
        self.assertEqual(info_fields(cf.info("k"))[3:5], (1, 2))
        self.assertEqual(cf.exists("absent", "a"), 0)
        self.assertEqual(cf.mexists("absent", "a", "b"), [0, 0])
        self.assert_refused("Not found", cf.delete, "absent", "a")

    def test_the_answer_types_are_the_protocols(self):
        expected = bool if self.options.get("protocol") == 3 else int
        cf = self.r.cf()
        answers = [cf.add("k", "a"), cf.addnx("k", "a"), cf.exists("k", "a"), cf.delete("k", "a")]
        answers += cf.insert("k", ["a"]) + cf.mexists("k", "a")
        self.assertEqual({type(answer) for answer in answers}, {expected})
        # In both protocols.
        answers = [cf.count("k", "a"), *cf.insertnx("k", ["a", "b"])]
        self.assertEqual({type(answer) for answer in answers}, {int})

    def test_a_filter_grows_and_forgets_nothing(self):
        cf = self.r.cf()
        cf.create("k", 64, expansion=2)
        items = [f"item:{n}" for n in range(2000)]
        for start in range(0, len(items), 100):
            self.assertEqual(cf.insert("k", items[start : start + 100]), [1] * 100)
        self.assertEqual(sum(cf.mexists("k", *items)), len(items))
        self.assertGreater(info_fields(cf.info("k"))[2], 4)
        for item in items[:1900]:
            self.assertEqual(cf.delete("k", item), 1)
        self.assertEqual(sum(cf.mexists("k", *items[1900:])), 100)
        self.assertEqual(info_fields(cf.info("k"))[3], 100)

    def test_a_full_fixed_filter_says_so(self):
        cf = self.r.cf()
        cf.create("k", 4, bucket_size=1, expansion=0)
        answers = cf.insert("k", ["a"] * 6)
        refused = False if self.options.get("protocol") == 3 else -1
        self.assertEqual(answers[-1], refused)
        self.assertEqual(cf.insertnx("k", ["a"]), [0])
        self.assert_refused("Filter is full", cf.add, "k", "a")

    def test_a_filter_moves_in_chunks(self):
        cf = self.r.cf()
        cf.create("from", 100)
        cf.insert("from", list(range(500)))
        position = 0
        while True:
            position, data = cf.scandump("from", position)
            if position == 0:
                break
            cf.loadchunk("to", position, data)
        self.assertIsNone(data)
        self.assertEqual(info_fields(cf.info("to")), info_fields(cf.info("from")))
        self.assertEqual(self.r.dump("to"), self.r.dump("from"))
        self.r.restore("restored", 0, self.r.dump("from"))
        self.assertEqual(self.r.dump("restored"), self.r.dump("from"))
        self.assert_refused("Invalid header", cf.loadchunk, "new", 1, b"nonsense")

    def test_items_are_bytes(self):
        cf = self.r.cf()
        items = [b"", b"\x00", b"\r\n", b"\xff\xfe", "sëven".encode(), b"x" * 100_000]
        self.assertEqual(cf.insert("k", items), [1] * len(items))
        self.assertEqual(cf.mexists("k", *items), [1] * len(items))

    def test_errors(self):
        cf = self.r.cf()
        self.assert_refused("Bad capacity", cf.create, "k", "x")
        self.assert_refused(
            "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]", cf.create, "k", 3
        )
        self.assert_refused(
            "BUCKETSIZE: value must be in the range [1, 255]", cf.create, "k", 100, bucket_size=256
        )
        self.assertEqual(self.r.exists("k"), 0)
        self.assert_refused("not found", cf.info, "absent")
        wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value"
        self.r.bf().add("bloom", "a")
        self.assert_refused(wrong_type, cf.add, "bloom", "a")
        cf.add("k", "a")
        self.assert_refused(wrong_type, self.r.bf().add, "k", "a")
        self.assert_refused(wrong_type, self.r.get, "k")
        self.assertEqual(self.r.type("k"), b"MBbloomCF")

    def test_a_pipeline_without_a_transaction(self):
        pipe = self.r.pipeline(transaction=False)
        for n in range(300):
            pipe.cf().add("k", n)
        for n in range(300):
            pipe.execute_command("CF.EXISTS", "k", n)
        for n in range(300):
            pipe.execute_command("CF.DEL", "k", n)
        self.assertEqual([int(answer) for answer in pipe.execute()], [1] * 900)
        self.assertEqual(info_fields(self.r.cf().info("k"))[3], 0)

    def test_a_transaction_and_a_watch(self):
        with self.r.pipeline() as pipe:
            pipe.execute_command("CF.INSERT", "k", "ITEMS", "a", "b")
            pipe.execute_command("CF.COUNT", "k", "a")
            pipe.execute_command("CF.DEL", "k", "a")
            self.assertEqual(pipe.execute(), [[1, 1], 1, 1])
        with self.r.pipeline() as pipe:
            pipe.watch("k")
            other = connect(**self.options)
            self.addCleanup(other.close)
            other.cf().delete("k", "b")
            pipe.multi()
            pipe.execute_command("CF.ADD", "k", "c")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(self.r.cf().exists("k", "c"), 0)

    def test_stats(self):
        cf = self.r.cf()
        cf.insert("k", list(range(100)), capacity=1000)
        stats = self.r.execute_command("CF.STATS", "k")
        if not isinstance(stats, dict):
            stats = dict(zip(stats[::2], stats[1::2]))
        self.assertEqual((stats[b"slots"], stats[b"items"]), (1024, 100))
        self.assertAlmostEqual(float(stats[b"load"]), 100 / 1024)
        self.assertTrue(500 < stats[b"items-until-next-table"] < 700)


class CuckooCommandsResp3(CuckooCommands):
    options = {"protocol": 3}


if __name__ == "__main__":
    unittest.main()
