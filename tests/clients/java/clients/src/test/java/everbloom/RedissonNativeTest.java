package everbloom;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RBloomFilterNative;
import org.redisson.api.RedissonClient;
import org.redisson.api.bloomfilter.BloomFilterInitArgs;
import org.redisson.api.bloomfilter.BloomFilterInsertArgs;
import org.redisson.api.bloomfilter.BloomFilterScanDumpInfo;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;

/** Redisson's RBloomFilterNative, which is the BF.* commands. */
class RedissonNativeTest {
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

    private RBloomFilterNative<String> filter(String key) {
        return redisson.getBloomFilterNative(key, StringCodec.INSTANCE);
    }

    @Test
    void addAndExists() {
        RBloomFilterNative<String> filter = filter("k");
        filter.init(0.001, 1000);
        assertEquals(1000, filter.getInfo().getCapacity());
        assertTrue(filter.add("a"));
        assertFalse(filter.add("a"));
        assertTrue(filter.exists("a"));
        assertFalse(filter.exists("b"));
        assertEquals(Set.of("b", "c"), filter.add(List.of("a", "b", "c")));
        assertEquals(Set.of("b", "c"), filter.exists(List.of("b", "c", "d")));
        assertEquals(3, filter.count());
        assertThrows(RedisException.class, () -> filter.init(0.001, 1000));
    }

    /** RBloomFilter needs scripts. Redisson repeats them for ever when a server has no such command. */
    @Test
    void aFilterOfScriptsIsRefusedAtOnce() {
        String refusal = assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            try {
                redisson.getBloomFilter("by-script").tryInit(100, 0.01);
                return "";
            } catch (RedisException refused) {
                return refused.getMessage();
            }
        });
        // The module's host runs scripts.
        boolean isHost = redisson.getKeys().countExists("by-script") == 1
                || redisson.getKeys().countExists("{by-script}:config") == 1;
        assertEquals(!isHost, refusal.contains("runs no scripts"), refusal);
    }

    @Test
    void initAndInsertWithAllTheyTake() {
        RBloomFilterNative<String> wide = filter("wide");
        wide.init(BloomFilterInitArgs.create().errorRate(0.01).capacity(100).expansionRate(4));
        assertEquals(4, wide.getInfo().getExpansionRate());

        RBloomFilterNative<String> made = filter("made");
        List<String> items = List.of("a", "b");
        Set<String> fresh =
                made.insert(BloomFilterInsertArgs.elements(items).capacity(500).errorRate(0.001));
        assertEquals(Set.of("a", "b"), fresh);
        assertEquals(500, made.getInfo().getCapacity());
        assertEquals(2, made.getInfo().getItemCount());
    }

    @Test
    void scanDumpAndLoadChunk() {
        RBloomFilterNative<String> old = filter("old");
        old.add(List.of("a", "b"));
        RBloomFilterNative<String> copy = filter("new");
        BloomFilterScanDumpInfo chunk = old.scanDump(0);
        while (chunk.getIterator() != 0) {
            copy.loadChunk(chunk.getIterator(), chunk.getData());
            chunk = old.scanDump(chunk.getIterator());
        }
        assertEquals(Set.of("a", "b"), copy.exists(List.of("a", "b", "c")));
    }
}
