//! `serve` with names, and with a file of models.

use crate::program::{akunu, assert_error, assert_usage, command, smollm2};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;

fn written(folder: &tempfile::TempDir, text: &str) -> String {
    let path: PathBuf = folder.path().join("serve.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

/// The list at `/v1/models` of a server with these arguments, and its stderr.
fn listed(args: &[&str]) -> (serde_json::Value, String) {
    let mut server = command([&["serve", "--port", "0"], args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.as_mut().unwrap());
    out.read_line(&mut line).unwrap();
    let address = line.trim_end().rsplit_once("http://");
    let body = address.map(|(_, address)| {
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("GET /v1/models HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_string()
    });
    server.kill().unwrap();
    let done = server.wait_with_output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    let body = body.unwrap_or_else(|| panic!("{told}"));
    (serde_json::from_str(&body).unwrap(), told)
}

/// Breaks when a file's models are not served as it says, or when a context that is too long for a model gives no warning.
#[test]
fn a_file_names_the_models_and_their_settings() {
    let folder = tempfile::tempdir().unwrap();
    let model = smollm2();
    let config = written(
        &folder,
        &format!(
            "default-model = \"coder\"\n\n[[model]]\nmodel = \"{model}\"\nname = \"coder\"\nalias = [\"gpt-4o\"]\ncontext = 9000\n"
        ),
    );
    let (list, told) = listed(&["--config", &config, "--alias", "gpt-5=coder"]);
    let names: Vec<&str> = (list["data"].as_array().unwrap().iter())
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["coder", "gpt-4o", "gpt-5"]);
    assert_eq!(list["data"][0]["meta"]["context"], 9000);
    let warning = "the context is longer than what the model was trained for";
    assert!(told.contains(warning), "{told}");

    let (_, told) = listed(&["-m", &model, "--ctx", "8192"]);
    assert!(!told.contains(warning), "{told}");
}

/// Breaks when a mistake is noticed by the first client, or without the line on which it is.
#[test]
fn what_cannot_be_served_is_told_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let model = smollm2();
    let entry = format!("[[model]]\nmodel = \"{model}\"\nname = \"coder\"\n");
    for (text, names) in [
        ("[[model]\n", "serve.toml, line 1: "),
        (
            &format!("{entry}contxt = 7\n"),
            "serve.toml, line 4: unknown field `contxt`",
        ),
        (
            "\n[[model]]\nmodel = \"./none.gguf\"\n",
            "serve.toml, line 3: ./none.gguf",
        ),
        (
            &format!("{entry}draft = \"./none.gguf\"\n"),
            "serve.toml, line 4: ./none.gguf",
        ),
        (
            &format!("{entry}lora = [\"./none.gguf\"]\n"),
            "serve.toml, line 4: lora: there is no file ./none.gguf",
        ),
        (
            &format!("default-model = \"other\"\n{entry}"),
            "serve.toml, line 1: default-model other: no model of this name is served",
        ),
    ] {
        let config = written(&folder, text);
        assert_error(&akunu(["serve", "--port", "0", "--config", &config]), names);
    }
    let serve = |args: &[&str]| akunu([&["serve", "--port", "0", "-m", &model], args].concat());
    assert_error(
        &serve(&["--alias", "gpt-4o=other"]),
        "--alias other: no model of this name is served",
    );
    assert_error(
        &serve(&["--default-model", "other"]),
        "--default-model other: no model of this name is served",
    );
    assert_error(
        &serve(&["-m", "second.gguf", "--draft", &model]),
        "--draft is for one model, and 2 are served",
    );
    assert_usage(&serve(&["--alias", "gpt-4o"]), "gpt-4o=smollm2");
}
