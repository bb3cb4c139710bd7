package everbloom;

/** The server that `cargo test` started for us. */
final class Server {
    static final String HOST = "127.0.0.1";
    static final int PORT = Integer.parseInt(System.getenv("EVERBLOOM_PORT"));

    private Server() {}
}
