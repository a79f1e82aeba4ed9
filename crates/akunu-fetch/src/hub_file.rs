//! The name of a file on a model hub.

use crate::error::FetchError;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file on a hub: `hf:owner/repository/path`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HubFile {
    owner: String,
    repository: String,
    path: String,
}

impl FromStr for HubFile {
    type Err = FetchError;

    /// Every part is plain letters, digits and a few signs: it becomes a part of a URL and of a path.
    fn from_str(text: &str) -> Result<HubFile, FetchError> {
        let wrong = || FetchError::HubName(text.to_string());
        let name = text.strip_prefix("hf:").ok_or_else(wrong)?;
        let parts: Vec<&str> = name.split('/').collect();
        let is_plain = |part: &&str| {
            let sign = |c: char| c.is_ascii_alphanumeric() || "._-+=@".contains(c);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(sign)
        };
        match &parts[..] {
            [owner, repository, path @ ..] if !path.is_empty() && parts.iter().all(is_plain) => {
                Ok(HubFile {
                    owner: owner.to_string(),
                    repository: repository.to_string(),
                    path: path.join("/"),
                })
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for HubFile {
    type Error = FetchError;

    fn try_from(text: String) -> Result<HubFile, FetchError> {
        text.parse()
    }
}

impl HubFile {
    /// Where it lies below the folder of all files of hubs.
    pub(crate) fn path_below(&self, folder: &Path) -> PathBuf {
        folder
            .join(&self.owner)
            .join(&self.repository)
            .join(&self.path)
    }

    /// Its address on the hub at `endpoint`.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        let HubFile {
            owner,
            repository,
            path,
        } = self;
        format!("{endpoint}/{owner}/{repository}/resolve/main/{path}")
    }

    /// The last part of its path.
    pub(crate) fn file_name(&self) -> &str {
        let last = self.path.rsplit_once('/');
        last.map_or(&*self.path, |(_, name)| name)
    }
}

impl fmt::Display for HubFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}/{}/{}", self.owner, self.repository, self.path)
    }
}
