//! Tests of the hub against a server of our own on this machine.

use super::*;
use crate::ModelName;
use crate::digest::sha256;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Hears nothing.
struct Deaf;

impl Watch for Deaf {
    fn begin(&self, _what: &str, _bytes: u64) {}
    fn at(&self, _bytes: u64) {}
    fn end(&self) {}
}

/// The one file that the server has, and how it treats those who ask for it.
#[derive(Clone)]
struct Manners {
    /// `owner/repository/resolve/main/file`.
    path: &'static str,
    content: Vec<u8>,
    /// The hash it promises.
    promised: String,
    /// Closes the connection after this many bytes, the first time.
    drops_after: Option<usize>,
}

/// Serves on a free port until the test ends; returns the hub.
fn serve(mut manners: Manners) -> Hub {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &mut manners);
        }
    });
    Hub::new(&endpoint)
}

fn answer(mut stream: TcpStream, manners: &mut Manners) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    let headers: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    if !request.contains(&format!(" /{} ", manners.path)) {
        let _ = write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        );
        return;
    }
    let range = headers.iter().find_map(|line| {
        let line = line.to_ascii_lowercase();
        let first = line.strip_prefix("range: bytes=")?.strip_suffix('-')?;
        first.parse::<usize>().ok()
    });
    let (all, first) = (manners.content.len(), range.unwrap_or(0));
    let status = match range {
        Some(_) => format!(
            "206 Partial Content\r\nContent-Range: bytes {first}-{}/{all}",
            all - 1
        ),
        None => "200 OK".to_string(),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Linked-Size: {all}\r\n\
         X-Linked-ETag: \"{}\"\r\nConnection: close\r\n\r\n",
        all - first,
        manners.promised,
    );
    if request.starts_with("GET") {
        let end = manners.drops_after.take().unwrap_or(all);
        let _ = stream.write_all(&manners.content[first..end]);
    }
}

fn manners(content: &[u8]) -> Manners {
    Manners {
        path: "me/tiny/resolve/main/model.gguf",
        content: content.to_vec(),
        promised: sha256(content),
        drops_after: None,
    }
}

fn model() -> HubFile {
    "hf:me/tiny/model.gguf".parse().expect("a good name")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn names_that_are_no_files_of_a_hub_are_refused() {
    assert_eq!(model().to_string(), "hf:me/tiny/model.gguf");
    assert!("hf:a/b/deep/c.gguf".parse::<HubFile>().is_ok());
    for bad in [
        "a/b/c",
        "hf:a/b",
        "hf:a//c",
        "hf:a/../c",
        "hf:a/b/.hidden",
        "hf:a/b/c?d=e",
        "hf:a/b/c d",
    ] {
        let refused = bad.parse::<HubFile>().expect_err("no file of a hub");
        assert!(refused.to_string().contains(bad), "{refused}");
    }
}

#[test]
fn a_file_is_brought_checked_and_kept() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let hub = serve(manners(b"hello world"));
    let path = hub
        .install(&model(), root.path(), &Deaf)
        .expect("it is there");
    assert_eq!(fs::read(&path).expect("a file"), b"hello world");
    assert_eq!(names_in(path.parent().expect("a folder")), ["model.gguf"]);
    let nowhere = Hub::new("http://127.0.0.1:1");
    let again = nowhere.install(&model(), root.path(), &Deaf);
    assert_eq!(again.expect("kept: nobody is asked"), path);
}

/// Fails if a short name leads to another file, or fetches again what came under the long one.
#[test]
fn a_model_of_the_catalogue_that_only_a_hub_has_is_brought_from_there() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let hub = serve(Manners {
        path: "Qwen/Qwen3-4B-GGUF/resolve/main/Qwen3-4B-Q4_K_M.gguf",
        ..manners(b"hello world")
    });
    let name: ModelName = "qwen3-4b".parse().expect("in the catalogue");
    let path = name.install(root.path(), hub, &Deaf).expect("it is there");
    assert_eq!(fs::read(&path).expect("a file"), b"hello world");
    let long: ModelName = "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf"
        .parse()
        .expect("a good name");
    let nowhere = || Hub::new("http://127.0.0.1:1");
    let again = long.install(root.path(), nowhere(), &Deaf);
    assert_eq!(again.expect("kept: nobody is asked"), path);
    fs::remove_file(&path).expect("a file");
    let offline = name.install(root.path(), nowhere(), &Deaf);
    let offline = offline.expect_err("nobody listens").to_string();
    assert!(offline.contains("give its path"), "{offline}");
}

/// Fails if a half file gets the name of a whole one, or if the second try starts from the beginning.
#[test]
fn a_dropped_connection_is_told_and_the_next_try_goes_on() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let hub = serve(Manners {
        drops_after: Some(5),
        ..manners(b"hello world")
    });
    let broken = hub.install(&model(), root.path(), &Deaf).expect_err("cut");
    assert!(broken.to_string().contains("broke off"), "{broken}");
    let folder = root.path().join("hub/me/tiny");
    let names = names_in(&folder);
    assert!(names.len() == 1 && names[0].ends_with(".part"), "{names:?}");
    let part = folder.join(&names[0]);
    assert_eq!(fs::read(&part).expect("a part"), b"hello");
    // Were it not for the range, this byte would be overwritten, and the hash right.
    fs::write(&part, b"jello").expect("written");
    let wrong = hub.install(&model(), root.path(), &Deaf).expect_err("j");
    assert!(wrong.to_string().contains("corrupted"), "{wrong}");
    let path = hub.install(&model(), root.path(), &Deaf).expect("whole");
    assert_eq!(fs::read(path).expect("a file"), b"hello world");
}

#[test]
fn other_bytes_than_promised_are_removed() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let hub = serve(Manners {
        promised: sha256(b"something else"),
        ..manners(b"hello world")
    });
    let wrong = hub.install(&model(), root.path(), &Deaf).expect_err("hash");
    assert!(wrong.to_string().contains("corrupted"), "{wrong}");
    assert!(names_in(&root.path().join("hub/me/tiny")).is_empty());
}

/// The catalogue's hash decides, not the hub's: another file under the right name is not even loaded.
#[test]
fn a_file_of_the_catalogue_must_be_the_very_same() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = root.path().join("model.gguf");
    let hub = serve(manners(b"hello world"));
    let mut file = File {
        path: "model.gguf".into(),
        members: Vec::new(),
        bytes: 11,
        sha256: sha256(b"hello_world"),
        hub: None,
    };
    let brought = hub.bring_exactly(&model(), &file, &path, &Deaf);
    assert!(!brought.expect("the hub answers"));
    assert!(names_in(root.path()).is_empty());
    file.sha256 = sha256(b"hello world");
    let brought = hub.bring_exactly(&model(), &file, &path, &Deaf);
    assert!(brought.expect("the hub answers") && path.exists());
}

#[test]
fn what_the_hub_lacks_and_a_missing_hub_are_told_apart() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let other: HubFile = "hf:me/tiny/other.gguf".parse().expect("a good name");
    let lacks = serve(manners(b"x")).install(&other, root.path(), &Deaf);
    let lacks = lacks.expect_err("404").to_string();
    assert!(lacks.contains("no such file"), "{lacks}");
    let gone = Hub::new("http://127.0.0.1:1").install(&model(), root.path(), &Deaf);
    let gone = gone.expect_err("nobody listens").to_string();
    assert!(gone.contains("cannot be reached"), "{gone}");
    let forbidden = read_headers("HTTP/2 401\r\n\r\n").expect_err("no promise");
    assert!(forbidden.contains("log in"), "{forbidden}");
    let unhashed = read_headers("HTTP/2 200\r\netag: \"abc\"\r\n\r\n").expect_err("no hash");
    assert!(unhashed.contains("SHA-256"), "{unhashed}");
}
