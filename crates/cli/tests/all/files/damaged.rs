//! Files that are no whole filter.

use std::fs;

use super::{everbloom, folder_with, refused};

#[test]
fn damaged_files_are_named() {
    let folder = folder_with("files-damaged", &[("in", b"a\n"), ("empty.bloom", b"")]);
    for args in [
        &["build", "f.bloom", "in"][..],
        &["build", "-g", "g.bloom", "in"],
    ] {
        everbloom(&folder, args).success();
        let path = folder.join(args[args.len() - 2]);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let mut header = whole.clone();
        header[20] ^= 1;
        for bytes in [
            &flipped,
            &header,
            &whole[..whole.len() - 1],
            &whole[..70],
            &whole[..9],
        ] {
            fs::write(&path, bytes).unwrap();
            for subcommand in ["info", "check"] {
                let outcome = everbloom(&folder, &[subcommand, args[args.len() - 2]]);
                refused(&outcome, &[args[args.len() - 2]]);
                assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
            }
        }
        fs::write(&path, &flipped).unwrap();
        refused(
            &everbloom(&folder, &["info", args[args.len() - 2]]),
            &["is damaged", "checksum"],
        );
        // A damaged filter may be built again.
        everbloom(&folder, args).success();
    }
    refused(
        &everbloom(&folder, &["check", "empty.bloom"]),
        &["is empty"],
    );
    refused(
        &everbloom(&folder, &["check", "in"]),
        &["in is not a filter file"],
    );
    refused(&everbloom(&folder, &["info", "missing"]), &["missing"]);
    refused(&everbloom(&folder, &["info", "."]), &["is a folder"]);
}
