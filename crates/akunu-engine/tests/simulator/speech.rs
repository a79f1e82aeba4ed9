//! A Whisper of random weights on Metal's kernels, and what a GPU is told by it.

use super::recorded::{assert_barriers_are_exact, device, expected};
use crate::random_whisper::{N_AUDIO, N_MELS, write_ctranslate2};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::speech::{Decoded, SpeechModel, SpeechPrompt};
use akunu_kernels::Device;
use akunu_kernels::twin_device::TwinDevice;

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
    let check = || {
        let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
        assert_eq!(calls, expected(&submitted, &log));
        assert_barriers_are_exact(&calls, 1, &log);
    };
    model.listen(&spectrogram()).expect("runs");
    check();
    let (said, wanted) = (say(&mut model), say(&mut reference));
    check();
    assert_eq!(said.tokens, wanted.tokens);
    // Products of many rows have tiles of halves.
    assert!((said.mean_logprob - wanted.mean_logprob).abs() < 1e-2);
}

/// Fails when a window sees the sound or the tokens of another one, or when the tokens that are never said are said in a
/// window that is not the first. Windows end after different numbers of tokens.
#[test]
fn several_windows_say_what_each_says_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_ctranslate2(folder.path());
    let cpu = CpuDevice::new(CpuOptions::default()).expect("a CPU");
    let devices: [Box<dyn Device>; 2] = [Box::new(TwinDevice::new()), Box::new(cpu)];
    for device in devices {
        let mut model = SpeechModel::load(folder.path(), device).expect("a whole model");
        let prompt = SpeechPrompt {
            has_times: true,
            ..SpeechPrompt::default()
        };
        let speeds = [0.37, 0.11, 0.73, 1.9, 0.02];
        let mut alone = Vec::new();
        for speed in speeds {
            model.listen(&rising(speed)).expect("runs");
            alone.push(say(&mut model));
        }
        model.make_room(speeds.len() as u32).expect("room");
        for (speed, window) in speeds.into_iter().zip(0..) {
            model.listen_to(window, &rising(speed)).expect("runs");
        }
        let mut open = |window| model.open_window(window, &prompt).expect("fits");
        let opened: Vec<_> = (0..speeds.len() as u32).map(&mut open).collect();
        let together = model.say_all(&opened).expect("runs");
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!(alone.tokens, together.tokens);
            assert!((alone.mean_logprob - together.mean_logprob).abs() < 1e-4);
        }
        let lengths: Vec<usize> = alone.iter().map(|said| said.tokens.len()).collect();
        assert!(
            alone.iter().any(|said| said.tokens != alone[0].tokens),
            "{lengths:?}"
        );
    }
}
