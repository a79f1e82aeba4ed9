//! One connection: HTTP/1.1 with limits on what a client may send and how long it may take.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::options::Limits;
use crate::server::Phase;

/// Answers the requests of a connection until the client closes it, or the server ends.
pub(crate) async fn serve(
    stream: TcpStream,
    service: Router,
    limits: Limits,
    mut phase: watch::Receiver<Phase>,
) {
    // Tokens are small, and each is to go out at once.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.reading)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        // An error here is the client's: it went away, or spoke no HTTP.
        _ = connection.as_mut() => return,
        _ = phase.wait_for(|phase| *phase > Phase::Open) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
