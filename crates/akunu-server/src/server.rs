//! A server: it listens, answers, and ends in order.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::app::App;
use crate::connection::{self, Phase};
use crate::error::ServerError;
use crate::guard;
use crate::guests::Guests;
use crate::models::Models;
use crate::options::ServerOptions;
use crate::router;
use crate::source::Source;

/// A server that is bound to its address, and not yet running.
pub struct Server {
    listener: TcpListener,
    app: App,
    phase: watch::Sender<Phase>,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct Handle(watch::Sender<Phase>);

impl Handle {
    /// Asks the server to end: it takes no more connections, and answers what was asked before. The second time it ends
    /// at once.
    pub fn shut_down(&self) {
        self.0.send_modify(|phase| {
            *phase = match *phase {
                Phase::Open => Phase::Closing,
                Phase::Closing | Phase::Closed => Phase::Closed,
            }
        });
    }
}

impl Server {
    /// Binds the address and loads the first model; the others are loaded when somebody asks for them.
    pub fn bind(options: ServerOptions, sources: Vec<Source>) -> Result<Server, ServerError> {
        guard::check(&options)?;
        let models = Models::new(sources, &options)?;
        let address = options.address;
        let bound = TcpListener::bind(address);
        let listener = bound.map_err(|source| ServerError::Bind { address, source })?;
        listener.set_nonblocking(true)?;
        models.load_first()?;
        Ok(Server {
            listener,
            app: App::new(options, models),
            phase: watch::Sender::new(Phase::Open),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, ServerError> {
        Ok(self.listener.local_addr()?)
    }

    /// What ends it.
    pub fn handle(&self) -> Handle {
        Handle(self.phase.clone())
    }

    /// Answers until the [handle](Server::handle) ends it.
    pub fn run(self) -> Result<(), ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // They read bodies and prompts, and load models; the cores are for the models.
            .max_blocking_threads(8)
            .build()?;
        let done = runtime.block_on(self.serve());
        // Whoever still loads a model is not waited for.
        runtime.shutdown_background();
        done
    }

    async fn serve(self) -> Result<(), ServerError> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let limits = self.app.options.limits;
        let guests = Arc::new(Guests::new(limits.connections));
        let service = router::service(self.app.clone());
        let mut phase = self.phase.subscribe();
        if let Some(keep) = self.app.options.keep {
            tokio::spawn(unload_idle(self.app.clone(), keep));
        }
        loop {
            let next = async {
                let stream = listener.accept().await.ok()?.0;
                Some((stream, guests.admit().await))
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                _ = phase.wait_for(|phase| *phase > Phase::Open) => break,
            };
            let Some((stream, guest)) = accepted else {
                // Too many open files, most likely.
                guests.make_room();
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let (service, phase) = (service.clone(), phase.clone());
            let serving = connection::serve(stream, service, limits, phase, Arc::clone(&guest));
            let guests = Arc::clone(&guests);
            tokio::spawn(async move {
                serving.await;
                guests.left(&guest);
            });
        }
        drop(listener);
        tokio::select! {
            () = guests.all_left() => {}
            _ = phase.wait_for(|phase| *phase == Phase::Closed) => {}
        }
        Ok(())
    }
}

/// Looks for models that are not used, a few times in the time that they are kept.
async fn unload_idle(app: App, keep: Duration) {
    loop {
        tokio::time::sleep((keep / 4).clamp(Duration::from_millis(10), Duration::from_secs(10)))
            .await;
        app.models.unload_idle(keep);
    }
}
