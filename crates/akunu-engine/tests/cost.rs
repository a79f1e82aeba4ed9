//! What a decode step costs, by the cost model of its plan.

mod support;

use std::collections::BTreeMap;

use akunu_engine::{Model, Sampling, SessionOptions};
use akunu_gguf::{Data, WeightStore};
use akunu_kernels::ChipConfig;
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;
use support::tiny_llama;

/// The bytes of each weight of a file, by its offset; the embedding, which is the output as well, with
/// one row more.
fn weights_once(store: &WeightStore) -> BTreeMap<usize, usize> {
    let mut bytes = BTreeMap::new();
    for view in store.iter() {
        let Data::Plain(span) = &view.data else {
            panic!("{} is not plain", view.name);
        };
        let row = match view.name {
            "token_embedding.weight" => view.size() / view.rows(),
            _ => 0,
        };
        bytes.insert(span.offset, view.size() + row);
    }
    bytes
}

/// A plan that reads a weight twice, leaves one out or looks the whole embedding up differs here.
#[test]
fn a_decode_step_reads_each_weight_once() {
    for dtype in [DType::Q8_0, DType::F16] {
        let file = tiny_llama(dtype);
        let store = WeightStore::open(&file.path).expect("a whole file");
        let device = Box::new(TwinDevice::new(ChipConfig::m1()));
        let model = Model::load(&file.path, device).expect("a whole model");
        let mut session = model.session(SessionOptions::default()).expect("memory");
        let plan = session.decode_plan(Sampling::greedy()).expect("a plan");
        let mut read = BTreeMap::new();
        for dispatch in plan.dispatches() {
            let bound = dispatch.bindings.iter().zip(dispatch.work(0).traffic);
            // Of the buffers only the file is read-only.
            for (slice, traffic) in bound.filter(|(slice, _)| !slice.buffer.writable) {
                *read.entry(slice.offset).or_insert(0) += traffic.read;
            }
        }
        assert_eq!(read, weights_once(&store), "{dtype}");
    }
}

/// From one position to the next only the keys and values grow: two layers, one KV head of 64 halves.
#[test]
fn a_later_step_reads_one_more_key_and_value_of_each_layer() {
    let file = tiny_llama(DType::Q8_0);
    let device = Box::new(TwinDevice::new(ChipConfig::m1()));
    let model = Model::load(&file.path, device).expect("a whole model");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    let plan = session.decode_plan(Sampling::greedy()).expect("a plan");
    let (first, later) = (plan.cost(0), plan.cost(100));
    assert_eq!(later.bytes_read - first.bytes_read, 100 * 2 * 2 * 64 * 2);
    assert_eq!(later.bytes_written, first.bytes_written);
    assert_eq!(later.dispatches, plan.dispatches().len() as u64);
    assert!(first.bytes_read > model.weight_bytes());
}
