//! A Whisper of random weights on Metal's kernels, and what a GPU is told by it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::recorded::{assert_barriers_are_exact, device, expected};
use crate::random_whisper::{N_AUDIO, N_MELS, write_ctranslate2};
use crate::support::watched::{Hooks, Watched};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::speech::{Decoded, SpeechModel, SpeechPrompt};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Checked, Device, DeviceError, PlanId};

/// A device that says whether it works by itself, and how many rounds each submission had.
#[derive(Clone, Default)]
struct Chains {
    runs_ahead: bool,
    rounds: Arc<Mutex<Vec<u32>>>,
}

impl Hooks for Chains {
    fn runs_ahead(&self) -> Option<bool> {
        Some(self.runs_ahead)
    }

    fn ran(&mut self, _plan: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let step = step.expect("a model's programs have rows");
        self.rounds.lock().expect("no panic").push(step.steps());
        Ok(())
    }
}

/// The same model on each device of this machine, as one that works by itself or not. Models are large, and arrays of them would not
/// fit the stack of a test.
fn models(folder: &Path, runs_ahead: bool) -> [(Box<SpeechModel>, Chains); 2] {
    let chains = [(); 2].map(|()| Chains {
        runs_ahead,
        ..Chains::default()
    });
    let cpu = CpuDevice::new(CpuOptions::default()).expect("a CPU");
    let devices: [Box<dyn Device>; 2] = [
        Box::new(Watched::new(TwinDevice::new(), chains[0].clone())),
        Box::new(Watched::new(cpu, chains[1].clone())),
    ];
    let load = |device| Box::new(SpeechModel::load(folder, device).expect("a whole model"));
    let mut models = devices.map(load).into_iter();
    chains.map(|chains| (models.next().expect("one each"), chains))
}

/// A spectrogram that rises and falls.
fn spectrogram() -> Vec<f32> {
    rising(0.37)
}

/// A spectrogram that rises and falls as fast as this.
fn rising(speed: f32) -> Vec<f32> {
    let value = |i: usize| (i as f32 * speed).sin() * (i as f32 * 0.011).cos();
    (0..2 * N_AUDIO * N_MELS).map(value).collect()
}

/// What is said of it.
fn say(model: &mut SpeechModel) -> Decoded {
    let prompt = SpeechPrompt {
        has_times: true,
        ..SpeechPrompt::default()
    };
    let opened = model.open(&prompt).expect("fits");
    model.say(&opened, 0.0, 0).expect("runs")
}

/// Fails when the Metal kernels compute something else than the reference, when a call is missing or too many, or when
/// a barrier is missing or orders nothing: for the encoder, and for a step of the decoder.
#[test]
fn whisper_runs_on_metals_kernels_with_exact_barriers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_ctranslate2(folder.path());
    let load = |device: Box<dyn Device>| SpeechModel::load(folder.path(), device);
    let mut reference = load(Box::new(TwinDevice::new())).expect("a whole model");
    reference.listen(&spectrogram()).expect("runs");
    let (device, notes, log) = device();
    let mut model = load(Box::new(device)).expect("a whole model");
    let check = |steps: u32| {
        let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
        assert_eq!(submitted.steps, steps);
        assert_eq!(calls, expected(&submitted, &log));
        assert_barriers_are_exact(&calls, steps as usize, &log);
    };
    model.listen(&spectrogram()).expect("runs");
    check(1);
    let (said, wanted) = (say(&mut model), say(&mut reference));
    // The most that can be said is 12 tokens, the first 8 of them in another chain.
    assert_eq!(said.tokens.len(), 12);
    check(4);
    assert_eq!(said.tokens, wanted.tokens);
    // Products of many rows have tiles of halves.
    assert!((said.mean_logprob - wanted.mean_logprob).abs() < 1e-2);
}

/// Fails when a chain says something else than single steps, or when tokens are submitted one by one to a device that works
/// by itself.
#[test]
fn a_chain_says_what_single_steps_say() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_ctranslate2(folder.path());
    let say_on = |runs_ahead: bool, temperature: f32| {
        models(folder.path(), runs_ahead).map(|(mut model, chains)| {
            model.listen(&spectrogram()).expect("runs");
            let prompt = SpeechPrompt {
                has_times: true,
                previous: vec![3, 4, 5],
                ..SpeechPrompt::default()
            };
            let opened = model.open(&prompt).expect("fits");
            chains.rounds.lock().expect("no panic").clear();
            let said = model.say(&opened, temperature, 7).expect("runs");
            let rounds = chains.rounds.lock().expect("no panic").clone();
            (said, rounds)
        })
    };
    for temperature in [0.0, 0.8] {
        let (chained, single) = (say_on(true, temperature), say_on(false, temperature));
        for ((chained, chains), (single, steps)) in chained.into_iter().zip(single) {
            assert_eq!(chained, single);
            let n_chosen: u32 = steps.iter().sum();
            assert_eq!(steps.len() as u32, n_chosen);
            assert_eq!(chains.len() as u32, n_chosen.div_ceil(8), "{chains:?}");
            assert!(n_chosen > 8, "{steps:?}");
        }
    }
}

/// Fails when the seed or the temperature does not matter, or when chance breaks the rules.
#[test]
fn chance_is_fixed_by_the_seed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_ctranslate2(folder.path());
    let [(mut twin, _), (mut cpu, _)] = models(folder.path(), true);
    let mut all = Vec::new();
    for model in [&mut twin, &mut cpu] {
        model.listen(&spectrogram()).expect("runs");
        let prompt = SpeechPrompt {
            has_times: true,
            ..SpeechPrompt::default()
        };
        let opened = model.open(&prompt).expect("fits");
        let mut say = |seed| model.say(&opened, 1.0, seed).expect("runs").tokens;
        let said: Vec<Vec<u32>> = (0..6).map(&mut say).collect();
        assert_eq!(said, (0..6).map(&mut say).collect::<Vec<_>>());
        assert!(said.iter().any(|other| *other != said[0]), "{said:?}");
        let tokens = model.tokens();
        let control = [
            tokens.start,
            tokens.translate,
            tokens.transcribe,
            tokens.previous,
            tokens.no_speech,
            tokens.no_times,
        ];
        for said in &said {
            let times = said.iter().filter(|&&id| tokens.is_time(id));
            assert!(tokens.is_time(said[0]) && times.is_sorted(), "{said:?}");
            // Token 1 is never said, nor one that controls the model.
            let is_forbidden = |id: &u32| *id == 1 || control.contains(id);
            assert!(!said.iter().any(is_forbidden), "{said:?}");
        }
        all.push(said);
    }
    assert_eq!(all[0], all[1], "devices");
}

/// Fails when a window sees the sound or the tokens of another one, or when the tokens that are never said are said in a
/// window that is not the first. Windows end after different numbers of tokens.
#[test]
fn several_windows_say_what_each_says_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_ctranslate2(folder.path());
    let models = [true, false].map(|runs_ahead| models(folder.path(), runs_ahead));
    for (mut model, _) in models.into_iter().flatten() {
        let speeds = [0.37, 0.11, 0.73, 1.9, 0.02];
        // What was said before takes positions away, so that windows end after different numbers of tokens.
        let prompt = |window: usize| SpeechPrompt {
            has_times: true,
            previous: vec![3; [0, 9, 4, 11, 2][window]],
            ..SpeechPrompt::default()
        };
        let mut alone = Vec::new();
        for (window, speed) in speeds.into_iter().enumerate() {
            model.listen(&rising(speed)).expect("runs");
            let opened = model.open(&prompt(window)).expect("fits");
            alone.push(model.say(&opened, 0.0, 0).expect("runs"));
        }
        model.make_room(speeds.len() as u32).expect("room");
        for (speed, window) in speeds.into_iter().zip(0..) {
            model.listen_to(window, &rising(speed)).expect("runs");
        }
        let mut open = |window: u32| {
            let prompt = prompt(window as usize);
            model.open_window(window, &prompt).expect("fits")
        };
        let opened: Vec<_> = (0..speeds.len() as u32).map(&mut open).collect();
        let together = model.say_all(&opened).expect("runs");
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!(alone.tokens, together.tokens);
            assert!((alone.mean_logprob - together.mean_logprob).abs() < 1e-4);
        }
        let lengths: Vec<usize> = alone.iter().map(|said| said.tokens.len()).collect();
        assert!(lengths.iter().any(|&n| n != lengths[0]), "{lengths:?}");
    }
}
