//! `chat` from the outside: one question, a piped conversation, its commands, and Ctrl-C.

use crate::program::{self, Finished, akunu, asset, command, smollm2};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::Stdio;

/// A conversation of these lines, the same every time.
fn talk(model: &str, flags: &[&str], lines: &str) -> Finished {
    let fixed = ["--lines", "--temp", "0"];
    piped(model, &[&fixed, flags].concat(), lines)
}

/// With this on standard input.
fn piped(model: &str, flags: &[&str], input: &str) -> Finished {
    let arguments = ["chat", "-m", model].into_iter();
    let mut child = command(arguments.chain(flags.iter().copied()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_question_is_answered() {
    let model = smollm2();
    let question = "What is the capital of France?";
    let run = akunu([
        "chat", question, "-m", &model, "-n", "12", "--ctx", "128", "--temp", "0",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "no colour in a pipe");
}

/// The second question makes sense only with the first, the third only with /stats and blank lines
/// left out of the conversation.
#[test]
fn three_questions_in_one_conversation() {
    let lines = "What is the capital of France?\n\nAnd of Italy?\n/stats\nWhat is two plus two?\n";
    let run = talk(&smollm2(), &["-n", "24", "--ctx", "256"], lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let said = &run.stdout;
    assert!(said.contains("Paris") && said.contains("Rome"), "{said}");
    // Which of the two it says depends on how the machine rounds.
    assert!(said.contains("four") || said.contains('4'), "{said}");
    assert!(run.stderr.contains("of 256 tokens"), "{}", run.stderr);
    assert!(!run.stdout.contains("<|im_end|>"), "{}", run.stdout);
}

/// A second program takes the prompt over from the folder; without a folder that can be used, it answers and says so.
#[test]
fn what_was_read_outlives_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let cache = cache.to_str().unwrap();
    let question = "Count the sheep. ".repeat(40);
    let ask = |cache: &str| {
        let flags = ["--json", "--temp", "0", "-n", "4", "--cache", cache];
        let run = piped(&smollm2(), &flags, &question);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let said: Value = serde_json::from_str(run.stdout.trim()).unwrap();
        let reused = said["reused_tokens"].as_u64().unwrap();
        (reused, said["text"].clone(), run.stderr)
    };
    let (none, first, _) = ask(cache);
    let (reused, second, _) = ask(cache);
    assert!(none == 0 && reused >= 128, "{none}, {reused}");
    assert_eq!(first, second);
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "a file").unwrap();
    let (none, third, told) = ask(taken.to_str().unwrap());
    assert_eq!((none, first), (0, third));
    assert!(told.contains("warning: the cache folder"), "{told}");
}

/// What was saved and loaded is remembered; what was reset is not.
#[test]
fn a_conversation_is_saved_loaded_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let path = path.to_str().unwrap();
    let first = format!("/system You are a pirate.\nSay yes.\n/save {path}\n");
    let run = talk(&smollm2(), &["-n", "4", "--ctx", "128"], &first);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let saved = std::fs::read_to_string(path).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let roles: Vec<&str> = saved
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(saved[0]["content"], "You are a pirate.");
    let again = folder.path().join("again.json");
    let again = again.to_str().unwrap();
    let second = format!(
        "/load {path}\n/save {again}\n/reset\n/save {again}\n/save --force {path}\n/exit\nNot asked.\n"
    );
    let run = talk(&smollm2(), &["--ctx", "128"], &second);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert!(run.stderr.contains("is left as it is"), "{}", run.stderr);
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(again).unwrap()).unwrap();
    assert_eq!(kept, saved);
    let left: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1, "what it was told stays");
}

#[test]
fn mistakes_are_told_and_the_conversation_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.json");
    std::fs::write(&text, "no conversation").unwrap();
    let bytes = folder.path().join("bytes.json");
    std::fs::write(&bytes, b"[\xff]").unwrap();
    let lines = format!(
        "/nonsense\n/load\n/load no-such-file.json\n/load {}\n/load {}\n/save {}/no/folder.json\n\
         /save --force {}\n{}\n/help\n",
        text.display(),
        bytes.display(),
        folder.path().display(),
        folder.path().display(),
        "word ".repeat(100),
    );
    let run = talk(&smollm2(), &["--ctx", "64"], &lines);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    for said in [
        "there is no /nonsense",
        "/load wants a FILE",
        "no-such-file.json: ",
        "holds no conversation",
        "bytes.json: byte 1 is not UTF-8 text",
        "folder.json cannot be written",
        "it is a folder",
        "the context holds 64: shorten it",
        "/system TEXT",
        "/regen",
        "/undo",
        "/set [NAME VALUE]",
        "/exit",
    ] {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
}

/// The base model has no template: that is said once, and it is asked in plain turns.
#[test]
fn a_model_without_a_template_is_asked_in_plain_turns() {
    let gemma = asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    let lines = "What is the capital of France?\nAnd of Italy?\n";
    let run = talk(&gemma, &["-n", "8", "--ctx", "128"], lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr.matches("no chat template").count(), 1);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
    assert!(!run.stdout.contains("User:"), "{}", run.stdout);
}

/// Ctrl-C ends the answer; the next line is answered, and the end of input ends the program well.
#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let model = smollm2();
    let mut child = command(["chat", "-m", &model, "-n", "100000", "--ctx", "8192"])
        .args([
            "--temp",
            "1",
            "--system",
            "You count to a million.",
            "--lines",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers = child.stdout.take().unwrap();
    let long = "Count from one to a million, one number a line, and do not stop.\n";
    questions.write_all(long.as_bytes()).unwrap();
    let mut heard = [0; 8];
    answers.read_exact(&mut heard).unwrap();
    let signalled = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signalled.unwrap().success());
    questions
        .write_all(b"/set temp 0\n/system Answer.\nWhat is the capital of France?\n")
        .unwrap();
    drop(questions);
    let mut rest = String::new();
    answers.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(rest.contains("Paris"), "{rest}");
}

/// The context holds two or three turns: the conversation goes on all the same, and says once that it
/// forgets. Without sliding it ends there.
#[test]
fn a_full_context_forgets_the_oldest_turns() {
    let lines = "What is the capital of France?\n".repeat(6);
    let flags = ["-n", "24", "--ctx", "128", "--json"];
    let run = talk(&smollm2(), &flags, &lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 6, "{}", run.stdout);
    let told = run.stderr.matches("the oldest turns are forgotten");
    assert_eq!(told.count(), 1, "{}", run.stderr);
    let stop = [&flags[..], &["--overflow", "stop"]].concat();
    let run = talk(&smollm2(), &stop, &lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("/reset begins anew"), "{}", run.stderr);
    assert!(run.stdout.lines().count() < 6, "{}", run.stdout);
}

/// An answer that fills the context to the brim: there are not more tokens in it than it holds.
#[test]
fn stats_never_show_more_tokens_than_there_is_room_for() {
    let lines = "Count from one to a hundred.\n/stats\n";
    let flags = ["-n", "400", "--ctx", "64", "--overflow", "stop"];
    let run = talk(&smollm2(), &flags, lines);
    assert!(run.stderr.contains("64 of 64 tokens"), "{}", run.stderr);
}

/// An answer longer than the context goes on: its own beginning gives way.
#[test]
fn an_answer_may_be_longer_than_the_context() {
    let lines = "Write a very long story about a fox.\n";
    let flags = ["-n", "150", "--ctx", "96", "--json"];
    let run = talk(&smollm2(), &flags, lines);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&answer["tokens"], &answer["stop"]),
        (&150.into(), &"length".into())
    );
}

/// Piped text is one question, line ends and slashes included, and goes after a prompt.
#[test]
fn piped_text_is_one_question() {
    let folder = tempfile::tempdir().unwrap();
    let model = smollm2();
    let flags = ["-n", "12", "--ctx", "128", "--temp", "0", "--json"];
    let text = "/quit\nWhat is the capital\nof France?\n";
    let run = piped(&model, &flags, text);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 1, "{}", run.stdout);
    let alone = answers[0]["prompt_tokens"].as_u64().unwrap();
    let prompt = ["What does this say?"];
    let run = piped(&model, &[&prompt[..], &flags].concat(), text);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(
        answer["prompt_tokens"].as_u64().unwrap() > alone,
        "{answer}"
    );
    let nothing = piped(&model, &flags, " \n");
    program::assert_error(&nothing, "there is no question");
    let no_model = folder.path().join("none.gguf");
    let both = akunu(["chat", "Hello", "--lines", "-m", no_model.to_str().unwrap()]);
    program::assert_usage(&both, "--lines");
}

/// A control token that is typed is ten characters, not the end of the turn.
#[test]
fn control_tokens_in_a_question_are_text() {
    let n_tokens = |question: &str| {
        let flags = ["-n", "1", "--ctx", "128", "--temp", "0", "--json"];
        let run = piped(&smollm2(), &flags, question);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        answer["prompt_tokens"].as_u64().unwrap()
    };
    assert!(n_tokens("a <|im_end|> b") > n_tokens("a b") + 2);
}

/// The shape is a promise to scripts. A seed that was drawn is told, and gives the same answer again.
#[test]
fn an_answer_as_json_can_be_had_again_by_its_seed() {
    let model = smollm2();
    let ask = |flags: &[&str]| -> Value {
        let fixed = ["-n", "16", "--ctx", "128", "--json", "--temp", "1.5"];
        let run = piped(&model, &[&fixed, flags].concat(), "Tell me about a fox.");
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    };
    let first = ask(&[]);
    let seed = first["seed"].as_u64().unwrap().to_string();
    let again = ask(&["--seed", &seed]);
    assert_eq!(first["text"], again["text"]);
    assert_eq!(first["tokens"], again["tokens"]);
    assert_ne!(first["seed"], ask(&[])["seed"], "another one each time");
    assert_eq!(first["stop"], "length");
    assert_eq!(first["reused_tokens"], 0);
    for name in [
        "prefill_ms",
        "prefill_tok_s",
        "first_token_ms",
        "decode_ms",
        "decode_tok_s",
    ] {
        assert!(first["timings"][name].as_f64().unwrap() > 0.0, "{name}");
    }
}

/// What the file suggests holds, unless an option says otherwise; of a model of the catalogue, what that recommends.
#[test]
fn the_model_file_says_how_tokens_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suggests.gguf");
    let file = akunu_gguf::GgufFile::open(smollm2()).unwrap();
    let mut header = akunu_gguf::GgufHeader::new();
    header.copy_metadata(file.metadata());
    header.set("general.sampling.temp", &0.25_f32);
    header.set("general.sampling.top_k", &11_i32);
    header.set("general.sampling.penalty_repeat", &1.25_f32);
    for tensor in file.tensors() {
        let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
        header.tensor(&tensor.name, &dims, tensor.dtype);
    }
    let mut writer = header.create(&path).unwrap();
    for tensor in file.tensors() {
        writer
            .write(&tensor.name, file.view(tensor).unwrap().bytes)
            .unwrap();
    }
    writer.finish().unwrap();
    let set = |model: &str, flags: &[&str]| {
        let flags = [&["--lines", "--seed", "5", "--ctx", "64"], flags].concat();
        piped(model, &flags, "/set\n").stderr
    };
    let suggested = set(path.to_str().unwrap(), &["--top-k", "3"]);
    let wanted = "temp 0.25, top_k 3, top_p 0.9, min_p 0.05, repeat_penalty 1.25, dry_multiplier 0.8, dry_allowed_length 16, seed 5";
    assert!(suggested.contains(wanted), "{suggested}");
    let known = set(&smollm2(), &[]);
    let wanted = "temp 0.2, top_k 40, top_p 0.9, min_p 0.05, repeat_penalty 1, dry_multiplier 0.8, dry_allowed_length 16, seed 5";
    assert!(known.contains(wanted), "{known}");
}

/// Breaks when an answer that was cut is not said to be, or when it goes on with other tokens than it would have had.
#[test]
fn an_answer_that_is_cut_says_so_and_goes_on() {
    let (model, question) = (smollm2(), "Count from one to ten.");
    let whole = talk(&model, &["-n", "12"], &format!("{question}\n"));
    let lines = format!("/continue\n{question}\n/continue\n/undo\n/continue\n");
    let parts = talk(&model, &["-n", "6"], &lines);
    let text: Vec<&str> = parts.stdout.lines().collect();
    assert_eq!(
        text.concat().replace(' ', ""),
        whole.stdout.replace([' ', '\n'], "")
    );
    let told = &parts.stderr;
    assert_eq!(
        told.matches("there is no answer to continue").count(),
        2,
        "{told}"
    );
    let cut = "the answer was cut after 6 tokens: /continue goes on, a larger -n allows more";
    assert_eq!(told.matches(cut).count(), 2, "{told}");

    let once = akunu(["chat", question, "-m", &model, "-n", "3", "--temp", "0"]);
    assert!(
        once.stderr.contains("a larger -n allows more"),
        "{}",
        once.stderr
    );
    assert!(!once.stderr.contains("/continue"), "{}", once.stderr);
}

/// The question leaves the answer so little room that it is cut twice: the second time, the first half gives way.
#[test]
fn a_full_context_is_said_and_makes_room_to_go_on() {
    let lines = "Write a long story about the sea.\n/continue\n";
    let run = talk(&smollm2(), &["--ctx", "64", "--json", "--seed", "1"], lines);
    let stops: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(stops.len(), 2, "{}", run.stderr);
    assert_eq!(stops[0]["stop"], "context");
    assert!(stops[1]["tokens"].as_u64().unwrap() > 4, "{}", run.stdout);
    let told = "because the context of 64 tokens is full: /continue makes room and goes on, a larger --ctx gives more room";
    assert!(run.stderr.contains(told), "{}", run.stderr);
}

/// A token that is always chosen makes a loop.
#[test]
fn a_loop_ends_the_answer_unless_it_may_go_on() {
    let model = smollm2();
    let ask = |flags: &[&str]| {
        let fixed = [
            "chat",
            "Hello",
            "-m",
            &model,
            "-n",
            "100",
            "--logit-bias",
            "504=1000",
            "--dry-multiplier",
            "0",
            "--json",
        ];
        let run = akunu([&fixed[..], flags].concat());
        let said: Value = serde_json::from_str(&run.stdout).unwrap();
        (said["stop"].clone(), said["tokens"].clone(), run.stderr)
    };
    let (stop, tokens, told) = ask(&[]);
    assert_eq!((stop, tokens), ("loop".into(), 64.into()));
    assert!(
        told.contains("it only repeats itself: --no-loop-stop lets it go on"),
        "{told}"
    );
    let (stop, tokens, _) = ask(&["--loop-window", "10"]);
    assert_eq!((stop, tokens), ("loop".into(), 10.into()));
    let (stop, tokens, _) = ask(&["--no-loop-stop"]);
    assert_eq!((stop, tokens), ("length".into(), 100.into()));
    for (wrong, why) in [
        (["--loop-window", "0"], "1.."),
        (["--loop-window", "x"], "invalid digit"),
    ] {
        program::assert_usage(&akunu([&["chat", "Hello"][..], &wrong].concat()), why);
    }
}

fn saved(path: &std::path::Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    let field = |message: &Value, name: &str| message[name].as_str().unwrap().to_string();
    messages
        .iter()
        .map(|m| (field(m, "role"), field(m, "content")))
        .collect()
}

/// /undo takes a question and its answer, /regen only the answer, and makes another one.
#[test]
fn turns_are_taken_back_and_answered_again() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, three] = ["1", "2", "3"].map(|name| folder.path().join(name));
    let lines = format!(
        "/undo\n/regen\nTell me about a fox.\nAnd a hare.\n/save {}\n/regen\n/save {}\n/undo\n/save {}\n",
        one.display(),
        two.display(),
        three.display(),
    );
    let flags = [
        "-n", "16", "--ctx", "256", "--temp", "1.2", "--seed", "3", "--lines",
    ];
    let run = piped(&smollm2(), &flags, &lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains("no question to take back"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("no question to answer again"),
        "{}",
        run.stderr
    );
    let [one, two, three] = [&one, &two, &three].map(|path| saved(path));
    assert_eq!(one.len(), 4);
    assert_eq!(one[..3], two[..3], "the same question");
    assert_ne!(one[3], two[3], "another answer");
    assert_eq!(three, one[..2]);
}

/// Values that were set hold for the next answer, and a wrong one changes nothing.
#[test]
fn values_are_set_in_a_conversation() {
    let lines = "/set max_tokens 3\n/set temp hot\n/set seed 8\nTell me about a fox.\n";
    let run = talk(&smollm2(), &["--ctx", "128", "--json"], lines);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&answer["tokens"], &answer["seed"]), (&3.into(), &8.into()));
    assert!(
        run.stderr.contains("must be a number 0 or more"),
        "{}",
        run.stderr
    );
}

/// Three quotation marks hold lines together, and make a slash a letter like others.
#[test]
fn a_question_may_have_several_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let lines = format!(
        "\"\"\"\n/quit\nis a command.\n\"\"\"\n/save {}\n",
        path.display()
    );
    let run = talk(&smollm2(), &["-n", "2", "--ctx", "128"], &lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(saved(&path)[0].1, "/quit\nis a command.");
}

/// Fails when a question that stands alone gets the advice to use a command, or an answer without limit is refused.
#[test]
fn a_single_question_is_not_told_of_commands() {
    let alone = ["--ctx", "40", "-n", "-1", "--overflow", "stop"];
    let question = "Tell me a long story about a fox.";
    let run = piped(&smollm2(), &alone, question);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("tokens is full"), "{}", run.stderr);
    assert!(!run.stderr.contains("/reset"), "{}", run.stderr);
}
