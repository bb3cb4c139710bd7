/** Writes hashcode.json: what Java says. Run: java HashCodeVectors.java > hashcode.json */
class HashCodeVectors {
    static final String[] ITEMS = {
        "", "a", "ab", "user:17", "https://a.example/?q=1", "é", "日本語", "\uD83D\uDE00",
        "polygenelubricants", "x".repeat(100), "a key whose code is negative 1",
    };

    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder("[\n");
        for (String item : ITEMS) {
            int code = item.hashCode();
            out.append("{\"item\": \"").append(item).append("\", \"code\": ").append(code)
                .append(", \"positions\": [").append((code >>> 1) % 10_000_000).append(", ")
                .append((code >>> 2) % 10_000_000).append(", ").append((code >>> 3) % 10_000_000)
                .append("]},\n");
        }
        out.setLength(out.length() - 2);
        System.out.write(out.append("\n]\n").toString().getBytes("UTF-8"));
    }
}
