//! Traces that failed once, shortened. A seed gets other steps when something new is drawn; these stay as they are.

use everbloom_simulation::damage::Damage;
use everbloom_simulation::limits::Limits;
use everbloom_simulation::op::{Asking, Op, ReplyLimit, Shape};
use everbloom_simulation::plan::{End, Fault, Step};
use everbloom_simulation::{Plan, play, report};

/// Plays steps on a server with these settings, whose others are a program's, as are all limits but these.
fn play_with(settings: &[(&'static str, &str)], limits: &[(&str, usize)], steps: &[Step]) {
    let limits = limits.iter();
    let plan = Plan {
        seed: 0,
        settings: settings.iter().map(|it| (it.0, it.1.into())).collect(),
        limits: limits.fold(Limits::default(), |all, it| all.with(it.0, it.1)),
        steps: steps.to_vec(),
    };
    let played = play(&plan);
    let what = played.as_ref().map_err(|failure| failure.what.as_str());
    assert_eq!(what, Ok(&()), "{}", report::trace(&plan));
}

/// The same on a server with a log.
fn check(limits: &[(&str, usize)], steps: &[Step]) {
    play_with(&[("appendonly", "yes")], limits, steps);
}

fn send(ops: &[Op]) -> Step {
    Step::Send(0, ops.to_vec())
}

/// An fsync has failed, a rewrite has begun the next file of the log, and has not ended.
fn rewrite_after_failed_fsync() -> Vec<Step> {
    vec![
        Step::Pass(2202),
        Step::Disk(Fault::SyncsFail),
        send(&[Op::Reserve(
            "c1".into(),
            Shape::Cuckoo {
                capacity: 7970,
                rate: None,
            },
        )]),
        Step::Log,
        Step::Thread(0, 1),
        Step::Disk(Fault::Heals),
        send(&[Op::Other("BGREWRITEAOF")]),
        Step::Thread(1, 14),
        Step::Log,
    ]
}

/// Seed 1345 of November 2026: the start refused a log that was torn in the file before the last.
#[test]
fn a_log_torn_before_an_empty_file_is_read() {
    for power in 0..20 {
        let end = Step::Restart(End::Power(power));
        check(&[], &[rewrite_after_failed_fsync(), vec![end]].concat());
    }
}

/// Only the last file was synced at the start, and what the one before held was lost much later.
#[test]
fn a_start_syncs_every_file_of_the_log() {
    let steps = [
        Step::Restart(End::Kill),
        Step::Pass(5000),
        Step::Restart(End::Power(0)),
    ];
    check(&[], &[rewrite_after_failed_fsync(), steps.into()].concat());
}

/// Seeds 2027 and 2083 of November 2026: a thread finds nothing to copy, and there is something before its reply is read.
#[test]
fn a_copy_of_what_was_missing_for_a_moment() {
    let steps = [
        Step::Send(2, vec![Op::SetBit("s2".into(), 16080, true)]),
        Step::Send(2, vec![Op::Copy("s2".into(), "s1".into())]),
        send(&[Op::Flush("FLUSHALL")]),
        Step::Pass(100),
        Step::Watch(0, "s2".into()),
        Step::Send(1, vec![Op::Flush("FLUSHDB")]),
        Step::Transaction(0, vec![Op::Set("s2".into(), b'y', 5)]),
        Step::Thread(0, 29),
    ];
    check(&[("bytes of work", 15), ("waiting replies", 3)], &steps);
}

/// Seed 3010 of November 2026: what is read by another thread may have expired meanwhile.
#[test]
fn a_range_that_expires_while_it_is_read() {
    let steps = [
        send(&[Op::Set("s0".into(), b'c', 15)]),
        Step::Send(1, vec![Op::GetRange("s0".into(), 5, 40)]),
        send(&[
            Op::PExpire("s0".into(), 1351),
            Op::Append("s0".into(), b'o', 16),
        ]),
        Step::Pass(4285),
        Step::Check,
    ];
    check(&[("bytes of work", 0)], &steps);
}

/// Seed 4234 of November 2026: a generation that expires is a change without a reply.
#[test]
fn a_snapshot_behind_an_expired_generation() {
    let shape = Shape::Window {
        rate: "0.01",
        capacity: 128,
        seconds: 2,
        generations: 4,
    };
    let steps = [
        send(&[
            Op::Reserve("w2".into(), shape),
            Op::Add("w2".into(), 1069, 44),
        ]),
        Step::Pass(9000),
        Step::Expire,
        send(&[Op::Other("BGSAVE")]),
        Step::Thread(0, 17),
        send(&[Op::Add("b1".into(), 926, 16)]),
        Step::Restart(End::Power(2)),
    ];
    play_with(&[("appendonly", "no")], &[], &steps);
}

/// Seeds 12618 and 14840 of November 2026: a generation that expires has no moment, and the clock went back before the crash.
#[test]
fn a_generation_expires_before_the_clock_goes_back() {
    let shape = Shape::Window {
        rate: "0.01",
        capacity: 187,
        seconds: 2,
        generations: 1,
    };
    let steps = [
        send(&[Op::Reserve("w2".into(), shape)]),
        send(&[Op::Add("w2".into(), 1934, 51)]),
        Step::Pass(9000),
        Step::Expire,
        Step::Log,
        Step::Thread(2, 26),
        Step::Disk(Fault::Loses),
        send(&[Op::SetRange("s0".into(), 1000, b'a', 2)]),
        Step::Pass(-365 * 86_400_000),
        Step::Restart(End::Stop),
    ];
    check(&[], &steps);
}

/// An earlier finding, of which only these steps were kept: a key was missing. Between them a rewrite may
/// begin and the log's writer may have its turn.
#[test]
fn a_copy_before_a_failed_fsync() {
    let between = [
        Step::Pass(2202),
        Step::Log,
        Step::Thread(0, 14),
        Step::Attend,
        Step::Thread(0, 14),
        Step::Log,
    ];
    for chosen in 0..1 << between.len() {
        let chosen = (0..between.len()).filter(|at| chosen >> at & 1 == 1);
        let mut steps = vec![
            send(&[Op::Set("s0".into(), b'x', 5)]),
            send(&[Op::Copy("s0".into(), "s1".into())]),
            Step::Disk(Fault::SyncsFail),
        ];
        steps.extend(chosen.map(|at| between[at].clone()));
        steps.extend([
            Step::Disk(Fault::Heals),
            Step::Restart(End::Stop),
            Step::Disk(Fault::Loses),
            Step::Restart(End::Stop),
        ]);
        check(&[], &steps);
    }
}

/// Seed 9000 of November 2026: a rewrite without a log makes one that the next server does not read. That one's
/// snapshot lies beside it then, and a start with a log chooses neither.
#[test]
fn a_rewrite_without_a_log_is_not_read_without_one() {
    let set = |key: &str| send(&[Op::Set(key.into(), b'x', 5)]);
    let job = |name| [send(&[Op::Other(name)]), Step::Thread(0, 1000)];
    let rewritten = [vec![set("s0")], job("BGREWRITEAOF").into(), vec![set("s1")]].concat();
    let switched_on = send(&[Op::Config("appendonly", "yes".into())]);
    let kill = Step::Restart(End::Kill);
    let (with_log, without) = ([switched_on.clone(), kill.clone()], [kill.clone()]);
    let saved = [
        without.clone().into(),
        vec![set("s2")],
        job("BGSAVE").into(),
        with_log.clone().into(),
    ];
    for end in [with_log.to_vec(), without.to_vec(), saved.concat()] {
        let steps = [rewritten.clone(), end].concat();
        play_with(&[("appendonly", "no"), ("save", "")], &[], &steps);
    }
}

/// A window of seconds whose items have come at a time that lies a year ahead.
fn window_a_year_ahead(seconds: u64, generations: u64) -> Vec<Step> {
    let shape = Shape::Window {
        rate: "0.01",
        capacity: 235,
        seconds,
        generations,
    };
    vec![
        send(&[Op::Reserve("w1".into(), shape)]),
        send(&[Op::Add("w1".into(), 1497, 36)]),
        Step::Pass(-YEAR),
    ]
}

const YEAR: i64 = 365 * 86_400_000;

/// Seed 600859 of November 2026: a window that lies ahead of the clock begins again when it is changed, and not before.
#[test]
fn a_window_ahead_of_the_clock_that_nobody_changes_forgets_nothing() {
    let steps = [Step::Pass(-1757), Step::Pass(11_209), Step::Check];
    check(&[], &[window_a_year_ahead(2, 2), steps.into()].concat());
}

/// Seed 607597 of November 2026: BF.ADVANCE lets a window begin again, also when there is no memory for a generation.
#[test]
fn a_window_begins_again_though_no_generation_fits() {
    let full = Op::Config("maxmemory", "1".into());
    let steps = [
        send(&[full, Op::Advance("w1".into(), 2)]),
        Step::Log,
        Step::Pass(58_977),
        Step::Restart(End::Power(2)),
    ];
    let steps = [window_a_year_ahead(1, 4), steps.into()].concat();
    play_with(
        &[("appendonly", "yes"), ("appendfsync", "always")],
        &[],
        &steps,
    );
}

/// Seed 711041 of November 2026: an item was added twice to a cuckoo filter, and the second time was lost before its reply.
#[test]
fn an_item_added_twice_may_be_there_once() {
    let key = || "c1".to_owned();
    for power in 0..20 {
        let steps = [
            send(&[Op::Add(key(), 42, 1)]),
            Step::Log,
            Step::Send(2, vec![Op::Add(key(), 42, 1)]),
            Step::Restart(End::Power(power)),
            send(&[Op::Remove(key(), 42)]),
            Step::Restart(End::Stop),
        ];
        let settings = [("appendonly", "yes"), ("appendfsync", "always")];
        play_with(&settings, &[], &steps);
    }
}

/// Seed 721181 of November 2026: a key gets an expiry after the clock has gone back, while another thread is to read it.
#[test]
fn a_key_that_expires_later_is_read_by_the_clock_there_is() {
    let settings = [("appendonly", "yes"), ("save", "1 1")];
    let steps = [
        send(&[Op::SetRange("s1".into(), 149, b'm', 24)]),
        send(&[Op::Reserve(
            "b1".into(),
            Shape::Cuckoo {
                capacity: 181,
                rate: None,
            },
        )]),
        Step::Restart(End::Stop),
        send(&[Op::Get("s1".into())]),
        Step::Pass(-86_400_000),
        Step::Send(1, vec![Op::PExpire("s1".into(), 8181)]),
        send(&[Op::Add("b0".into(), 16, 1)]),
        Step::Check,
    ];
    play_with(&settings, &[("bytes of work", 7)], &steps);
}

/// Seed 745974 of November 2026: the last fsync of a log failed after it was switched off, and the next log needs none of it.
#[test]
fn the_last_fsync_of_a_log_that_was_switched_off_may_fail() {
    let steps = [
        send(&[Op::Set("s1".into(), b'y', 852)]),
        send(&[Op::Config("appendonly", "no".into())]),
        send(&[Op::Config("appendonly", "yes".into())]),
        Step::Thread(0, 24),
        Step::Disk(Fault::Loses),
        Step::Log,
    ];
    check(&[], &steps);
}

/// Seed 782934 of November 2026: a snapshot ended after the log was switched off, which it did not know. The stop made no
/// other, and the next start read the log, which had less.
#[test]
fn a_snapshot_that_began_with_a_log_does_not_replace_it() {
    let settings = [
        ("appendonly", "yes"),
        ("appendfsync", "no"),
        ("save", "1 1"),
    ];
    let added = |key: &str, first, items| send(&[Op::Add(key.into(), first, items)]);
    let steps = [
        Step::Disk(Fault::Full(2953)),
        added("w1", 522, 194),
        added("b3", 1942, 24),
        Step::Pass(1606),
        Step::Pass(786),
        Step::Disk(Fault::Full(1250)),
        Step::Attend,
        Step::Thread(7, 29),
        send(&[Op::Config("appendonly", "no".into())]),
        Step::Restart(End::Stop),
    ];
    play_with(&settings, &[], &steps);
}

/// The last fsync of a log runs when the log is switched off, as the disk is full, and fails then. The server said for ever
/// that the log cannot be written.
#[test]
fn an_fsync_that_outlives_its_log_is_forgotten() {
    let set = |key: &str| send(&[Op::Set(key.into(), b'x', 400)]);
    let steps = [
        set("s1"),
        Step::Pass(2000),
        Step::Log,
        Step::Disk(Fault::Full(0)),
        set("s2"),
        Step::Log,
        send(&[Op::Config("appendonly", "no".into())]),
        Step::Log,
        Step::Disk(Fault::SyncsFail),
        Step::Thread(0, 29),
        Step::Log,
        Step::Mend,
    ];
    check(&[], &steps);
}

/// Seed 847583 of November 2026: a thread finds that its key has expired, and there is another before its reply is read.
#[test]
fn a_copy_of_what_had_expired_for_a_moment() {
    let settings = [("appendonly", "yes"), ("save", "1 1")];
    let copy = |from: &str, to: &str| vec![Op::Copy(from.into(), to.into())];
    let steps = [
        Step::Send(2, vec![Op::Add("c0".into(), 5, 1)]),
        Step::Send(2, vec![Op::Add("c1".into(), 35, 1)]),
        send(&[Op::Config("appendonly", "no".into())]),
        Step::Log,
        Step::Restart(End::Power(0)),
        Step::Send(2, vec![Op::PExpire("c0".into(), 9509)]),
        Step::Send(1, copy("c0", "c1")),
        send(&copy("c1", "c0")),
        Step::Mend,
    ];
    play_with(&settings, &[("bytes of work", 7)], &steps);
}

/// A log that waits for a slow disk refuses writes, and INFO said that all was well.
#[test]
fn a_log_that_waits_for_the_disk_is_told() {
    let set = |key: &str| send(&[Op::Set(key.into(), b'x', 5)]);
    let steps = [
        set("s0"),
        Step::Attend,
        Step::Attend,
        set("s1"),
        Step::Log,
        Step::Attend,
        set("s2"),
        Step::Log,
        Step::Check,
    ];
    let settings = [("appendonly", "yes"), ("appendfsync", "always")];
    play_with(&settings, &[("log that may wait", 0)], &steps);
}

/// A log is switched off before the rewrite that begins it has run, once for good and once not.
#[test]
fn a_log_switched_off_before_it_begins() {
    let turn = |to: &str| send(&[Op::Config("appendonly", to.into())]);
    let set = || send(&[Op::Set("s0".into(), b'x', 5)]);
    for again in [vec![], vec![turn("yes")]] {
        let begun = vec![set(), turn("yes"), Step::Thread(0, 3), turn("no")];
        let ended = vec![Step::Log, Step::Thread(0, 29), Step::Log, Step::Mend, set()];
        let restart = vec![Step::Restart(End::Stop)];
        let steps = [begun, again, ended, restart].concat();
        play_with(&[("appendonly", "no"), ("save", "1 1")], &[], &steps);
    }
}

/// A rewrite that was to run without a log runs once one is wanted, and begins it.
#[test]
fn a_rewrite_that_waits_until_a_log_is_wanted() {
    let steps = [
        send(&[Op::Set("s0".into(), b'x', 5)]),
        send(&[Op::Other("BGREWRITEAOF")]),
        send(&[Op::Config("appendonly", "yes".into())]),
        Step::Log,
        Step::Thread(0, 29),
        Step::Log,
        Step::Thread(0, 1000),
        Step::Mend,
        Step::Restart(End::Power(0)),
    ];
    play_with(&[("appendonly", "no"), ("save", "1 1")], &[], &steps);
}

/// Seed 2000010 of November 2026: the last snapshot had its name, but not on the disk. What a start reads
/// counts as saved, and was gone with the power.
#[test]
fn a_snapshot_whose_name_was_not_on_the_disk() {
    let steps = [
        Step::Disk(Fault::DirSyncFails),
        send(&[Op::Set("s0".into(), b'x', 5)]),
        Step::Restart(End::Stop),
        Step::Restart(End::Power(0)),
    ];
    play_with(&[("appendonly", "no"), ("save", "60 5")], &[], &steps);
}

/// A window whose header says that it has dropped 2^62 bytes was taken, and could not be loaded once it dropped more.
#[test]
fn a_window_that_has_dropped_as_much_as_it_may_drops_more() {
    let shape = Shape::Window {
        rate: "0.001",
        capacity: 296,
        seconds: 2,
        generations: 5,
    };
    let forged = Op::Forge("w0".into(), "f0".into(), vec![(4, 4)]);
    let steps = [
        send(&[Op::Reserve("w0".into(), shape)]),
        send(&[Op::Add("w0".into(), 1859, 1)]),
        send(&[forged]),
        send(&[Op::Advance("f0".into(), 70)]),
        Step::Restart(End::Stop),
    ];
    check(&[], &steps);
}

/// A transaction and another command, and damage to the files behind them.
fn damaged(damage: Damage) -> Vec<Step> {
    let set = |key: &str, len| Op::Set(key.into(), b'x', len);
    vec![
        Step::Transaction(0, vec![set("s0", 5), set("s1", 20)]),
        send(&[set("s2", 7)]),
        Step::Log,
        Step::Damage(damage),
        Step::Check,
    ]
}

/// A base of no bytes was read as an empty database.
#[test]
fn a_log_without_the_bytes_of_its_base_is_refused() {
    let emptied = (0..2).map(Damage::Emptied);
    for damage in emptied.chain((0..3).map(Damage::Removed)) {
        check(&[], &damaged(damage));
    }
}

/// A flipped bit in EXEC made the start cut off every command behind it.
#[test]
fn a_flipped_bit_in_a_transaction_cuts_nothing_off() {
    for byte in 0..28 {
        let steps = (0..8).map(|bit| damaged(Damage::Flipped(0, byte, bit)));
        check(&[], &steps.flatten().collect::<Vec<Step>>());
    }
}

/// Zeros at the end are what a loss of power leaves; before a whole command they are damage.
#[test]
fn zeros_at_the_end_are_cut_off() {
    for within in 0..40 {
        let zeros = [0, 1, 4096].map(|behind| Damage::ZerosAtEnd(within, behind));
        let all = zeros.into_iter().chain([Damage::Hole(0, within)]);
        check(&[], &all.flat_map(damaged).collect::<Vec<Step>>());
    }
}

/// The start did not come up, and each try left a file.
#[test]
fn a_torn_log_on_a_full_disk_leaves_no_file() {
    let torn = (0..40).map(|bytes| damaged(Damage::TornOnFullDisk(bytes)));
    check(&[], &torn.flatten().collect::<Vec<Step>>());
}

/// What was written to a file that had been removed was acknowledged, and gone with the process.
#[test]
fn a_file_of_the_log_that_is_removed_is_missed() {
    for number in 0..3 {
        let set = |key: &str| send(&[Op::Set(key.into(), b'x', 5)]);
        let steps = [
            set("s0"),
            Step::Log,
            Step::Remove(number),
            set("s1"),
            Step::Pass(2500),
            Step::Log,
            Step::Restart(End::Kill),
        ];
        check(&[], &steps);
    }
}

/// What is done to mend a server saves a snapshot, too. It does not count for the next save point.
#[test]
fn a_save_point_counts_from_the_snapshot_of_mending() {
    let set = |key: &str| Op::Set(key.into(), b'x', 5);
    let steps = [
        send(&[set("s0")]),
        Step::Log,
        Step::Remove(1),
        Step::Pass(50_000),
        send(&[Op::Config("appendonly", "yes".into())]),
        send(&["s1", "s2", "s3", "s4", "s5", "s6"].map(set)),
        Step::Attend,
    ];
    play_with(&[("appendonly", "yes"), ("save", "60 5")], &[], &steps);
}

/// A snapshot that failed refused all writes, though a log had them, and without a log it was not tried again.
#[test]
fn a_failed_snapshot_is_tried_again_or_refuses_nothing() {
    for appendonly in ["yes", "no"] {
        let steps = [
            send(&[Op::Set("s0".into(), b'x', 5)]),
            Step::Log,
            Step::Disk(Fault::Full(0)),
            send(&[Op::Other("SAVE")]),
            Step::Disk(Fault::Heals),
            Step::Pass(8000),
            Step::Attend,
            Step::Thread(0, 1000),
            send(&[Op::Set("s0".into(), b'y', 5)]),
        ];
        play_with(&[("appendonly", appendonly), ("save", "60 5")], &[], &steps);
    }
}

/// The disk hangs in an fsync, and again in a write, while clients read and write.
fn hanging_disk(fsync: &str) -> Vec<Step> {
    vec![
        send(&[Op::Config("appendfsync", fsync.into())]),
        Step::Log,
        Step::Pass(1100),
        send(&[Op::Set("s0".into(), b'a', 5)]),
        Step::Disk(Fault::Hangs),
        Step::Log,
        Step::Attend,
        Step::Send(1, vec![Op::Get("s0".into())]),
        Step::Send(2, vec![Op::Set("s1".into(), b'b', 5)]),
        Step::Pass(90_000),
        Step::Attend,
        Step::Log,
    ]
}

#[test]
fn a_disk_that_hangs_goes_on_or_the_server_ends() {
    let ends = [
        Step::Disk(Fault::Heals),
        Step::Restart(End::Stop),
        Step::Restart(End::Kill),
        Step::Restart(End::Power(0)),
        Step::Mend,
    ];
    for fsync in ["always", "everysec", "no"] {
        for end in &ends {
            let last = [end.clone(), Step::Log, Step::Attend, Step::Check];
            check(&[], &[hanging_disk(fsync), last.into()].concat());
        }
    }
}

#[test]
fn only_save_waits_for_a_disk_that_hangs() {
    let steps = [
        Step::Disk(Fault::Hangs),
        Step::Send(1, vec![Op::Other("SAVE")]),
        Step::Pass(5000),
        send(&[Op::Set("s0".into(), b'a', 5)]),
        Step::Check,
        Step::Disk(Fault::Heals),
        Step::Check,
    ];
    check(&[], &steps);
}

#[test]
fn a_reply_over_a_limit_is_refused_before_it_is_made() {
    let all = [
        Asking::Get,
        Asking::MGet,
        Asking::Pipeline,
        Asking::ExecOfGets,
        Asking::ExecOfMGets,
    ];
    let key = "s0".to_owned();
    let mut steps = vec![send(&[Op::Set(key.clone(), b'r', 100_000)])];
    for how in all {
        for limit in [
            ReplyLimit::Output(90_000),
            ReplyLimit::Output(1_000_000),
            ReplyLimit::Clients(1_000_000),
            ReplyLimit::Memory,
        ] {
            let ask = |percent| send(&[Op::ReadMany(key.clone(), how, limit, percent)]);
            steps.extend([90, 100, 120, 1000].map(ask));
        }
    }
    check(&[], &steps);
}

/// Seed 81 of November 2026: the server says that the manifest was removed, and a rewrite puts it back meanwhile.
#[test]
fn a_removed_manifest_that_a_rewrite_writes_again() {
    let steps = [
        Step::Send(1, vec![Op::Other("BGREWRITEAOF")]),
        Step::Send(1, vec![Op::Add("b3".into(), 890, 12)]),
        Step::Thread(0, 2),
        Step::Remove(2),
        Step::Pass(5765),
    ];
    check(&[], &steps);
}

/// The second thread has admitted EXEC, and the first one changes the watched key.
#[test]
fn a_watched_key_changes_before_exec_locks_it() {
    let key = "s0".to_owned();
    let append = |byte| Op::Append(key.clone(), byte, 3);
    // MULTI and what is queued lock nothing; each is a turn.
    for turns in 0..4 {
        let pause = vec![Step::Thread(0, 1); turns];
        let steps = [
            vec![
                Step::Watch(0, key.clone()),
                Step::Second(0, vec![append(b'a')], true),
            ],
            pause,
            vec![
                Step::Send(1, vec![append(b'b')]),
                Step::Thread(0, 1),
                Step::Check,
            ],
        ];
        check(&[], &steps.concat());
    }
}

/// Seed 3104 of November 2026: a window counts from 0 again what it has dropped.
#[test]
fn a_window_that_has_dropped_as_much_as_it_may_makes_a_large_generation() {
    let shape = Shape::Window {
        rate: "0.01",
        capacity: 1_065_770,
        seconds: 60,
        generations: 2,
    };
    let forge = Op::Forge("w0".into(), "f0".into(), vec![(4, 562), (994, 665)]);
    let steps = [
        send(&[Op::Reserve("w0".into(), shape)]),
        send(&[Op::Add("w0".into(), 8, 9)]),
        send(&[forge]),
        send(&[Op::Advance("f0".into(), 70)]),
    ];
    check(&[], &steps);
}
