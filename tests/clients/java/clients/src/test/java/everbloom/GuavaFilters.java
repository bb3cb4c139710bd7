package everbloom;

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import com.google.common.hash.PrimitiveSink;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.function.IntFunction;

/** Filters that Guava writes, and its answers, for `everbloom::guava`. */
final class GuavaFilters {
    /** The byte with which a written filter begins: MURMUR128_MITZ_32 and MURMUR128_MITZ_64. */
    private static final int[] STRATEGIES = {0, 1};

    private GuavaFilters() {}

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "golden" -> golden();
            case "sizes" -> sizes();
            case "million" -> million(Path.of(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** A filter that will be written with this strategy. Guava makes only the newest itself. */
    private static <T> BloomFilter<T> filter(
            Funnel<? super T> funnel, int strategy, int capacity, double rate) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BloomFilter.<T>create(funnel, capacity, rate).writeTo(bytes);
        byte[] written = bytes.toByteArray();
        written[0] = (byte) strategy;
        return BloomFilter.readFrom(new ByteArrayInputStream(written), funnel);
    }

    /** crates/filters/tests/guava/filters.json: a filter for each funnel and strategy. */
    private static void golden() throws IOException {
        StringBuilder json = new StringBuilder("[\n");
        Funnel<CharSequence> utf8 = Funnels.stringFunnel(StandardCharsets.UTF_8);
        Funnel<Iterable<? extends Integer>> numbers =
                Funnels.sequentialFunnel(Funnels.integerFunnel());
        for (int strategy : STRATEGIES) {
            one(json, "bytes", Funnels.byteArrayFunnel(), strategy, GuavaFilters::bytes);
            one(json, "utf8", utf8, strategy, GuavaFilters::text);
            one(json, "chars", Funnels.unencodedCharsFunnel(), strategy, GuavaFilters::text);
            one(json, "integer", Funnels.integerFunnel(), strategy, i -> i * 0x9E3779B9);
            one(json, "long", Funnels.longFunnel(), strategy, i -> i * 0x9E3779B97F4A7C15L);
            one(json, "sequential", numbers, strategy, i -> List.of(i, -i));
            one(json, "own", GuavaFilters::putAll, strategy, i -> i);
        }
        System.out.println(json.substring(0, json.length() - 2) + "\n]");
    }

    /** i bytes, so that every length is there. */
    private static byte[] bytes(int i) {
        byte[] bytes = new byte[i];
        Arrays.fill(bytes, (byte) (i * 7));
        return bytes;
    }

    private static String text(int i) {
        return "\u00e9 \ud83d\ude00 " + i;
    }

    /** A funnel of one's own, with something of every kind. */
    private static void putAll(int i, PrimitiveSink into) {
        into.putByte((byte) i).putShort((short) i).putInt(i).putLong(i).putFloat(i).putDouble(i);
        into.putBoolean(true).putChar('\u00e9').putBytes(bytes(i));
        into.putString(text(i), StandardCharsets.UTF_8).putUnencodedChars(text(i));
    }

    /** Items 0 to 49 are put in; it is asked for 0 to 199. */
    private static <T> void one(
            StringBuilder json,
            String name,
            Funnel<? super T> funnel,
            int strategy,
            IntFunction<T> item)
            throws IOException {
        BloomFilter<T> filter = filter(funnel, strategy, 50, 0.1);
        for (int i = 0; i < 50; i++) {
            filter.put(item.apply(i));
        }
        StringBuilder answers = new StringBuilder();
        for (int i = 0; i < 200; i++) {
            answers.append(filter.mightContain(item.apply(i)) ? '1' : '0');
        }
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        filter.writeTo(written);
        String hex = HexFormat.of().formatHex(written.toByteArray());
        json.append("{\"funnel\": \"%s\", \"strategy\": %d,%n".formatted(name, strategy))
                .append(" \"count\": %d,".formatted(filter.approximateElementCount()))
                .append(" \"rate\": %s,%n".formatted(filter.expectedFpp()))
                .append(" \"answers\": \"%s\",%n".formatted(answers))
                .append(" \"bytes\": \"%s\"},%n".formatted(hex));
    }

    /** crates/filters/tests/guava/sizes.txt: capacity, rate, and what Guava computes of them. */
    private static void sizes() throws ReflectiveOperationException {
        Class<?> filter = BloomFilter.class;
        Method bits = filter.getDeclaredMethod("optimalNumOfBits", long.class, double.class);
        Method hashes = filter.getDeclaredMethod("optimalNumOfHashFunctions", double.class);
        bits.setAccessible(true);
        hashes.setAccessible(true);
        for (long items : new long[] {1, 50, 1000, 12_345, 1_000_000, 10_000_000_000L}) {
            for (double rate : new double[] {0.5, 0.3, 0.1, 0.03, 0.01, 0.001, 1e-4, 1e-6, 1e-9}) {
                Object m = bits.invoke(null, items, rate);
                System.out.printf("%d %s %d %d%n", items, rate, m, hashes.invoke(null, rate));
            }
        }
    }

    /**
     * For each strategy a filter of a million items, and a file with a bit for each of two million:
     * whether Guava finds it. The lowest bit of a byte is first.
     */
    private static void million(Path folder) throws IOException {
        int items = 1_000_000;
        for (int strategy : STRATEGIES) {
            Funnel<CharSequence> utf8 = Funnels.stringFunnel(StandardCharsets.UTF_8);
            BloomFilter<CharSequence> filter = filter(utf8, strategy, items, 0.03);
            for (int i = 0; i < items; i++) {
                filter.put("item " + i);
            }
            try (OutputStream file = Files.newOutputStream(folder.resolve("filter-" + strategy))) {
                filter.writeTo(file);
            }
            BitSet answers = new BitSet();
            for (int i = 0; i < 2 * items; i++) {
                answers.set(i, filter.mightContain("item " + i));
            }
            Files.write(folder.resolve("answers-" + strategy), answers.toByteArray());
        }
    }
}
