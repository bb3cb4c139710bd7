package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.probabilistic.BfInfoValue;
import io.lettuce.core.probabilistic.ScanDumpValue;
import io.lettuce.core.probabilistic.arguments.BfInsertArgs;
import io.lettuce.core.probabilistic.arguments.BfReserveArgs;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The BF.* commands of lettuce, which speaks RESP3. */
class LettuceTest {
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
        assertEquals("OK", redis.bfReserve("k", 0.001, 1000));
        BfInfoValue info = redis.bfInfo("k");
        assertEquals(1000, info.getCapacity());
        assertEquals(1, info.getNumberOfFilters());
        assertEquals(0, info.getNumberOfItemsInserted());
        assertEquals(2, info.getExpansionRate());

        redis.bfReserve("wide", 0.01, 100, new BfReserveArgs().expansion(4));
        assertEquals(4, redis.bfInfo("wide").getExpansionRate());
        redis.bfInsert("made", new BfInsertArgs().capacity(500).error(0.001), "a", "b");
        assertEquals(500, redis.bfInfo("made").getCapacity());

        RedisCommandExecutionException refused =
                assertThrows(
                        RedisCommandExecutionException.class,
                        () -> redis.bfReserve("k", 0.001, 1000));
        assertEquals("ERR item exists", refused.getMessage());
    }

    @Test
    void addAndExists() {
        assertTrue(redis.bfAdd("k", "a"));
        assertFalse(redis.bfAdd("k", "a"));
        assertTrue(redis.bfExists("k", "a"));
        assertFalse(redis.bfExists("absent", "a"));
        assertEquals(List.of(false, true), redis.bfMAdd("k", "a", "b"));
        assertEquals(List.of(true, false), redis.bfMExists("k", "b", "c"));
        assertEquals(List.of(true, false), redis.bfInsert("k", "c", "a"));
        assertEquals(3, redis.bfCard("k"));
    }

    @Test
    void scanDumpAndLoadChunk() {
        redis.bfMAdd("old", "a", "b");
        try (var bytes = client.connect(ByteArrayCodec.INSTANCE)) {
            byte[] from = "old".getBytes();
            byte[] to = "new".getBytes();
            ScanDumpValue chunk = bytes.sync().bfScanDump(from, 0);
            while (chunk.getIterator() != 0) {
                bytes.sync().bfLoadChunk(to, chunk.getIterator(), chunk.getData());
                chunk = bytes.sync().bfScanDump(from, chunk.getIterator());
            }
        }
        assertEquals(List.of(true, true, false), redis.bfMExists("new", "a", "b", "c"));
    }

    @Test
    void pipelined() {
        List<RedisFuture<Boolean>> added = new ArrayList<>();
        connection.setAutoFlushCommands(false);
        for (int i = 0; i < 10_000; i++) {
            added.add(connection.async().bfAdd("k", "item " + i));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        RedisFuture<?>[] all = added.toArray(new RedisFuture<?>[0]);
        assertTrue(LettuceFutures.awaitAll(Duration.ofSeconds(30), all));
        assertTrue(redis.bfCard("k") >= 9_800);
        assertTrue(redis.bfExists("k", "item 9999"));
    }
}
