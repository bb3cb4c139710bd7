package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.bloom.CFInsertParams;
import redis.clients.jedis.bloom.CFReserveParams;
import redis.clients.jedis.exceptions.JedisDataException;

/** The typed CF.* commands of Jedis. */
class JedisCuckooTest {
    private RedisClient jedis;

    @BeforeEach
    void connect() {
        jedis = RedisClient.create(Server.HOST, Server.PORT);
        jedis.flushDB();
    }

    @AfterEach
    void close() {
        jedis.close();
    }

    @Test
    void reserveThenInfo() {
        assertEquals("OK", jedis.cfReserve("k", 1000));
        Map<String, Object> info = jedis.cfInfo("k");
        assertEquals(1080L, info.get("Size"));
        assertEquals(512L, info.get("Number of buckets"));
        assertEquals(2L, info.get("Bucket size"));
        CFReserveParams params =
                CFReserveParams.reserveParams().bucketSize(8).maxIterations(7).expansion(3);
        jedis.cfReserve("all", 1000, params);
        info = jedis.cfInfo("all");
        assertEquals(128L, info.get("Number of buckets"));
        assertEquals(4L, info.get("Expansion rate"));
        assertEquals(7L, info.get("Max iterations"));
        JedisDataException refused =
                assertThrows(JedisDataException.class, () -> jedis.cfReserve("k", 1000));
        assertEquals("ERR item exists", refused.getMessage());
    }

    @Test
    void addCountAndDelete() {
        assertTrue(jedis.cfAdd("k", "a"));
        assertTrue(jedis.cfAdd("k", "a"));
        assertFalse(jedis.cfAddNx("k", "a"));
        assertTrue(jedis.cfAddNx("k", "b"));
        assertEquals(2, jedis.cfCount("k", "a"));
        assertFalse(jedis.cfExists("k", "c"));
        assertEquals(List.of(true, false, true), jedis.cfMExists("k", "a", "c", "b"));
        assertTrue(jedis.cfDel("k", "a"));
        assertTrue(jedis.cfDel("k", "a"));
        assertFalse(jedis.cfDel("k", "a"));
        assertFalse(jedis.cfExists("k", "a"));
        JedisDataException refused =
                assertThrows(JedisDataException.class, () -> jedis.cfDel("absent", "a"));
        assertEquals("Not found", refused.getMessage());
    }

    @Test
    void insert() {
        CFInsertParams params = CFInsertParams.insertParams().capacity(1000);
        assertEquals(List.of(true, true), jedis.cfInsert("k", params, "a", "a"));
        assertEquals(512L, jedis.cfInfo("k").get("Number of buckets"));
        assertEquals(List.of(false, true), jedis.cfInsertNx("k", "a", "b"));
        assertThrows(
                JedisDataException.class,
                () -> jedis.cfInsert("absent", CFInsertParams.insertParams().noCreate(), "a"));
        assertFalse(jedis.exists("absent"));
    }

    @Test
    void scanDumpAndLoadChunk() {
        jedis.cfReserve("old", 100);
        for (int i = 0; i < 500; i++) {
            jedis.cfAdd("old", "item " + i);
        }
        long position = 0;
        while (true) {
            Map.Entry<Long, byte[]> chunk = jedis.cfScanDump("old", position);
            position = chunk.getKey();
            if (position == 0) {
                break;
            }
            assertEquals("OK", jedis.cfLoadChunk("new", position, chunk.getValue()));
        }
        assertEquals(jedis.cfInfo("old"), jedis.cfInfo("new"));
        for (int i = 0; i < 1000; i++) {
            String item = "item " + i;
            assertEquals(jedis.cfCount("old", item), jedis.cfCount("new", item), item);
        }
    }

    @Test
    void pipelined() {
        List<Response<Boolean>> answers = new ArrayList<>();
        try (AbstractPipeline pipeline = jedis.pipelined()) {
            for (int i = 0; i < 10_000; i++) {
                answers.add(pipeline.cfAdd("k", "item " + i));
            }
            for (int i = 0; i < 10_000; i++) {
                answers.add(pipeline.cfExists("k", "item " + i));
                answers.add(pipeline.cfDel("k", "item " + i));
            }
            pipeline.sync();
        }
        assertTrue(answers.stream().allMatch(Response::get));
        assertEquals(0L, jedis.cfInfo("k").get("Number of items inserted"));
    }
}
