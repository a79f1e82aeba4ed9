//! How long each kernel takes to compile, and what its pipeline allows.

use super::part::Given;
use super::record::{Made, Pipeline, Record};
use super::target::{Target, kernels};
use akunu_kernels::PipelineKey;
use std::time::Instant;

pub fn run(target: &mut dyn Target, given: &Given) {
    let all = kernels(target, given.is_small);
    for kernel in given.wanted(all, |kernel| kernel.row().name()) {
        let row = kernel.row();
        let Some(case) = (row.cases)(row.dtype).into_iter().next() else {
            continue;
        };
        Record::Begin { what: row.name() }.print();
        let key = PipelineKey {
            kernel,
            constants: case.constants,
        };
        let begin = Instant::now();
        let made = match target.compile(&key) {
            Ok(compiled) => Made::Pipeline {
                max_threads: compiled.max_threads,
                threadgroup_room: compiled.threadgroup_room,
            },
            Err(error) => Made::Failed { error },
        };
        Record::Pipeline(Pipeline {
            kernel: row.name(),
            file: row.source_path(),
            seconds: begin.elapsed().as_secs_f64(),
            made,
        })
        .print();
    }
}
