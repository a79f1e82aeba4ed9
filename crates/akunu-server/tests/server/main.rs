//! A server with a real, small model, asked over sockets.
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod audio;
mod cached;
mod cancelled;
mod chat;
mod client;
mod completions;
mod described;
mod dialects;
mod embeddings;
mod forms;
mod hostile;
mod llama;
mod metrics;
mod ollama;
mod responses;
mod schema;
mod settings;
mod structure;
mod together;
mod tools;

use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::thread::JoinHandle;

use akunu::{CpuOptions, Device, Model, ModelOptions};
use akunu_server::{Handle, Served, Server, ServerError, ServerOptions, Source};
use serde_json::{Value, json};

/// A server that runs until it is dropped.
struct Running {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
    /// A model computes on all cores: two servers at once would take longer than one after the other.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

/// The model, loaded once for all tests: where answers do not depend on how many rows are computed together.
fn smollm2() -> Model {
    static MODEL: LazyLock<Model> = LazyLock::new(|| {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        let exact = CpuOptions {
            exact: true,
            ..CpuOptions::default()
        };
        Model::open_on(path, Device::Cpu(exact)).unwrap()
    });
    MODEL.clone()
}

/// A server with SmolLM2 under two names.
fn serve(change: impl FnOnce(&mut ServerOptions)) -> Running {
    serve_pinned(change, "")
}

/// The same; the model of this name stays loaded.
fn serve_pinned(change: impl FnOnce(&mut ServerOptions), pinned: &str) -> Running {
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let mut options = ServerOptions {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        context: Some(512),
        ..ServerOptions::default()
    };
    change(&mut options);
    let sources = ["smollm2", "second"].map(|name| Source {
        pinned: name == pinned,
        ..Source::new(name, || Ok(smollm2().into()))
    });
    start(options, sources.into(), alone)
}

/// A server with the model in the folder of an asset, which has this file.
fn serve_asset(asset: &'static str, file: &'static str) -> Running {
    serve_asset_with(asset, file, ServerOptions::default())
}

fn serve_asset_with(asset: &'static str, file: &'static str, options: ServerOptions) -> Running {
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let options = ServerOptions {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..options
    };
    start(options, vec![asset_source(asset, file)], alone)
}

fn serve_source(source: Source) -> Running {
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let options = ServerOptions {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerOptions::default()
    };
    start(options, vec![source], alone)
}

/// A fetched model under the name of its asset.
fn asset_source(asset: &'static str, file: &'static str) -> Source {
    let open = move || {
        let path = akunu_assets::path(asset, file);
        let folder = path.parent().unwrap();
        Ok(Served::open(folder, Device::Auto, ModelOptions::default())?)
    };
    Source::new(asset, open)
}

fn start(options: ServerOptions, sources: Vec<Source>, alone: MutexGuard<'static, ()>) -> Running {
    let server = Server::bind(options, sources).unwrap();
    Running {
        address: server.address().unwrap(),
        handle: server.handle(),
        thread: Some(std::thread::spawn(move || server.run())),
        _alone: alone,
    }
}

impl Running {
    /// Waits for the server to end by itself.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }

    /// A value of `/metrics`.
    fn metric(&self, name: &str) -> f64 {
        let text = client::get(self.address, "/metrics").text();
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")));
        let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// Waits until a value of `/metrics` is as wanted.
    #[track_caller]
    fn wait_for(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        for _ in 0..2000 {
            if wanted(self.metric(name)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{name} stays {}", self.metric(name));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.shut_down();
        self.handle.shut_down();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A question with an answer that is the same every time.
fn question(text: &str, max_tokens: usize) -> Value {
    json!({
        "model": "smollm2",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": max_tokens,
        "temperature": 0,
    })
}

/// A question whose answer does not end by itself.
fn endless(text: &str) -> Value {
    let mut asked = question(text, 400);
    asked["ignore_eos"] = true.into();
    asked["stream"] = true.into();
    asked
}
