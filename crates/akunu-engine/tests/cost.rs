//! What a decode step costs, by the cost model of its plan.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_gguf::{Data, WeightStore};
use akunu_kernels::device::SharedBytes;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Buffer, ChipConfig, Device, DeviceError, PipelineId, PipelineKey, Plan};
use akunu_types::DType;
use support::tiny_llama;

/// The bytes of each weight of a file, by its offset; the embedding, which is the output as well, with
/// the rows of so many tokens more.
fn weights_once(store: &WeightStore, tokens: usize) -> BTreeMap<usize, usize> {
    let mut bytes = BTreeMap::new();
    for view in store.iter() {
        let Data::Plain(span) = &view.data else {
            panic!("{} is not plain", view.name);
        };
        let row = match view.name {
            "token_embedding.weight" => tokens * view.size() / view.rows(),
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
        assert_eq!(weights_read(plan), weights_once(&store, 1), "{dtype}");
    }
}

/// The bytes of each weight that a plan reads, by its offset: of the buffers only the file is read-only.
fn weights_read(plan: &Plan) -> BTreeMap<usize, usize> {
    let mut read = BTreeMap::new();
    for dispatch in plan.dispatches() {
        let bound = dispatch.bindings.iter().zip(dispatch.work(0).traffic);
        for (slice, traffic) in bound.filter(|(slice, _)| !slice.buffer.writable) {
            *read.entry(slice.offset).or_insert(0) += traffic.read;
        }
    }
    read
}

/// However many sequences step together, a step is one submission and reads each weight once. A sequence
/// that runs its products by itself, or a kernel that reads the weights for every row, differs here.
#[test]
fn a_step_of_several_sequences_reads_each_weight_once() {
    let file = tiny_llama(DType::Q8_0);
    let store = WeightStore::open(&file.path).expect("a whole file");
    let read = Arc::new(Mutex::new(Vec::new()));
    let device = Recorder {
        device: TwinDevice::new(ChipConfig::m1()),
        read: Arc::clone(&read),
    };
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    for n_sequences in [2, 4, 8, 16] {
        let mut batch = model.batch(n_sequences).expect("memory");
        for n in 1..=n_sequences {
            let options = SessionOptions {
                context: Some(24),
                ..Default::default()
            };
            let mut session = model.session(options).expect("memory");
            session.feed(&vec![7; n as usize]).expect("fits");
            let joined = batch.join(session, GenerateOptions::default());
            joined.expect("there is room");
        }
        batch.step().expect("the first tokens");
        read.lock().expect("no panic").clear();
        batch.step().expect("a step");
        batch.step().expect("another");
        let wanted = weights_once(&store, n_sequences as usize);
        let found = read.lock().expect("no panic").clone();
        assert_eq!(found, [wanted.clone(), wanted], "{n_sequences}");
    }
}

/// Notes what each submission reads of the weights.
struct Recorder {
    device: TwinDevice,
    read: Arc<Mutex<Vec<BTreeMap<usize, usize>>>>,
}

impl Device for Recorder {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn chip(&self) -> &ChipConfig {
        self.device.chip()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        self.device.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.device.pipeline(key)
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        let mut read = self.read.lock().expect("no panic");
        read.push(weights_read(plan));
        drop(read);
        self.device.run_chain(plan, first, n)
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
