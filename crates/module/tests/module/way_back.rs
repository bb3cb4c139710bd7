//! What is refused while RedisBloom may have to follow, and what is taken all the same.

use everbloom_resp::Reply;

use crate::replication::{check_equal, replica_of};
use crate::support::{Client, Host, elements, from_redis_7, host_program, module, set};

fn switch(client: &mut Client, value: &str) {
    set(client, "bf-redisbloom-compatible", value);
}

fn bytes(reply: &Reply) -> Vec<u8> {
    reply.as_bytes().unwrap().to_vec()
}

/// The first piece of a dump, which makes a filter where it is loaded.
fn header(client: &mut Client, key: &str) -> Vec<u8> {
    bytes(&elements(client.ok(&format!("BF.SCANDUMP {key} 0")))[1])
}

/// Tries all that makes or changes a blocked filter, and a copy; answers what was refused.
fn try_all(client: &mut Client, header: &[u8], payload: &[u8]) -> Vec<String> {
    let mut replies = Vec::new();
    for line in [
        "BF.RESERVE a 0.01 100 LAYOUT BLOCKED",
        "BF.INSERT b LAYOUT BLOCKED ITEMS x",
        "BF.ADD blocked y",
        "BF.MADD blocked y z",
        "BF.INSERT blocked ITEMS y",
        "COPY classic c",
        "COPY blocked d",
        "CF.RESERVE n 100 ERROR 0.01",
        "CF.ADD keyed y",
    ] {
        replies.push((line, client.line(line)));
    }
    set(client, "bf-default-layout", "blocked");
    for line in [
        "BF.ADD e x",
        "BF.MADD f x y",
        "BF.INSERT g ITEMS x",
        "BF.RESERVE h 0.01 100",
    ] {
        replies.push((line, client.line(line)));
    }
    set(client, "bf-default-layout", "classic");
    let chunk = client.call(&[b"BF.LOADCHUNK", &b"i"[..], b"1", header]);
    replies.push(("BF.LOADCHUNK", chunk));
    let restored = client.call(&[b"RESTORE", &b"j"[..], b"0", payload]);
    replies.push(("RESTORE", restored));
    let refused = replies.iter().filter_map(|(line, reply)| {
        let text = reply.as_error()?;
        Some(format!("{line}: {text}"))
    });
    refused.collect()
}

#[test]
fn nothing_is_taken_that_redisbloom_could_not_follow() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    client.ok("BF.MADD classic x y");
    client.ok("BF.INSERT blocked LAYOUT BLOCKED ITEMS x");
    client.ok("CF.RESERVE keyed 100 ERROR 0.01");
    let blocked = header(&mut client, "blocked");
    let payload = bytes(&client.ok("DUMP blocked"));
    let before = client.digest();

    switch(&mut client, "yes");
    let blocked_text = "ERR blocked filters are refused while bf-redisbloom-compatible is on";
    let cuckoo_text =
        "ERR cuckoo filters with an error rate are refused while bf-redisbloom-compatible is on";
    let copy = "ERR module key failed to copy";
    let expected: Vec<String> = [
        ("BF.RESERVE a 0.01 100 LAYOUT BLOCKED", blocked_text),
        ("BF.INSERT b LAYOUT BLOCKED ITEMS x", blocked_text),
        ("BF.ADD blocked y", blocked_text),
        ("BF.MADD blocked y z", blocked_text),
        ("BF.INSERT blocked ITEMS y", blocked_text),
        ("COPY classic c", copy),
        ("COPY blocked d", copy),
        ("CF.RESERVE n 100 ERROR 0.01", cuckoo_text),
        ("CF.ADD keyed y", cuckoo_text),
        ("BF.ADD e x", blocked_text),
        ("BF.MADD f x y", blocked_text),
        ("BF.INSERT g ITEMS x", blocked_text),
        ("BF.RESERVE h 0.01 100", blocked_text),
        ("BF.LOADCHUNK", blocked_text),
        ("RESTORE", "ERR Bad data format"),
    ]
    .map(|(line, text)| format!("{line}: {text}"))
    .into();
    assert_eq!(try_all(&mut client, &blocked, &payload), expected);
    assert_eq!(client.digest(), before);
    let log = host.log();
    assert!(log.contains("no filter is copied: bf-redisbloom-compatible is on"));
    assert!(
        log.contains("no filter that RedisBloom lacks is restored: bf-redisbloom-compatible is on")
    );

    // What RedisBloom has goes on, and reading what it has not.
    assert_eq!(client.number("BF.EXISTS blocked x"), 1);
    client.ok("BF.ADD classic z");
    client.ok("BF.RESERVE k 0.01 100 LAYOUT CLASSIC");
    let classic = header(&mut client, "classic");
    assert_eq!(
        client.call(&[b"BF.LOADCHUNK", &b"l"[..], b"1", &classic]),
        Reply::OK
    );
    let payload_of_classic = bytes(&client.ok("DUMP classic"));
    let restored = client.call(&[b"RESTORE", &b"m"[..], b"0", &payload_of_classic]);
    assert_eq!(restored, Reply::OK);
    client.ok("SET plain 1");
    client.ok("COPY plain plainer");

    switch(&mut client, "no");
    let none: [&str; 0] = [];
    assert_eq!(try_all(&mut client, &blocked, &payload), none);
}

/// Makes, copies and restores blocked filters.
fn go_too_far(client: &mut Client) {
    client.ok("BF.INSERT blocked LAYOUT BLOCKED ITEMS x");
    client.ok("BF.MADD blocked y z");
    client.ok("BF.MADD classic x y");
    client.ok("COPY classic copied");
    client.ok("COPY blocked blocked-copy");
    client.ok("BF.ADD copied z");
    let payload = bytes(&client.ok("DUMP blocked"));
    let restored = client.call(&[b"RESTORE", &b"restored"[..], b"0", &payload]);
    assert_eq!(restored, Reply::OK);
}

#[test]
fn a_replica_takes_what_its_primary_accepted() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let mut client = primary.client();
    client.ok("BF.INSERT in-the-snapshot LAYOUT BLOCKED ITEMS x");
    let replica = replica_of(&primary, &[], &["REDISBLOOM_COMPATIBLE", "Yes"]);
    go_too_far(&mut client);
    check_equal(&primary, &[&replica]);
    // Its own clients it refuses.
    let mut replica = replica.client();
    replica.ok("REPLICAOF NO ONE");
    replica.error("COPY classic copied-again");
    replica.error("BF.ADD blocked more");
}

#[test]
fn a_log_brings_back_what_was_accepted_before() {
    if !from_redis_7() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "appendonly yes\nenable-debug-command yes\nloadmodule {}\n",
        module().display()
    );
    std::fs::write(dir.path().join("redis.conf"), text).unwrap();
    let mut host = Host::on_file(dir, &host_program().unwrap());
    let mut client = host.client();
    go_too_far(&mut client);
    switch(&mut client, "yes");
    client.ok("CONFIG REWRITE");
    let before = client.digest();
    host.restart("NOSAVE");
    let mut client = host.client();
    assert_eq!(client.digest(), before);
    client.error("COPY classic copied-again");
}

#[test]
fn a_load_argument_keeps_the_way_back_where_hosts_have_no_settings() {
    let words = ["REDISBLOOM_COMPATIBLE", "yes"];
    let Some(host) = Host::with_args(&[], &words) else {
        return;
    };
    let mut client = host.client();
    let text = "ERR blocked filters are refused while bf-redisbloom-compatible is on";
    assert_eq!(client.error("BF.RESERVE f 0.01 9 LAYOUT BLOCKED"), text);
    client.ok("BF.ADD f x");
    client.error("COPY f g");
    assert_eq!(client.number("EXISTS g"), 0);
}
