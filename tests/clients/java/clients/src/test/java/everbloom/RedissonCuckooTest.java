package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.CuckooFilterInfo;
import org.redisson.api.RCuckooFilter;
import org.redisson.api.RedissonClient;
import org.redisson.api.cuckoofilter.CuckooFilterAddArgs;
import org.redisson.api.cuckoofilter.CuckooFilterInitArgs;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;

/** Redisson's RCuckooFilter, which is the CF.* commands. */
class RedissonCuckooTest {
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

    private RCuckooFilter<String> filter(String key) {
        return redisson.getCuckooFilter(key, StringCodec.INSTANCE);
    }

    @Test
    void addCountAndRemove() {
        RCuckooFilter<String> filter = filter("k");
        filter.init(1000);
        assertTrue(filter.add("a"));
        assertTrue(filter.add("a"));
        assertFalse(filter.addIfAbsent("a"));
        assertTrue(filter.addIfAbsent("b"));
        assertEquals(2, filter.count("a"));
        assertEquals(Set.of("a", "b"), filter.exists(List.of("a", "b", "c")));
        assertTrue(filter.remove("a"));
        assertTrue(filter.remove("a"));
        assertFalse(filter.remove("a"));
        assertFalse(filter.exists("a"));
        assertThrows(RedisException.class, () -> filter.init(1000));
    }

    @Test
    void initAndAddWithAllTheyTake() {
        RCuckooFilter<String> all = filter("all");
        all.init(
                CuckooFilterInitArgs.capacity(1000).bucketSize(8).maxIterations(7).expansion(3));
        CuckooFilterInfo info = all.getInfo();
        assertEquals(1080, info.getSize());
        assertEquals(128, info.getNumberOfBuckets());
        assertEquals(8, info.getBucketSize());
        assertEquals(4, info.getExpansionRate());
        assertEquals(7, info.getMaxIterations());

        RCuckooFilter<String> made = filter("made");
        List<String> items = List.of("a", "b");
        assertEquals(Set.of("a", "b"), made.add(CuckooFilterAddArgs.items(items).capacity(1000)));
        assertEquals(512, made.getInfo().getNumberOfBuckets());
        List<String> more = List.of("b", "c");
        assertEquals(Set.of("c"), made.addIfAbsent(CuckooFilterAddArgs.items(more)));
        assertEquals(3, made.getInfo().getNumberOfInsertedItems());
        CuckooFilterAddArgs<String> existing = CuckooFilterAddArgs.items(items).noCreate();
        assertThrows(RedisException.class, () -> filter("absent").add(existing));
    }
}
