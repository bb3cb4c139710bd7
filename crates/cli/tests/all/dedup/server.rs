//! A server as the memory of many runs.

use super::*;

#[test]
fn a_server_is_one_memory_for_many() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let args = ["--url", &url, "--key", "seen", "-e", "1e-9"];
    let text = lines(6, 60_000, 30_000);
    let expected: HashSet<String> = text.lines().map(str::to_owned).collect();
    // Two machines share the lines between them, and print each of them once together.
    let other = text.clone();
    let outcomes = thread::scope(|scope| {
        let one = scope.spawn(|| with_input(&args, text));
        let two = scope.spawn(|| with_input(&args, other));
        [one.join().unwrap().success(), two.join().unwrap().success()]
    });
    let printed: Vec<_> = outcomes.iter().flat_map(|out| out.lines()).collect();
    assert_eq!(printed.len(), expected.len());
    assert!(printed.into_iter().all(|line| expected.contains(line)));

    let rest = with_input(&[&args[..], &["--repeated"]].concat(), "x\nx\n");
    assert_eq!(rest.success(), "x\n");
    // However the server is named, it is the same.
    let port = server.port.to_string();
    for named in [&[&*url][..], &["-h", "127.0.0.1", "-p", &port]] {
        let again = with_input(&[&["--key", "seen"], named].concat(), "x\nx\n");
        assert_eq!(again.success(), "", "{named:?}");
    }
    server.query(&["SET", "text", "a"]).success();
    let wrong = with_input(&["--url", &url, "--key", "text"], "a\nb\n");
    refused(&wrong, &["WRONGTYPE"]);
    let nobody = with_input(&["--url", "redis://127.0.0.1:1", "--key", "k"], "a\n");
    refused(&nobody, &["cannot connect"]);
}

#[test]
fn records_without_an_answer_are_printed() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let mut running = Running::start(&["--url", &url, "--key", "seen"]);
    running.write("a\nb\n");
    assert_eq!(
        (running.line(), running.line()),
        ("a\n".into(), "b\n".into())
    );
    drop(server);
    running.write("c\nd\n");
    assert_eq!(
        (running.line(), running.line()),
        ("c\n".into(), "d\n".into())
    );
    let outcome = running.child.wait_with_output().unwrap();
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{message}");
    assert!(message.contains("no answer for 2 records"), "{message}");
    let advice = "prints those of them that are not remembered again, and goes on behind record 4";
    assert!(message.contains(advice), "{message}");
}

/// BF.MADD would make it again, for 100 items at 1 %, and lose one record in a hundred.
#[test]
fn a_filter_that_is_gone_ends_the_run() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let args = ["--url", &url, "--key", "seen", "-e", "1e-9"];
    let mut running = Running::start(&args);
    running.write("a\n");
    assert_eq!(running.line(), "a\n");
    server.query(&["DEL", "seen"]).success();
    running.write("b\n");
    assert_eq!(running.line(), "b\n");
    drop(running.input);
    let outcome = running.child.wait_with_output().unwrap();
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{message}");
    let gone = "there is no such key any more: \"seen\"";
    assert!(message.contains(gone), "{message}");
    let advice = "which were printed; nothing is remembered any more: a further run with the same";
    assert!(message.contains(advice), "{message}");
    assert_eq!(server.query(&["EXISTS", "seen"]).success(), "(integer) 0\n");
    // The next run makes it with its own error rate.
    assert_eq!(with_input(&args, "b\n").success(), "b\n");
    let info = server.query(&["BF.INFO", "seen"]).success();
    assert!(info.contains("1000000"), "{info}");
}

/// Waiting for a run that holds the lock is not needed: the lock ends with the process.
#[test]
fn two_runs_at_once_are_not_mixed() {
    let folder = folder("dedup-lock");
    let state: PathBuf = folder.join("seen.bloom");
    let state = state.to_str().unwrap();
    let mut running = Running::start(&["--state", state]);
    wait_for("the state", || Path::new(state).exists());
    running.write("a\n");
    assert_eq!(running.line(), "a\n");
    refused(&with_input(&["--state", state], "a\n"), &["in use"]);
    drop(running.input.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(with_input(&["--state", state], "a\n").success(), "");
}

/// A state whose only record, `a`, was printed so many days ago.
fn month_old(days: u64) -> String {
    const DAY: u64 = 86_400_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began = u64::try_from(now.as_millis()).unwrap() - days * DAY;
    let builder = WindowedBloomFilter::builder()
        .capacity(1000)
        .error_rate(1e-6);
    let builder = builder.span(Span::Ticks(30 * DAY)).starts_at(began);
    let mut filter = builder.build().unwrap();
    filter.insert_at("a", began);
    let path = folder(&format!("dedup-window-{days}")).join("month.bloom");
    fs::write(&path, filter.to_bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_window_forgets_what_was_printed_before_it() {
    // A generation of seven and a half days is dropped when four have begun since.
    for (days, printed) in [(29, ""), (38, "a\n")] {
        let state = month_old(days);
        let args = ["-q", "--window", "30d", "--state", &state];
        assert_eq!(with_input(&args, "a\n").success(), printed, "{days}");
        // Later runs know the window, and a repeat does not make the record younger.
        let later = ["-q", "--state", &state];
        assert_eq!(with_input(&later, "a\nb\n").success(), "b\n");
        assert_eq!(with_input(&later, "b\na\n").success(), "");
        let filter = LayeredFilter::from_bytes(&fs::read(&state).unwrap()).unwrap();
        let newest = filter.window().unwrap().kept.last().copied();
        let layers = usize::try_from(newest.unwrap().layers).unwrap();
        let layers = filter.layers().iter().rev().take(layers);
        let renewed: u64 = layers.map(Layer::len).sum();
        assert_eq!(renewed, if printed.is_empty() { 1 } else { 2 });
    }
}

#[test]
fn a_window_is_made_once_and_others_are_refused() {
    let state = folder("dedup-window-new").join("month.bloom");
    let state = state.to_str().unwrap();
    let _ = fs::remove_file(state);
    let first = ["-q", "--window", "30d", "-c", "500", "--state", state];
    assert_eq!(with_input(&first, "a\nb\na\n").success(), "a\nb\n");
    assert_eq!(with_input(&first, "b\nc\n").success(), "c\n");
    let other = with_input(&["--window", "7d", "--state", state], "a\n");
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    let words = "has a window of 30 days, not one of 7 days";
    assert!(other.stderr.contains(words), "{other:?}");
    fs::remove_file(state).unwrap();
    with_input(&["-q", "--state", state], "a\n").success();
    let none = with_input(&["--window", "7d", "--state", state], "a\n");
    assert!(none.stderr.contains("has no window of time"), "{none:?}");
}
