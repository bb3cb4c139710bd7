import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RBitSet;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Prints what Redisson writes into a redis-server: each filter's settings, and its bits. */
class Vectors {
    static final String[] ITEMS = {
        "", "a", "ab", "user:17", "https://a.example/?q=1", "é", "日本語", "😀", "x".repeat(31),
        "x".repeat(32), "x".repeat(33), "x".repeat(63), "x".repeat(64), "x".repeat(65),
        "x".repeat(100), "é".repeat(40), "x".repeat(300),
    };

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress(args[0]);
        RedissonClient redisson = Redisson.create(config);
        List<String> lines = new ArrayList<>();
        Codec standard = redisson.getConfig().getCodec();
        for (String name : new String[] {"seen", "{user}:seen"}) {
            for (Codec codec : new Codec[] {StringCodec.INSTANCE, standard}) {
                boolean text = codec == StringCodec.INSTANCE;
                for (String item : ITEMS) {
                    RBloomFilter<String> filter = redisson.getBloomFilter(name, codec);
                    filter.delete();
                    filter.tryInit(1_000_000, 0.01);
                    filter.add(item);
                    RBitSet bits = redisson.getBitSet(name);
                    List<String> positions = new ArrayList<>();
                    java.util.BitSet set = bits.asBitSet();
                    set.stream().forEach(bit -> positions.add(Integer.toString(bit)));
                    List<String> keys = new ArrayList<>();
                    redisson.getKeys().getKeys().forEach(key -> keys.add("\"" + key + "\""));
                    keys.sort(null);
                    ByteBuf encoded = codec.getValueEncoder().encode(item);
                    lines.add("{\"name\": \"" + name + "\", \"codec\": \""
                        + codec.getClass().getSimpleName() + "\", \"item\": \"" + item
                        + "\", \"encoded\": \"" + ByteBufUtil.hexDump(encoded) + "\", \"bits\": "
                        + filter.getSize() + ", \"hashes\": " + filter.getHashIterations()
                        + ", \"keys\": [" + String.join(", ", keys)
                        + "], \"set\": [" + String.join(", ", positions) + "]}");
                    encoded.release();
                    filter.delete();
                }
            }
        }
        System.out.write(("[\n" + String.join(",\n", lines) + "\n]\n").getBytes("UTF-8"));
        System.out.flush();
        redisson.shutdown();
    }
}
