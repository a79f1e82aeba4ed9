//! A program that is killed while it saves a session: what stands under the name is always whole, and nothing is left
//! behind after the next saving.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::TINY;
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{Model, Session, SessionOptions};

/// Tells the child which files it works with: the model, and the session.
const FILES: &str = "AKUNU_TEST_KILLED_SAVES";
const N_KILLS: u64 = 200;

fn open(model: &Path) -> Session {
    let options = CpuOptions {
        threads: Some(1),
        ..Default::default()
    };
    let device = CpuDevice::new(options).expect("a CPU");
    let model = Model::load(model, Box::new(device)).expect("a whole model");
    let options = SessionOptions {
        context: Some(250),
        chunk: 64,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| i * 11 % 256).collect()
}

/// The child: saves sessions of two lengths in turn until it is killed. Without its files it does nothing.
#[test]
fn child_that_saves() {
    let Ok(files) = std::env::var(FILES) else {
        return;
    };
    let (model, path) = files.split_once('\n').expect("two files");
    let mut session = open(Path::new(model));
    loop {
        for n in [240, 30] {
            session.feed(&prompt(n)).expect("fits");
            session.save(path).expect("disk");
        }
    }
}

fn spawn(model: &Path, path: &Path) -> Child {
    let this = std::env::current_exe().expect("a test program");
    Command::new(this)
        .args(["--exact", "killed_saves::child_that_saves"])
        .env(FILES, format!("{}\n{}", model.display(), path.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process")
}

/// Waits until the child has saved something new, so that it is killed while it saves and not while it begins.
fn wait_for_a_saving(path: &Path, before: Option<std::time::SystemTime>) {
    for _ in 0..20_000 {
        if modified(path) != before {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("the child saves nothing");
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}

#[test]
fn a_killed_program_leaves_a_whole_file() {
    let model = TINY.write();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path: PathBuf = folder.path().join("chat.session");
    let mut session = open(&model.path);
    for round in 0..N_KILLS {
        let before = modified(&path);
        let mut child = spawn(&model.path, &path);
        wait_for_a_saving(&path, before);
        // Moments all over a saving, which takes some milliseconds.
        std::thread::sleep(Duration::from_micros(round * 7919 % 9000));
        child.kill().expect("it is running");
        child.wait().expect("it was ours");
        // Whether or not this kill has left one: a part of a file whose program is gone.
        let name = format!(".chat.session.{round:032x}.{}.akunu-part", child.id());
        std::fs::write(folder.path().join(name), b"half").expect("disk");
        session.restore(&path).expect("the file is whole");
        let n = session.tokens().len();
        assert!(n == 240 || n == 30, "{n} tokens");
        assert_eq!(session.tokens(), prompt(n as u32));
        session.save(&path).expect("disk");
        assert_eq!(
            files_in(folder.path()),
            1,
            "round {round}: something is left"
        );
    }
}

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}
