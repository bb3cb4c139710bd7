package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Redisson's RBloomFilter: a bitmap of its own, with its parameters in a hash beside it. It needs
 * scripts and hashes, which are Redis's: it runs where our module is loaded, and not on `serve`.
 */
class RedissonTest {
    private RedissonClient redisson;

    @BeforeEach
    void connect() {
        redisson = Redissons.connect();
        redisson.getKeys().flushdb();
    }

    @AfterEach
    void close() {
        redisson.shutdown();
    }

    @Test
    void addAndContains() {
        RBloomFilter<String> filter = redisson.getBloomFilter("bitmap", StringCodec.INSTANCE);
        assertTrue(filter.tryInit(55_000, 0.03));
        assertFalse(filter.tryInit(55_000, 0.03));
        assertEquals(401_414, filter.getSize());
        assertEquals(5, filter.getHashIterations());

        assertTrue(filter.add("a"));
        assertFalse(filter.add("a"));
        assertTrue(filter.contains("a"));
        assertFalse(filter.contains("b"));
        assertEquals(2, filter.add(List.of("a", "b", "c")));
        assertEquals(Set.of("b", "c"), filter.exists(List.of("b", "c", "d")));
        assertEquals(3, filter.count());
    }

    @Test
    void bothKindsBesideEachOther() {
        RBloomFilter<String> bitmap = redisson.getBloomFilter("bitmap", StringCodec.INSTANCE);
        bitmap.tryInit(1000, 0.01);
        bitmap.add("a");
        redisson.getBloomFilterNative("native", StringCodec.INSTANCE).add("a");
        assertTrue(bitmap.contains("a"));
        assertTrue(redisson.getBloomFilterNative("native", StringCodec.INSTANCE).exists("a"));
    }
}
