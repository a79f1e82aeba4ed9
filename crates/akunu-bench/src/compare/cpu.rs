//! The comparison on a CPU: five files, with each number of threads.

use super::args::Args;
use super::comparison::Comparison;
use super::device::Device;
use super::files::{self, ModelFile};
use super::ours::Ours;
use super::peer::{Peer, Question};
use super::record::{Kind, Record};
use super::round::Sizes;
use super::turns::{alternate, today};
use super::{bar, chart, table};
use akunu_repo::Failure;

/// The files of the tests, with all columns.
pub static FILES: Kind<Comparison> = Kind {
    stem: "performance",
    draw: chart::draw,
    text: |summary| format!("{}\n{}", table::files(summary), bar::below(summary)),
    begin: "<!-- written by cargo measure compare -->\n",
};

pub const FULL: Sizes = Sizes {
    prefill: 512,
    first: 20,
    decode: 128,
    shallow: 100,
    deep: 4000,
    deep_decode: 32,
};

pub const QUICK: Sizes = Sizes {
    prefill: 16,
    first: 4,
    decode: 4,
    shallow: 8,
    deep: 64,
    deep_decode: 2,
};

/// Measures each file with each number of threads, and writes down each when it is done.
pub fn measure_all(args: &Args) -> Result<Record<Comparison>, Failure> {
    let sizes = if args.quick { QUICK } else { FULL };
    let mut record = Record::open(args.folder(), sizes, &FILES)?;
    let chosen = files::choose(&args.models)?;
    let ours = Ours::open(args.ours.as_deref(), Device::Cpu)?;
    let peer = Peer::open(args.peer.as_deref(), None, sizes)?;
    let files = files::make(&chosen, &ours)?;
    for &threads in args.threads() {
        let bandwidth = ours.bandwidth(&files[0].path, threads)?;
        for file in &files {
            eprintln!("{}, threads: {threads}", file.name);
            let mut comparison = begin(file, threads, &ours)?;
            comparison.floor = bandwidth / comparison.weight_bytes as f64;
            let programs = Programs {
                ours: &ours,
                peer: &peer,
                sizes,
                must_agree: true,
            };
            measure(&mut comparison, file, args.rounds, &programs)?;
            record.summary.put(comparison);
            record.write()?;
        }
    }
    Ok(record)
}

/// A comparison without rounds.
pub fn begin(file: &ModelFile, threads: usize, ours: &Ours) -> Result<Comparison, Failure> {
    Ok(Comparison {
        model: file.name.clone(),
        isa: None,
        threads,
        date: today()?,
        weight_bytes: ours.weight_bytes(&file.path)?,
        ours: Vec::new(),
        peer: Vec::new(),
        floor: 0.0,
        same_first_tokens: 0,
    })
}

/// Who is compared.
pub struct Programs<'a> {
    pub ours: &'a Ours,
    pub peer: &'a Peer,
    pub sizes: Sizes,
    /// Whether both must begin an answer with the same token. With random weights many tokens are about
    /// equally likely, and rounding decides.
    pub must_agree: bool,
}

/// The rounds: ours, then the peer.
pub fn measure(
    comparison: &mut Comparison,
    file: &ModelFile,
    rounds: u32,
    programs: &Programs,
) -> Result<(), Failure> {
    let Programs { ours, peer, .. } = programs;
    let (path, threads) = (&file.path, comparison.threads);
    let (prompt, our_ids) = ours.continue_prompt(path, threads)?;
    let folder = files::folder()?;
    let state = tempfile::tempdir_in(&folder).map_err(|source| Failure::io(&folder, source))?;
    let question = Question {
        model: path,
        threads,
        prompt: &prompt,
        state: &state.path().join("state"),
    };
    let mut same = 0;
    let (ours, peer) = alternate(
        rounds,
        || ours.measure(path, threads, programs.sizes),
        || {
            let (measured, ids) = peer.measure(&question)?;
            same = ids.iter().zip(&our_ids).take_while(|(a, b)| a == b).count();
            if same == 0 && programs.must_agree {
                return Err(Failure::Found(format!(
                    "{}: the first token differs, ours {our_ids:?}, the peer's {ids:?}",
                    comparison.model
                )));
            }
            Ok(measured)
        },
    )?;
    (comparison.ours, comparison.peer) = (ours, peer);
    comparison.same_first_tokens = same;
    Ok(())
}
