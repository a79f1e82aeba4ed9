//! What a decode step costs, by the cost model of its plan.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::support::tiny_llama;
use crate::support::watched::{Hooks, Watched};
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_gguf::{Data, WeightStore};
use akunu_kernels::chip::GpuFamily;
use akunu_kernels::lower::{self, GpuRules, NvidiaRules, Rules};
use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, Plan};
use akunu_program::{Buffer, Checked, DeviceError, Op, PlanId, Program};
use akunu_types::DType;

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
        let device = Box::new(TwinDevice::new());
        let model = Model::load(&file.path, device).expect("a whole model");
        let program = model.decode_program(1, Sampling::greedy());
        assert_eq!(
            weights_read(&plan(&program)),
            weights_once(&store, 1),
            "{dtype}"
        );
    }
}

/// What a token costs in launches on a GPU: up to eight for each layer (norm and queries, keys and values; rotation and
/// store; attention, its parts and what joins them; output; norm, gate and up; activation and down), and ten for embedding,
/// last norm, logits and choice. Breaks when kernels that were one fall apart.
#[test]
fn a_layer_is_at_most_eight_launches() {
    let file = tiny_llama(DType::Q8_0);
    let model = Model::load(&file.path, Box::new(TwinDevice::new())).expect("a whole model");
    let program = model.decode_program(1, Sampling::greedy());
    let stores = |op: &Op| matches!(op, Op::RopeStore(_));
    let n_layers = program.ops.iter().filter(|op| stores(op)).count();
    let m1 = ChipConfig::m1();
    let hopper = ChipConfig {
        family: GpuFamily::Nvidia(90),
        ..ChipConfig::m1()
    };
    let both: [(&str, Box<dyn Rules>); 2] = [
        ("Apple", Box::new(GpuRules::new(&m1))),
        ("NVIDIA", Box::new(NvidiaRules::new(&hopper))),
    ];
    for (vendor, rules) in both {
        let bytes = lower::scratch_bytes(&program, &*rules);
        let scratch = (bytes > 0).then_some(Buffer {
            id: u32::MAX,
            generation: 0,
            len: bytes,
            writable: true,
        });
        let n_calls = lower::by_rules(&program, &*rules, scratch).len();
        assert!(
            n_calls <= 8 * n_layers + 10,
            "{n_calls} for {n_layers} layers of {vendor}"
        );
    }
}

/// The plan of a program on a GPU, whose kernels say how often they read a weight.
fn plan(program: &Program) -> Plan {
    let mut pipelines = HostPipelines::default();
    let calls = lower::by_rules(program, &GpuRules::new(&ChipConfig::m1()), None);
    Plan::make(calls, program.plan_room(), &mut pipelines).expect("a plan")
}

/// The bytes of each weight that a plan reads, by its offset: of the buffers only the file is read-only.
fn weights_read(plan: &Plan) -> BTreeMap<usize, usize> {
    let mut read = BTreeMap::new();
    for dispatch in plan.dispatches() {
        let bound = dispatch.bindings.iter().zip(dispatch.work().traffic);
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
    let hooks = Recorder {
        programs: HashMap::new(),
        read: Arc::clone(&read),
    };
    let device = Watched::new(TwinDevice::new(), hooks);
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
        batch.step();
        read.lock().expect("no panic").clear();
        batch.step();
        batch.step();
        let wanted = weights_once(&store, n_sequences as usize);
        let found = read.lock().expect("no panic").clone();
        assert_eq!(found, [wanted.clone(), wanted], "{n_sequences}");
    }
}

/// Notes what each submission reads of the weights.
struct Recorder {
    programs: HashMap<PlanId, Program>,
    read: Arc<Mutex<Vec<BTreeMap<usize, usize>>>>,
}

impl Hooks for Recorder {
    fn loaded(&mut self, id: PlanId, program: &Program) {
        self.programs.insert(id, program.clone());
    }

    fn ran(&mut self, id: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let mut program = self.programs[&id].clone();
        program.room = step.expect("a step").counts();
        let mut read = self.read.lock().expect("no panic");
        read.push(weights_read(&plan(&program)));
        Ok(())
    }
}
