package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;

/** The published recipe without BF.*: a bitmap, and three bits of it for an item, in pipelines. */
class JedisBitmapTest {
    private static final int BITS = 10_000_000;

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

    private static long[] positions(String item) {
        int hash = item.hashCode();
        return new long[] {(hash >>> 1) % BITS, (hash >>> 2) % BITS, (hash >>> 3) % BITS};
    }

    /** Whether the item was new. */
    private boolean add(String key, String item) {
        List<Response<Boolean>> before = new ArrayList<>();
        try (AbstractPipeline pipeline = jedis.pipelined()) {
            for (long position : positions(item)) {
                before.add(pipeline.setbit("bf-" + key, position, true));
            }
            pipeline.sync();
        }
        return !before.stream().allMatch(Response::get);
    }

    private boolean exists(String key, String item) {
        List<Response<Boolean>> bits = new ArrayList<>();
        try (AbstractPipeline pipeline = jedis.pipelined()) {
            for (long position : positions(item)) {
                bits.add(pipeline.getbit("bf-" + key, position));
            }
            pipeline.sync();
        }
        return bits.stream().allMatch(Response::get);
    }

    @Test
    void addAndExists() {
        assertFalse(exists("users", "user 1"));
        assertTrue(add("users", "user 1"));
        assertFalse(add("users", "user 1"));
        assertTrue(exists("users", "user 1"));
        assertFalse(exists("users", "somebody else"));
        assertFalse(exists("others", "user 1"));
    }

    @Test
    void itsBitsAreWhereTheRecipePutsThem() {
        // The hash code of this word is negative; without the sign it is this number.
        long hash = 4_030_913_902L;
        add("users", "everblooms");
        for (long position : new long[] {hash >> 1, hash >> 2, hash >> 3}) {
            assertTrue(jedis.getbit("bf-users", position % BITS), "bit " + position % BITS);
        }
        assertEquals(3, jedis.bitcount("bf-users"));
    }

    @Test
    void manyItems() {
        for (int i = 0; i < 1000; i++) {
            add("users", "user number " + i);
        }
        for (int i = 0; i < 1000; i++) {
            assertTrue(exists("users", "user number " + i));
        }
    }
}
