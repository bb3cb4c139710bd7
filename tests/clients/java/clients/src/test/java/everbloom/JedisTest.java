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
import redis.clients.jedis.bloom.BFInsertParams;
import redis.clients.jedis.bloom.BFReserveParams;
import redis.clients.jedis.exceptions.JedisDataException;

/** The typed BF.* commands of Jedis. */
class JedisTest {
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
        assertEquals("OK", jedis.bfReserve("k", 0.001, 1000));
        Map<String, Object> info = jedis.bfInfo("k");
        assertEquals(1000L, info.get("Capacity"));
        assertEquals(1L, info.get("Number of filters"));
        assertEquals(0L, info.get("Number of items inserted"));
        assertEquals(2L, info.get("Expansion rate"));

        jedis.bfReserve("wide", 0.01, 100, BFReserveParams.reserveParams().expansion(4));
        assertEquals(4L, jedis.bfInfo("wide").get("Expansion rate"));
        jedis.bfReserve("fixed", 0.01, 2, BFReserveParams.reserveParams().nonScaling());
        assertEquals(null, jedis.bfInfo("fixed").get("Expansion rate"));

        JedisDataException refused =
                assertThrows(JedisDataException.class, () -> jedis.bfReserve("k", 0.001, 1000));
        assertEquals("ERR item exists", refused.getMessage());
    }

    @Test
    void addAndExists() {
        assertTrue(jedis.bfAdd("k", "a"));
        assertFalse(jedis.bfAdd("k", "a"));
        assertTrue(jedis.bfExists("k", "a"));
        assertFalse(jedis.bfExists("k", "b"));
        assertFalse(jedis.bfExists("absent", "a"));
        assertEquals(List.of(false, true, true), jedis.bfMAdd("k", "a", "b", "c"));
        assertEquals(List.of(true, true, false), jedis.bfMExists("k", "b", "c", "d"));
        assertEquals(3, jedis.bfCard("k"));
        assertEquals(0, jedis.bfCard("absent"));
    }

    @Test
    void insert() {
        assertEquals(List.of(true, true), jedis.bfInsert("k", "a", "b"));
        BFInsertParams params =
                BFInsertParams.insertParams().capacity(500).error(0.001).expansion(3);
        assertEquals(List.of(true), jedis.bfInsert("made", params, "a"));
        assertEquals(500L, jedis.bfInfo("made").get("Capacity"));
        assertEquals(3L, jedis.bfInfo("made").get("Expansion rate"));
        assertThrows(
                JedisDataException.class,
                () -> jedis.bfInsert("absent", BFInsertParams.insertParams().noCreate(), "a"));
        assertFalse(jedis.exists("absent"));
    }

    @Test
    void aFullFilterRefuses() {
        jedis.bfReserve("full", 0.01, 2, BFReserveParams.reserveParams().nonScaling());
        jedis.bfMAdd("full", "a", "b");
        JedisDataException refused =
                assertThrows(JedisDataException.class, () -> jedis.bfAdd("full", "c"));
        assertEquals("ERR non scaling filter is full", refused.getMessage());
    }

    @Test
    void scanDumpAndLoadChunk() {
        for (int i = 0; i < 1000; i++) {
            jedis.bfAdd("old", "item " + i);
        }
        long iterator = 0;
        while (true) {
            Map.Entry<Long, byte[]> chunk = jedis.bfScanDump("old", iterator);
            iterator = chunk.getKey();
            if (iterator == 0) {
                break;
            }
            assertEquals("OK", jedis.bfLoadChunk("new", iterator, chunk.getValue()));
        }
        assertEquals(jedis.bfInfo("old"), jedis.bfInfo("new"));
        for (int i = 0; i < 2000; i++) {
            String item = "item " + i;
            assertEquals(jedis.bfExists("old", item), jedis.bfExists("new", item), item);
        }
    }

    @Test
    void pipelined() {
        List<Response<Boolean>> added = new ArrayList<>();
        List<Response<Boolean>> found = new ArrayList<>();
        Response<Long> card;
        try (AbstractPipeline pipeline = jedis.pipelined()) {
            pipeline.bfReserve("k", 0.0001, 10_000);
            for (int i = 0; i < 10_000; i++) {
                added.add(pipeline.bfAdd("k", "item " + i));
                found.add(pipeline.bfExists("k", "item " + i));
            }
            card = pipeline.bfCard("k");
            pipeline.sync();
        }
        long fresh = added.stream().filter(Response::get).count();
        assertTrue(fresh >= 9_980, fresh + " were new");
        assertEquals(fresh, card.get());
        assertTrue(found.stream().allMatch(Response::get));
    }
}
