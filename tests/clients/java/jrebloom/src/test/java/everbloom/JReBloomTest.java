package everbloom;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rebloom.client.Client;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import redis.clients.jedis.exceptions.JedisException;

/** JReBloom 1.2, as the published article uses it. */
class JReBloomTest {
    private static final String HOST = "127.0.0.1";
    private static final int PORT = Integer.parseInt(System.getenv("EVERBLOOM_PORT"));

    private Client client;

    @BeforeEach
    void connect() {
        client = new Client(HOST, PORT);
    }

    @AfterEach
    void close() {
        for (String key : new String[] {"simpleBloom", "specialBloom", "bytes", "bean"}) {
            client.delete(key);
        }
        client.close();
    }

    @Test
    void addAndExists() {
        assertTrue(client.add("simpleBloom", "Mark"));
        assertFalse(client.add("simpleBloom", "Mark"));
        assertTrue(client.exists("simpleBloom", "Mark"));
        assertFalse(client.exists("simpleBloom", "Farnsworth"));
    }

    @Test
    void addMultiAndExistsMulti() {
        boolean[] added = client.addMulti("simpleBloom", "foo", "bar", "foo");
        assertArrayEquals(new boolean[] {true, true, false}, added);
        boolean[] found = client.existsMulti("simpleBloom", "foo", "bar", "baz");
        assertArrayEquals(new boolean[] {true, true, false}, found);
        assertTrue(client.delete("simpleBloom"));
        assertFalse(client.exists("simpleBloom", "foo"));
    }

    @Test
    void createFilter() {
        client.createFilter("specialBloom", 10_000, 0.0001);
        assertTrue(client.add("specialBloom", "foo"));
        JedisException refused =
                assertThrows(
                        JedisException.class,
                        () -> client.createFilter("specialBloom", 10_000, 0.0001));
        assertEquals("ERR item exists", refused.getMessage());
    }

    @Test
    void itemsOfBytes() {
        byte[] item = {0, (byte) 0xff, '\r', '\n'};
        assertTrue(client.add("bytes", item));
        assertArrayEquals(new boolean[] {true}, client.existsMulti("bytes", item));
    }

    /** The bean of docs/guide/clients.md. */
    @Configuration
    static class Beans {
        @Bean(destroyMethod = "close")
        Client bloom() {
            Client client = new Client(HOST, PORT);
            try {
                client.createFilter("bean", 10_000, 0.0001);
            } catch (JedisException e) {
                if (!e.getMessage().endsWith("item exists")) throw e;
            }
            return client;
        }
    }

    @Test
    void aBeanThatStartsTwice() {
        for (boolean isNew : new boolean[] {true, false}) {
            try (var context = new AnnotationConfigApplicationContext(Beans.class)) {
                assertEquals(isNew, context.getBean(Client.class).add("bean", "a"));
            }
        }
    }
}
