//! What the file holds.

use serde::{Deserialize, Serialize};

/// The version of this layout; another one is not read.
pub const VERSION: u32 = 1;

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The device that was asked for.
    pub device: String,
    /// The parts in the order in which they ran.
    pub parts: Vec<PartReport>,
}

/// One part.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartReport {
    /// Its name.
    pub name: String,
    /// Whether the validation of calls and memory accesses was on.
    pub validated: bool,
    /// How long it ran.
    pub seconds: f64,
    /// How its processes ended: more than one when some of them crashed.
    pub ended: Vec<Ended>,
    /// What it found.
    pub records: Vec<Record>,
}

/// The end of a process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// `ok`, or how it ended.
    pub how: String,
    /// What it had begun last.
    pub during: Option<String>,
    /// The last lines that it wrote on stderr.
    pub said: String,
}

/// One thing that was found.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// Something begins; not kept in the file.
    Begin { what: String },
    /// The machine and its system.
    Machine(Machine),
    /// A compiled kernel.
    Pipeline(Pipeline),
    /// The cases of a kernel.
    Cases(Cases),
    /// A number on its own.
    Micro {
        name: String,
        value: f64,
        unit: String,
    },
    /// A launch of a kernel.
    Time(Time),
    /// A step of a model.
    Model(Model),
    /// The launches of one kernel in a step of a model.
    Share(Share),
    /// A launch of the small model that gives another result than its twin.
    Wrong(Wrong),
    /// The small model, after all of its launches.
    Program {
        launches: usize,
        wrong: usize,
        at_once: String,
    },
    /// Something that could not be measured, and why.
    Skipped { what: String, why: String },
}

/// The machine and its system.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The chip, as the system calls it.
    pub chip: String,
    /// The GPU's family.
    pub family: String,
    pub gpu_cores: u32,
    pub max_threads: u32,
    pub threadgroup_bytes: u32,
    /// What the table says that the memory delivers in a second.
    pub bytes_per_second: u64,
    pub max_buffer: u64,
    /// Bytes that all buffers may have.
    pub budget: u64,
    /// Bytes of the machine's memory, where the system says it.
    pub memory: Option<u64>,
    /// The model of the machine, such as `Mac14,9`.
    pub model: Option<String>,
    pub system: String,
    pub version: Option<String>,
    /// The version of Akunu.
    pub akunu: String,
}

/// A compiled kernel: the first of a file has the time of the file in it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pipeline {
    pub kernel: String,
    pub file: String,
    pub seconds: f64,
    /// Threads that it allows, and threadgroup memory that it leaves; or why it cannot be made.
    #[serde(flatten)]
    pub made: Made,
}

/// What became of a pipeline.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Made {
    Pipeline {
        max_threads: u32,
        threadgroup_room: u32,
    },
    Failed {
        error: String,
    },
}

/// The cases of a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cases {
    pub kernel: String,
    pub file: String,
    pub cases: usize,
    /// The largest error of the cases that passed.
    pub worst: f64,
    pub failed: usize,
    /// The first failures: cause and error.
    pub failures: Vec<(String, String)>,
}

/// A launch of a kernel, for products with the shape `m × n × k`, for attention with rows, parts and keys.
#[derive(Debug, Serialize, Deserialize)]
pub struct Time {
    pub kernel: String,
    pub shape: [u32; 3],
    pub microseconds: f64,
    /// Bytes that it has to read.
    pub bytes: u64,
    pub flops: u64,
}

/// A step of a model.
#[derive(Debug, Serialize, Deserialize)]
pub struct Model {
    pub model: String,
    pub milliseconds: f64,
    pub launches: usize,
    pub barriers: usize,
    pub bytes: u64,
}

/// The launches of one kernel in a step of a model, alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Share {
    pub model: String,
    pub kernel: String,
    pub launches: usize,
    pub milliseconds: f64,
}

/// A launch with another result than its twin.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wrong {
    pub launch: usize,
    pub kernel: String,
    pub label: String,
    pub binding: String,
    pub nmse: f64,
}

impl Record {
    /// Why something that was begun has no figures.
    pub fn skipped(what: impl Into<String>, why: impl ToString) -> Record {
        Record::Skipped {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// Prints it, for the parent to read.
    pub fn print(&self) {
        match serde_json::to_string(self) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("a record is lost: {error}"),
        }
    }
}

impl Report {
    /// The records of all parts.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.parts.iter().flat_map(|part| &part.records)
    }

    /// What a person wants to know first: what failed and what crashed.
    pub fn summary(&self) -> String {
        let (mut cases, mut failed, mut uncompiled, mut wrong) = (0, 0, 0, 0);
        for record in self.records() {
            match record {
                Record::Cases(of) => {
                    cases += of.cases;
                    failed += of.failed;
                }
                Record::Pipeline(Pipeline {
                    made: Made::Failed { .. },
                    ..
                }) => uncompiled += 1,
                Record::Wrong(_) => wrong += 1,
                Record::Begin { .. }
                | Record::Machine(_)
                | Record::Pipeline(_)
                | Record::Micro { .. }
                | Record::Time(_)
                | Record::Model(_)
                | Record::Share(_)
                | Record::Program { .. }
                | Record::Skipped { .. } => {}
            }
        }
        let ends = self.parts.iter().flat_map(|part| &part.ended);
        let crashes = ends.filter(|ended| ended.how != "ok").count();
        format!(
            "{cases} cases, {failed} failures; {uncompiled} pipelines that cannot be made; \
             {wrong} wrong launches of the small model; {crashes} crashes"
        )
    }
}
