//! A cache that outlives the process: pages and states in a folder.
//!
//! A file holds one page of one kind of layers, or one state, under the name that it has in its pool: a hash of all tokens up to
//! its end. It is found again after a restart, or when the model is opened again after another one.
//!
//! ```text
//! FOLDER / 1-FINGERPRINT-FORMAT / NAME.0   pages of the first kind of layers
//!                                 NAME.s   a state
//! ```
//!
//! Files are written by a thread of their own ([`writer`]) and replaced as a whole, so that several programs may share a folder
//! and any of them may be killed. Whatever is wrong with the folder is told once, in a sentence, and the answer goes on without.

mod entry;
mod evict;
mod options;
mod writer;

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use akunu_types::KvFormat;

use crate::pool::Name;
use crate::replace_file::remove_leftovers;
pub(crate) use entry::Part;
use entry::{Content, Identity, VERSION};
pub use options::CacheOptions;
use writer::{Shared, Writer};

/// The files of one model.
pub(crate) struct Cache {
    identity: Identity,
    /// The model's own folder.
    folder: PathBuf,
    /// Parts that are known to be in the folder, or on their way.
    known: HashSet<Part>,
    /// Parts whose files cannot be used.
    refused: HashSet<Part>,
    /// Parts that could not be read although they were known.
    pub n_lost: u64,
    shared: Arc<Shared>,
    writer: Writer,
}

impl Cache {
    /// The cache of a model with this fingerprint, whose keys and values have this format.
    pub fn open(options: &CacheOptions, fingerprint: [u8; 32], kv: KvFormat) -> Cache {
        let identity = Identity { fingerprint, kv };
        let shared = Arc::new(Shared::new(options));
        Cache {
            folder: folder_of(&identity, &shared),
            identity,
            known: HashSet::new(),
            refused: HashSet::new(),
            n_lost: 0,
            writer: Writer::start(Arc::clone(&shared)),
            shared,
        }
    }

    /// From now on keys turn by the factors for long sessions, and those of short ones cannot be used.
    pub fn turn_long(&mut self) {
        self.identity.fingerprint[0] ^= 1;
        self.folder = folder_of(&self.identity, &self.shared);
        self.known.clear();
        self.refused.clear();
    }

    /// Whether the folder has a part.
    pub fn has(&mut self, part: Part) -> bool {
        let is_there = !self.refused.contains(&part)
            && (self.known.contains(&part) || self.path(part).is_file());
        if is_there {
            self.known.insert(part);
        }
        is_there
    }

    /// The bytes of a part, which are as many as `len`; `None` if there are none that can be used.
    pub fn read(&mut self, part: Part, len: usize) -> Option<Vec<u8>> {
        let path = self.path(part);
        match self.identity.read(&path, part, len) {
            Content::Whole(bytes) => {
                // What is used stays longest. A folder may be read-only.
                let file = File::options().append(true).open(&path);
                let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
                return Some(bytes);
            }
            // Another program has made room.
            Content::Missing => {}
            Content::Unusable(why) => {
                self.shared
                    .tell(format!("{}: {why}; it is not used", path.display()));
                self.refused.insert(part);
                let _ = fs::remove_file(&path);
            }
        }
        self.known.remove(&part);
        self.n_lost += 1;
        None
    }

    /// Whether nothing more is written.
    pub fn is_off(&self) -> bool {
        self.writer.is_off()
    }

    /// Whether another part can be given to the writer now.
    pub fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    /// Has a part written in the background.
    pub fn write(&mut self, part: Part, bytes: Vec<u8>) {
        self.refused.remove(&part);
        self.known.insert(part);
        let file = self.identity.file(part, &bytes);
        self.writer.send(self.path(part), file);
    }

    /// Waits until all that was given to the writer is written.
    pub fn finish(&mut self) {
        self.writer.finish();
    }

    /// A sentence about the first thing that went wrong since the last call.
    pub fn take_fault(&self) -> Option<String> {
        self.shared.take()
    }

    fn path(&self, part: Part) -> PathBuf {
        self.folder.join(part.file_name())
    }
}

impl Part {
    fn file_name(self) -> String {
        let name = hex(self.name());
        match self {
            Part::Page(kind, _) => format!("{name}.{kind}"),
            Part::State(_) => format!("{name}.s"),
        }
    }

    fn name(&self) -> &Name {
        match self {
            Part::Page(_, name) | Part::State(name) => name,
        }
    }
}

/// The folder of a model, which is made if it is not there.
fn folder_of(identity: &Identity, shared: &Shared) -> PathBuf {
    let short = hex(&identity.fingerprint[..8]);
    let name = format!("{VERSION}-{short}-{}", identity.kv.code());
    let folder = shared.folder().join(name);
    match create_private(&folder) {
        Ok(()) => remove_leftovers(&folder, None),
        Err(error) => shared.fail(&error),
    }
    folder
}

/// Makes a folder that only its owner may read: its files hold conversations.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
