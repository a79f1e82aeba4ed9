//! The examples run. `cargo test -p akunu` builds them beside this test.

use std::process::Command;

/// What an example prints for the small model and these arguments.
fn run(example: &str, arguments: &[&str]) -> String {
    let this = std::env::current_exe().unwrap();
    let built = this.parent().unwrap().parent().unwrap();
    let program = built.join("examples").join(example);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "the example is not built: run `cargo test -p akunu`"
    );
    let model = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let run = Command::new(program)
        .arg(model)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    String::from_utf8(run.stdout).unwrap()
}

/// A batch takes the most likely token, so that the answers are the same every time.
#[test]
fn several_questions_are_answered_together() {
    let questions = ["What is the capital of France?", "What colour is the sky?"];
    let said = run("batch", &questions);
    let at = |text: &str| {
        said.find(text)
            .unwrap_or_else(|| panic!("no {text:?} in {said}"))
    };
    assert!(
        at(questions[0]) < at("Paris") && at("Paris") < at(questions[1]),
        "{said}"
    );
    assert!(at(questions[1]) < at("blue"), "{said}");
}

#[test]
fn texts_are_compared() {
    let said = run(
        "embed",
        &["The cat sleeps.", "The cat sleeps.", "Shares fell by 3%."],
    );
    let numbers: Vec<f32> = said
        .lines()
        .map(|line| line[..5].parse().unwrap())
        .collect();
    assert!(
        (numbers[0] - 1.0).abs() < 1e-3 && numbers[1] < 0.999,
        "{said}"
    );
}

/// Some replies are read, some left at once or in between, and every conversation goes on afterwards.
#[test]
fn conversations_are_tasks() {
    let said = run("stream", &["10"]);
    let numbers = said.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u32> = numbers.filter_map(|n| n.parse().ok()).collect();
    assert_eq!(numbers.iter().sum::<u32>(), 10, "{said}");
    assert!(numbers[1] > 0, "{said}");
}

/// Breaks when the engine needs to know the name of an architecture, or reads another one than it is given.
#[test]
fn an_architecture_can_be_given() {
    let said = run("architecture", &[]);
    assert!(said.contains("Paris"), "{said}");
}
