//! Files of a model hub that speaks Hugging Face's protocol, downloaded with curl.
//!
//! A request for `<endpoint>/<owner>/<repository>/resolve/main/<path>` answers for large files with the
//! headers `X-Linked-Size` and `X-Linked-Etag`, the size and the SHA-256 of the content. So we know
//! what must arrive before it does:
//!
//! 1. ask for the headers alone;
//! 2. download into `<name>.<hash>.part`, going on where an earlier try stopped;
//! 3. check size and hash, and give the file its name.

use crate::catalogue::File;
use crate::digest::sha256_of_file;
use crate::error::FetchError;
use crate::hub_file::HubFile;
use crate::lock::Lock;
use crate::space;
use crate::tool::{self, Ran};
use crate::watch::Watch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Hugging Face answers.
pub const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

const CONNECT_SECONDS: &str = "5";
const HEAD_SECONDS: &str = "20";
/// curl's exit code when it cannot write what it receives.
const CURL_WRITE_ERROR: i32 = 23;

/// The size and hash that a hub announces.
#[derive(Debug, PartialEq, Eq)]
struct Promise {
    bytes: u64,
    sha256: String,
}

/// A server with Hugging Face's protocol.
pub struct Hub {
    endpoint: String,
}

impl Hub {
    /// The hub at this address.
    pub fn new(endpoint: &str) -> Hub {
        Hub {
            endpoint: endpoint.trim_end_matches('/').to_string(),
        }
    }

    /// Downloads the file below `root` and returns its path. A file that exists is not
    /// downloaded again.
    pub fn install(
        &self,
        file: &HubFile,
        root: &Path,
        watch: &dyn Watch,
    ) -> Result<PathBuf, FetchError> {
        let path = file.path_below(&root.join("hub"));
        if path.is_file() {
            return Ok(path);
        }
        let promise = self.ask(file)?;
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(|source| FetchError::io(folder, source))?;
        let _lock = Lock::acquire(&lock_of(&path), &file.to_string(), watch)?;
        // Another process may have brought it while we waited.
        if !path.is_file() {
            self.bring(file, &promise, &path, watch)?;
        }
        Ok(path)
    }

    /// Downloads a file of the catalogue, if the hub announces the same size and hash; `false` if it does not.
    pub(crate) fn bring_exactly(
        &self,
        name: &HubFile,
        file: &File,
        path: &Path,
        watch: &dyn Watch,
    ) -> Result<bool, FetchError> {
        let wanted = Promise {
            bytes: file.bytes,
            sha256: file.sha256.clone(),
        };
        if self.ask(name)? != wanted {
            return Ok(false);
        }
        self.bring(name, &wanted, path, watch)?;
        Ok(true)
    }

    /// What the hub says about the file.
    fn ask(&self, file: &HubFile) -> Result<Promise, FetchError> {
        let mut command = curl();
        command.args([
            "--head",
            "--max-time",
            HEAD_SECONDS,
            &file.url(&self.endpoint),
        ]);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|_| no_curl())?;
        if !output.status.success() {
            return Err(FetchError::HubUnreachable {
                endpoint: self.endpoint.clone(),
                said: tool::reason(&String::from_utf8_lossy(&output.stderr)),
            });
        }
        read_headers(&String::from_utf8_lossy(&output.stdout)).map_err(|why| {
            FetchError::HubRefused {
                endpoint: self.endpoint.clone(),
                file: file.to_string(),
                why,
            }
        })
    }

    /// Downloads the announced file, which gets its name when it is complete and checked.
    fn bring(
        &self,
        file: &HubFile,
        promise: &Promise,
        path: &Path,
        watch: &dyn Watch,
    ) -> Result<(), FetchError> {
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(|source| FetchError::io(folder, source))?;
        let part = part_of(path, promise);
        let needed = || promise.bytes.saturating_sub(size(&part));
        space::require(&file.to_string(), folder, needed())?;
        let mut command = curl();
        command.args(["--fail", "--continue-at", "-", "--output"]);
        command.arg(&part).arg(file.url(&self.endpoint));
        watch.begin(&format!("downloading {file}"), promise.bytes);
        let ran = tool::run(command, &part, watch);
        watch.end();
        let ran = ran?;
        if !ran.status.success() && needed() > 0 {
            return Err(broke_off(file, &part, needed(), &ran));
        }
        accept(file, promise, &part)?;
        fs::rename(&part, path).map_err(|source| FetchError::io(path, source))
    }
}

fn curl() -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--location"]);
    command.args([
        "--proto",
        "=http,https",
        "--connect-timeout",
        CONNECT_SECONDS,
    ]);
    command
}

fn no_curl() -> FetchError {
    FetchError::NoTool {
        program: "curl".to_string(),
    }
}

/// The promise in the headers of an answer and of those it was redirected to, or why there is none.
fn read_headers(text: &str) -> Result<Promise, String> {
    let header = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim().trim_start_matches("W/").trim_matches('"');
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    };
    let is_hash = |text: &&str| text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    let sha256 = header("x-linked-etag").filter(is_hash);
    let bytes = header("x-linked-size").and_then(|text| text.parse().ok());
    if let (Some(sha256), Some(bytes)) = (sha256, bytes) {
        let sha256 = sha256.to_ascii_lowercase();
        return Ok(Promise { bytes, sha256 });
    }
    let statuses = text.lines().filter(|line| line.starts_with("HTTP/"));
    let mut status = statuses.filter_map(|line| line.split_whitespace().nth(1));
    Err(match status.next_back() {
        Some("404") => "there is no such file".to_string(),
        Some("401" | "403") => "there is no such repository, or it wants you to log in; download \
            the file in a browser and give its path"
            .to_string(),
        Some("200") => "it gives no SHA-256 for it, so it cannot be checked; download the file \
            yourself and give its path"
            .to_string(),
        Some(status) => format!("it answers with status {status}; try again later"),
        None => "it does not answer as a hub does".to_string(),
    })
}

/// Where a download grows. The hash is in the name: parts of different files never mix.
fn part_of(path: &Path, promise: &Promise) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hash = promise.sha256.get(..16).unwrap_or(&promise.sha256);
    path.with_file_name(format!("{name}.{hash}.part"))
}

/// What a file of a hub is called, by its part; `None` when it is no part.
pub(crate) fn whole_of(part: &str) -> Option<&str> {
    let (whole, hash) = part.strip_suffix(".part")?.rsplit_once('.')?;
    let is_hash = hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit());
    is_hash.then_some(whole)
}

/// The lock of a file of a hub.
pub(crate) fn lock_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.lock"))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn broke_off(file: &HubFile, part: &Path, needed: u64, ran: &Ran) -> FetchError {
    if ran.status.code() == Some(CURL_WRITE_ERROR) {
        let is_full = space::free(part).is_some_and(|free| free < needed);
        if is_full || ran.met_full_disk() {
            return space::full(&file.to_string(), part.parent().unwrap_or(part), needed);
        }
        let why = "cannot write what arrives: is the disk full?";
        return FetchError::io(part, std::io::Error::other(why));
    }
    FetchError::BrokeOff {
        file: file.to_string(),
        said: ran.reason(),
    }
}

/// Checks what arrived; what is wrong is removed.
fn accept(file: &HubFile, promise: &Promise, part: &Path) -> Result<(), FetchError> {
    let failed = |source| FetchError::io(part, source);
    let found = Promise {
        bytes: size(part),
        sha256: sha256_of_file(part).map_err(failed)?,
    };
    if found == *promise {
        return Ok(());
    }
    fs::remove_file(part).map_err(failed)?;
    let words = |p: &Promise| format!("{} bytes with SHA-256 {}", p.bytes, p.sha256);
    Err(FetchError::Corrupt {
        what: format!("the download of {file}"),
        expected: words(promise),
        found: words(&found),
    })
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
