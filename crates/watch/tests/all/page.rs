//! The page, and the figures that its script asks for.

use everbloom_dev::wait_for;
use everbloom_server::Settings;
use serde_json::Value;

use super::{HOSTILE, ask, client, scrape_after_a_walk, watched};

#[test]
fn the_page_runs_nothing_but_its_own_script_and_is_not_kept() {
    let (_running, port) = watched(Settings::default());
    let nonce = || {
        let (head, body) = ask(port, "GET", "/");
        assert!(
            head.contains("content-type: text/html; charset=utf-8"),
            "{head}"
        );
        assert!(head.contains("cache-control: no-store"), "{head}");
        let policy = head.split("content-security-policy: ").nth(1).unwrap();
        let policy = policy.lines().next().unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap()[..32].to_owned();
        assert!(
            policy.contains(&format!("style-src 'nonce-{nonce}'")),
            "{policy}"
        );
        assert_eq!(body.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
        assert!(!body.contains("NONCE"));
        // It fetches nothing from elsewhere.
        let own = ["http://www.w3.org/2000/svg"];
        let addresses = body.matches("http").count();
        assert_eq!(addresses, own.len());
        nonce
    };
    assert_ne!(nonce(), nonce());
}

fn json(port: u16, path: &str) -> Value {
    let (head, body) = ask(port, "GET", path);
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn the_page_asks_for_windows_and_for_what_refuses_items() {
    let (running, port) = watched(Settings::default());
    let mut client = client(&running);
    client.ok("BF.RESERVE growing 0.01 50");
    client.ok("BF.RESERVE fixed 0.01 50 NONSCALING");
    client.ok("CF.RESERVE cuckoo 50 EXPANSION 0");
    client.ok("BF.RESERVE window 0.01 1000 WINDOW SECONDS 40");
    for (key, fixed) in [
        ("growing", false),
        ("fixed", true),
        ("cuckoo", true),
        ("window", false),
    ] {
        assert_eq!(
            json(port, &format!("/filter.json?key={key}"))["fixed"],
            fixed,
            "{key}"
        );
    }
    client.ok("CF.RESERVE keyed 1000 ERROR 0.001");
    client.ok("CF.ADD keyed x");
    let keyed = json(port, "/filter.json?key=keyed");
    for (name, fact) in [
        ("layout", Value::from("keyed-cuckoo")),
        ("asked", 0.001.into()),
        ("capacity", 1026.into()),
        ("room", 1025.into()),
        ("above", false.into()),
    ] {
        assert_eq!(keyed[name], fact, "{name}");
    }
    // 1080 slots of 13 bits. The curve ends below the rate.
    assert_eq!(
        keyed["parts"],
        serde_json::json!([{"bytes": 1755, "capacity": 1080}])
    );
    let last = keyed["curve"].as_array().unwrap().last().unwrap();
    assert_eq!(last[0], 1026);
    assert!(last[2].as_f64().unwrap() < 0.001, "{last}");

    client.ok("BF.MADD window a b");
    client.ok("BF.ADVANCE window");
    client.ok("BF.ADD window c");
    let window = &json(port, "/filter.json?key=window")["window"];
    assert_eq!(
        (&window["seconds"], window["next"].is_u64()),
        (&40.into(), true)
    );
    let generations = window["generations"].as_array().unwrap();
    let items: Vec<_> = generations.iter().map(|it| &it["items"]).collect();
    assert_eq!(items, [2, 1]);
}

#[test]
fn the_page_asks_for_filters_by_page_and_for_one() {
    let (running, port) = watched(Settings::default());
    let mut client = client(&running);
    for number in 0..300 {
        client.ok(&format!(
            "BF.RESERVE f{number:03} 0.01 {}",
            1000 + 100 * number
        ));
    }
    client.call(&[b"BF.ADD", HOSTILE, b"x"]);
    client.line("SELECT 3");
    client.ok("BF.RESERVE f000 0.01 50000");
    scrape_after_a_walk(port);
    let filters = |query: &str| json(port, &format!("/filters.json?{query}"));
    let column = |value: &Value, name: &str| -> Vec<Value> {
        let rows = value["rows"].as_array().unwrap();
        rows.iter().map(|row| row[name].clone()).collect()
    };
    let all = filters("");
    assert_eq!([&all["filters"], &all["matches"], &all["listed"]], [302; 3]);
    // No more than 200 at a time, whatever is asked for.
    assert_eq!(column(&filters("count=1000"), "name").len(), 200);
    let page = filters("sort=capacity&order=down&from=1&count=2&search=F2");
    assert_eq!(page["matches"], 100);
    assert_eq!(column(&page, "capacity"), [30_800, 30_700]);
    let up = filters("sort=name&search=f29");
    assert_eq!(column(&up, "name")[..2], ["f290", "f291"]);
    assert_eq!(column(&filters("search=no%20such"), "name").len(), 0);
    // A key of any bytes comes percent-encoded, and leads to its filter so.
    let found = filters("search=%5Cxff");
    let row = &found["rows"][0];
    assert_eq!(row["name"], r#"a"} 1\neverbloom_keys{db="\xff\\"#);
    let path = format!("/filter.json?db=0&key={}", row["key"].as_str().unwrap());
    assert_eq!(json(port, &path)["items"], 1);
    let in_3 = json(port, "/filter.json?db=3&key=f000");
    assert_eq!(in_3["capacity"], 50_000);
    assert_eq!(in_3["past"].as_array().unwrap().len(), 1);
    assert_eq!(in_3["window"], Value::Null);
    for nothing in [
        "db=1&key=f000",
        "db=99&key=f000",
        "db=-1&key=x",
        "key=%",
        "db=0",
    ] {
        assert_eq!(json(port, &format!("/filter.json?{nothing}")), Value::Null);
    }
    // What is no number is not the first database.
    client.ok("SELECT 0");
    client.ok("BF.ADD f000 x");
    for (db, there) in [
        ("db=0&", true),
        ("", true),
        ("db=99999999999999999999&", false),
    ] {
        let answer = json(port, &format!("/filter.json?{db}key=f000"));
        assert_eq!(!answer.is_null(), there, "{db}");
    }
    client.ok("SELECT 3");
    // What is no filter has no view.
    client.ok("SET text x");
    assert_eq!(json(port, "/filter.json?db=3&key=text"), Value::Null);
}

#[test]
fn the_page_shows_the_last_minutes() {
    let (running, port) = watched(Settings::default());
    let mut client = client(&running);
    wait_for("a sample with commands", || {
        client.ok("PING");
        let now = json(port, "/now.json");
        let samples = now["samples"].as_array().unwrap().clone();
        let with_commands = samples.iter().find(|sample| sample[1].as_f64() > Some(0.0));
        with_commands.is_some_and(|sample| {
            let times = [&sample[2], &sample[3], &sample[4]].map(|it| it.as_f64().unwrap());
            assert!(times.iter().all(|it| (0.0..1.0).contains(it)), "{now}");
            assert!(sample[6].as_f64() > sample[5].as_f64(), "{now}");
            true
        })
    });
    assert_eq!(json(port, "/now.json")["trouble"], Value::Null);
    running.server().store.health.set_loading(true);
    let trouble = json(port, "/now.json")["trouble"].to_string();
    running.server().store.health.set_loading(false);
    assert!(trouble.starts_with("\"LOADING "), "{trouble}");
}

#[test]
fn the_page_shows_commands_errors_and_the_last_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.data.dir = Some(folder.path().into());
    settings.data.appendonly = true;
    let (running, port) = watched(settings);
    running.wait_until_loaded();
    let mut client = client(&running);
    client.ok("BF.ADD key a");
    client.ok("BF.ADD key b");
    client.line("SET text x");
    client.line("BF.ADD text x");
    let now = json(port, "/now.json");
    let commands = now["commands"].as_array().unwrap();
    let add = commands.iter().find(|it| it["name"] == "bf.add").unwrap();
    assert_eq!([&add["calls"], &add["failed"], &add["rejected"]], [3, 1, 0]);
    assert!(add["seconds"].as_f64() > Some(0.0));
    // Never sent.
    assert!(commands.iter().all(|it| it["name"] != "bf.info"));
    assert_eq!(now["errors"], serde_json::json!({"WRONGTYPE": 1}));
    let unsaved = |now: &Value| now["snapshot"]["unsaved"].as_u64().unwrap();
    assert_eq!(now["snapshot"]["good_at"], Value::Null);
    assert!(unsaved(&now) >= 3);
    client.ok("SAVE");
    let now = json(port, "/now.json");
    assert!(now["snapshot"]["good_at"].is_u64());
    assert_eq!(
        (&now["snapshot"]["failed"], unsaved(&now)),
        (&false.into(), 0)
    );
    assert!(now["snapshot"]["log_bytes"].as_u64() > Some(0));
}
