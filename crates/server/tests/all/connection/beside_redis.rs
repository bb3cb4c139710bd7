//! The same lines to both servers.

use super::*;

#[test]
fn connection_commands_answer_as_redis_does() {
    compare(&[
        "PING",
        "PING a",
        "PING a b",
        "ECHO",
        "ECHO a",
        "SELECT x",
        "SELECT 99",
        "SELECT -1",
        "SELECT 99999999999",
        "SELECT 1",
        "SELECT 0",
        "HELLO 4",
        "HELLO x",
        "HELLO 2 foo",
        "HELLO 2 AUTH x",
        "HELLO 2 AUTH x y",
        "HELLO 2 SETNAME a\tb",
        "HELLO 2 SETNAME",
        "AUTH",
        "AUTH x",
        "AUTH a b",
        "AUTH a b c",
        "AUTH default b",
        "CLIENT SETNAME a\nb",
        "CLIENT SETNAME name",
        "CLIENT GETNAME",
        "CLIENT SETNAME ''",
        "CLIENT GETNAME",
        "CLIENT KILL 1.2.3.4:5",
        "CLIENT KILL ID 99",
        "CLIENT KILL ID x",
        "CLIENT KILL ID 0",
        "CLIENT KILL foo bar",
        "CLIENT KILL TYPE x",
        "CLIENT KILL TYPE pubsub",
        "CLIENT KILL TYPE replica",
        "CLIENT LIST TYPE x",
        "CLIENT LIST TYPE pubsub",
        "CLIENT KILL SKIPME x",
        "CLIENT KILL ID",
        "CLIENT KILL",
        "CLIENT KILL ID 1 ADDR",
        "CLIENT KILL LADDR 1.2.3.4:5",
        "CLIENT LIST ID x",
        "CLIENT LIST ID 998 999",
        "CLIENT LIST foo",
        "CLIENT LIST ID",
        "CLIENT foo",
        "CLIENT",
        "CLIENT ID x",
        "CLIENT HELP x",
        "RESET",
        "RESET x",
        "QUIT",
    ]);
}

#[test]
fn of_client_kill_options_given_twice_the_last_counts_as_in_redis() {
    let running = server(Settings::default());
    let redis = Redis::start(&[]);
    let addresses = [running.addr(), redis.as_ref().map(|redis| redis.addr)];
    for address in addresses.into_iter().flatten() {
        let mut client = Client::connect(address);
        for option in ["ID", "ADDR"] {
            let (mut spared, mut killed) = (Client::connect(address), Client::connect(address));
            let value = |client: &mut Client| match option {
                "ID" => client.number("CLIENT ID").to_string(),
                _ => client.stream.local_addr().unwrap().to_string(),
            };
            // A connection that is not accepted yet has no address to be found by.
            spared.ok("PING");
            killed.ok("PING");
            let (first, last) = (value(&mut spared), value(&mut killed));
            let line = format!("CLIENT KILL {option} {first} {option} {last}");
            assert_eq!(client.number(&line), 1, "{line}");
            assert_eq!(killed.try_reply(), None, "{line}");
            spared.ok("PING");
            spared.line("QUIT");
        }
        assert_eq!(client.number("CLIENT KILL TYPE normal TYPE pubsub"), 0);
        assert_eq!(client.number("CLIENT KILL ID 9999 SKIPME no SKIPME yes"), 0);
    }
}

#[test]
fn config_answers_as_redis_does() {
    compare(&[
        "CONFIG",
        "CONFIG GET",
        "CONFIG foo",
        "CONFIG GET maxmemory",
        "CONFIG GET MaxMem[o]ry",
        "CONFIG GET MAXMEMORY",
        "CONFIG GET TimeOut timeout TIME*",
        "CONFIG GET nosuch",
        "CONFIG GET save",
        "CONFIG GET appendonly",
        "CONFIG GET maxmemory-policy",
        "CONFIG GET timeout",
        "CONFIG SET timeout 5",
        "CONFIG GET timeout",
        "CONFIG SET TIMEOUT 0",
        "CONFIG SET maxmemory x",
        "CONFIG SET maxmemory -1",
        "CONFIG SET maxmemory 1xb",
        "CONFIG SET maxmemory 100mb",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory 0",
        "CONFIG SET maxclients x",
        "CONFIG SET maxclients 0",
        "CONFIG SET timeout -1",
        "CONFIG SET hz abc",
        "CONFIG SET hz 1000",
        "CONFIG GET hz",
        "CONFIG SET protected-mode x",
        "CONFIG SET protected-mode YES",
        "CONFIG GET protected-mode",
        "CONFIG SET nosuch 1",
        "CONFIG SET maxclients",
        "CONFIG SET timeout 1 timeout 2",
        "CONFIG SET timeout 1 nosuch 2",
        "CONFIG SET timeout 1 maxclients 0",
        "CONFIG SET timeout 1 maxclients",
        "CONFIG GET timeout",
        "CONFIG SET proto-max-bulk-len 1",
        "CONFIG SET slowlog-log-slower-than -5",
        "CONFIG SET slowlog-max-len -1",
        "CONFIG SET client-query-buffer-limit 1",
        "CONFIG GET client-output-buffer-limit",
        "CONFIG SET client-output-buffer-limit normal~0~0",
        "CONFIG SET client-output-buffer-limit master~0~0~0",
        "CONFIG SET client-output-buffer-limit normal~0~0~-1",
        "CONFIG SET client-output-buffer-limit normal~x~0~0",
        "CONFIG SET client-output-buffer-limit Normal~1mb~2kb~3~replica~1~2~3",
        "CONFIG GET client-output-buffer-limit",
        "CONFIG SET tcp-backlog 1",
        "CONFIG SET databases 2",
        "CONFIG SET io-threads 3",
        "CONFIG SET logfile x",
        "CONFIG SET save ''",
        "CONFIG SET requirepass ''",
        "CONFIG REWRITE",
        "CONFIG RESETSTAT",
        "CONFIG RESETSTAT x",
        "CONFIG HELP x",
    ]);
}

#[test]
fn server_commands_answer_as_redis_does() {
    compare(&[
        "SHUTDOWN x",
        "SHUTDOWN nosave save",
        "SHUTDOWN abort now",
        "SHUTDOWN nosave abort",
        "SLOWLOG GET x",
        "SLOWLOG GET -2",
        "SLOWLOG foo",
        "SLOWLOG GET 1 2",
        "SLOWLOG RESET",
        "SLOWLOG LEN",
        "SLOWLOG GET",
        "WAIT x 0",
        "WAIT 0 -1",
        "WAIT 0 x",
        "WAIT x -1",
        "WAIT 0 0",
        "ROLE",
        "ROLE x",
        "ACL WHOAMI",
        "ACL foo",
        "COMMAND GETKEYS",
        "COMMAND GETKEYS GET k",
        "COMMAND GETKEYS PING x",
        "COMMAND GETKEYS GET x y",
        "COMMAND GETKEYS foo x y",
        "COMMAND GETKEYS EXISTS a b c",
        "COMMAND COUNT x",
        "COMMAND LIST x",
        "COMMAND INFO nosuch",
        "COMMAND INFO echo",
        "COMMAND INFO select auth hello quit reset",
        "COMMAND DOCS nosuch",
        "COMMAND foo",
        "TIME x",
    ]);
}
