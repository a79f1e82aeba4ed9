//! The header as cbindgen writes it.

use std::path::{Path, PathBuf};

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the header lies.
pub fn path() -> PathBuf {
    package().join("include/akunu.h")
}

/// What it should be.
pub fn header() -> Result<Vec<u8>, cbindgen::Error> {
    let sources = [
        "border",
        "chat",
        "embedder",
        "fetch",
        "model",
        "options",
        "reranker",
        "session",
        "status",
        "stream",
        "together",
        "transcriber",
        "version",
    ];
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml"));
    let mut builder = cbindgen::Builder::new().with_config(config.unwrap_or_default());
    for source in sources {
        builder = builder.with_src(package().join(format!("src/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate()?.write(&mut text);
    Ok(text)
}
