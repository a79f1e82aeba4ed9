//! Documents, scored by how well they answer a question.

use std::ffi::c_char;

use crate::border::{self, Room};
use crate::handles::{self, Thing};
use crate::options::{self, AkunuOptions};
use crate::status::{AkunuStatus, call};

/// A model that scores how well documents answer a question. It can be used from several threads at once.
pub struct AkunuReranker(());

impl Thing for akunu::Reranker {
    type Opaque = AkunuReranker;
    const NAME: &'static str = "reranker";
}

/// Opens a reranker (a cross-encoder, such as ms-marco-MiniLM-L6-v2): a folder with config.json and safetensors, or a GGUF file.
/// akunu_reranker_free frees it. The options may be null; it uses device and threads.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_reranker_open(
    path: *const c_char,
    options: *const AkunuOptions,
    out: *mut *mut AkunuReranker,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let path = border::text(path, "path")?;
        let device = options::read(options)?.device()?;
        let reranker = akunu::Reranker::open_on(&path, device)?;
        border::write(out, handles::give(reranker), "out")
    })
}

/// Frees a reranker, after the running calls have ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_reranker_free(reranker: *mut AkunuReranker) -> AkunuStatus {
    call(|| handles::take::<akunu::Reranker>(reranker))
}

/// Stores how well each document answers the question: any number, larger is better. A document that is too long is cut.
/// `length` always gets the number of documents; with `to` null and `capacity` 0 only that is stored, and nothing is computed.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_rank(
    reranker: *const AkunuReranker,
    question: *const c_char,
    documents: *const *const c_char,
    n_documents: usize,
    to: *mut f32,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        let reranker = handles::get::<akunu::Reranker>(reranker)?;
        let question = border::text(question, "question")?;
        let documents = border::texts(documents, n_documents, "documents")?;
        if room.is_wanted(documents.len(), 0)? {
            room.fill(&reranker.scores(&question, &documents)?)?;
        }
        Ok(())
    })
}
