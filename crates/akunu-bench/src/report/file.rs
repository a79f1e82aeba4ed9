//! The file: JSON, compressed.

use super::record::{Report, VERSION};
use akunu_repo::Failure;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::path::Path;

/// Most bytes of a file: what can be attached to an issue.
const MOST: usize = 1_000_000;
/// Most bytes of its JSON that are read: a report has a tenth of it.
const MOST_JSON: u64 = 64 << 20;

/// Writes a report; returns its size.
pub fn write(path: &Path, report: &Report) -> Result<usize, Failure> {
    let found = |error: String| Failure::Found(format!("{}: {error}", path.display()));
    let json = serde_json::to_vec(report).map_err(|error| found(error.to_string()))?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    let bytes = written.map_err(|error| Failure::io(path, error))?;
    if bytes.len() > MOST {
        return Err(found(format!(
            "the report has {} bytes, {MOST} is the limit; write parts of it with --only",
            bytes.len()
        )));
    }
    std::fs::write(path, &bytes).map_err(|error| Failure::io(path, error))?;
    Ok(bytes.len())
}

/// Reads a report.
pub fn read(path: &Path) -> Result<Report, Failure> {
    let file = std::fs::File::open(path).map_err(|error| Failure::io(path, error))?;
    let mut json = Vec::new();
    let mut limited = GzDecoder::new(file).take(MOST_JSON + 1);
    let read = limited.read_to_end(&mut json);
    read.map_err(|error| Failure::io(path, error))?;
    let found = |what: String| Failure::Found(format!("{}: {what}", path.display()));
    if json.len() as u64 > MOST_JSON {
        return Err(found(format!("more than {MOST_JSON} bytes: no report")));
    }
    let report: Report =
        serde_json::from_slice(&json).map_err(|error| found(format!("no report: {error}")))?;
    if report.version != VERSION {
        let version = report.version;
        return Err(found(format!(
            "version {version}; this program reads version {VERSION}, so write the report again"
        )));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(version: u32) -> Report {
        Report {
            version,
            device: "sim".into(),
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json.gz");
        let bytes = write(&path, &report(VERSION)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes as u64);
        assert_eq!(read(&path).unwrap().device, "sim");
    }

    /// Breaks when a file that is something else, or of another version, is taken for a report.
    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json.gz");
        let refused = |words: &str| {
            let error = read(&path).unwrap_err().to_string();
            assert!(
                error.contains("r.json.gz") && error.contains(words),
                "{error}"
            );
        };
        refused("No such file");
        std::fs::write(&path, b"not compressed").unwrap();
        refused("invalid gzip header");
        write(&path, &report(7)).unwrap();
        refused("version 7");
    }
}
