//! `chat --image` from the outside, with a small random model that reads images.

use crate::pictured::{self, TEMPLATE};
use crate::program::{Finished, akunu, akunu_reads, assert_error, smollm2};
use std::path::Path;

/// A GIF of one red pixel.
const PIXEL: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn ask(model: &str, flags: &[&str]) -> Finished {
    let begin = ["chat", "What is this?", "-m", model, "--device", "cpu"];
    akunu([&begin, flags].concat())
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_string()
}

/// Breaks when a file that is no image, or a model that cannot see, is not told in a sentence.
#[test]
fn an_image_that_cannot_be_shown_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = written(folder.path(), "cat.jpg", b"not an image");
    assert_error(&ask(&smollm2(), &["--image", &text]), "cat.jpg");
    assert_error(&ask(&smollm2(), &["--image", "nowhere.png"]), "nowhere.png");
    let pixel = written(folder.path(), "cat.gif", PIXEL);
    assert_error(&ask(&smollm2(), &["--image", &pixel]), "--mmproj FILE");
}

/// Breaks when the image does not get among the tokens, or the tower in the folder of the model is not found.
#[test]
fn a_question_about_an_image_is_answered() {
    let pair = pictured::pair(TEMPLATE, 40);
    let pixel = written(pair.folder.path(), "cat.gif", PIXEL);
    let (model, tower) = (pair.model.to_str().unwrap(), pair.tower.to_str().unwrap());
    let read = |flags: &[&str]| {
        let fixed = ["--json", "--temp", "0", "-n", "4", "--ctx", "1024"];
        let run = ask(model, &[&fixed, flags].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let said: serde_json::Value = serde_json::from_str(run.stdout.trim()).unwrap();
        said["prompt_tokens"].as_u64().unwrap()
    };
    let blind = read(&[]);
    // A square is 17 tiles of 9 rows.
    let beside = read(&["--image", &pixel]);
    assert!(beside > blind + 17 * 9, "{blind}, {beside}");
    assert_eq!(read(&["--image", &pixel, "--mmproj", tower]), beside);
}

/// Breaks when a bad image ends a conversation, or an image is shown again with each question.
#[test]
fn images_of_a_conversation_come_by_a_command() {
    let pair = pictured::fitting();
    let pixel = written(pair.folder.path(), "cat.gif", PIXEL);
    let lines = format!("/image nowhere.png\n/image {pixel}\nWhat is this?\nAnd now?\n");
    let flags = ["chat", "--lines", "--json", "--temp", "0", "-n", "4"];
    let model = pair.model.to_str().unwrap();
    let model = ["--ctx", "1024", "--device", "cpu", "-m", model];
    let run = akunu_reads([&flags[..], &model].concat(), lines.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("nowhere.png"), "{}", run.stderr);
    let shown = "goes with the next question, as 153 tokens";
    assert!(run.stderr.contains(shown), "{}", run.stderr);
    let n_tokens = |answer: &str| {
        let said: serde_json::Value = serde_json::from_str(answer).unwrap();
        said["prompt_tokens"].as_u64().unwrap()
    };
    let prompts: Vec<u64> = run.stdout.lines().map(n_tokens).collect();
    let [first, second] = prompts[..] else {
        panic!("{}", run.stdout)
    };
    assert!(first > 153 && second > first && second < first + 153);
}
