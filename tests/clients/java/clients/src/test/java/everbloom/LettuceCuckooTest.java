package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.probabilistic.CfInfoValue;
import io.lettuce.core.probabilistic.ScanDumpValue;
import io.lettuce.core.probabilistic.arguments.CfInsertArgs;
import io.lettuce.core.probabilistic.arguments.CfReserveArgs;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The CF.* commands of lettuce, which speaks RESP3. */
class LettuceCuckooTest {
    private RedisClient client;
    private StatefulRedisConnection<String, String> connection;
    private RedisCommands<String, String> redis;

    @BeforeEach
    void connect() {
        client = RedisClient.create(RedisURI.create(Server.HOST, Server.PORT));
        connection = client.connect();
        redis = connection.sync();
        redis.flushdb();
    }

    @AfterEach
    void close() {
        connection.close();
        client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
    }

    @Test
    void reserveThenInfo() {
        assertEquals("OK", redis.cfReserve("k", 1000));
        CfInfoValue info = redis.cfInfo("k");
        assertEquals(1080, info.getSize());
        assertEquals(512, info.getNumberOfBuckets());
        assertEquals(20, info.getMaxIterations());
        redis.cfReserve("all", 1000, new CfReserveArgs().bucketSize(8).expansion(3));
        assertEquals(8, redis.cfInfo("all").getBucketSize());
        assertEquals(4, redis.cfInfo("all").getExpansionRate());
        RedisCommandExecutionException refused =
                assertThrows(
                        RedisCommandExecutionException.class, () -> redis.cfReserve("k", 1000));
        assertEquals("ERR item exists", refused.getMessage());
    }

    @Test
    void addCountAndDelete() {
        assertTrue(redis.cfAdd("k", "a"));
        assertFalse(redis.cfAddNx("k", "a"));
        assertEquals(List.of(true, true), redis.cfInsert("k", "a", "b"));
        assertEquals(
                List.of(false, true),
                redis.cfInsertNx("k", new CfInsertArgs().capacity(1000), "b", "c"));
        assertEquals(2, redis.cfCount("k", "a"));
        assertEquals(List.of(true, false), redis.cfMExists("k", "a", "d"));
        assertTrue(redis.cfDel("k", "a"));
        assertTrue(redis.cfDel("k", "a"));
        assertFalse(redis.cfDel("k", "a"));
        assertFalse(redis.cfExists("k", "a"));
        assertEquals(2, redis.cfInfo("k").getNumberOfItemsDeleted());
    }

    @Test
    void scanDumpAndLoadChunk() {
        redis.cfInsert("old", "a", "b");
        try (var bytes = client.connect(ByteArrayCodec.INSTANCE)) {
            byte[] from = "old".getBytes();
            byte[] to = "new".getBytes();
            ScanDumpValue chunk = bytes.sync().cfScanDump(from, 0);
            while (chunk.getIterator() != 0) {
                bytes.sync().cfLoadChunk(to, chunk.getIterator(), chunk.getData());
                chunk = bytes.sync().cfScanDump(from, chunk.getIterator());
            }
        }
        assertEquals(List.of(true, true, false), redis.cfMExists("new", "a", "b", "c"));
    }
}
