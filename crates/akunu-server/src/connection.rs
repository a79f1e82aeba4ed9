//! One connection: HTTP/1.1 with limits on what a client may send and how long it may take.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::guests::{Asked, Guest};
use crate::options::Limits;

/// How long a request that has begun to come may take to its end when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How a server is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes connections.
    Open,
    /// It takes no more, and answers what was asked.
    Closing,
    /// It ends at once.
    Closed,
}

/// Answers the requests of a connection until the client closes it, it has to make room, or the server ends.
pub(crate) async fn serve(
    stream: TcpStream,
    service: Router,
    limits: Limits,
    mut phase: watch::Receiver<Phase>,
    guest: Arc<Guest>,
) {
    // Tokens are small, and each is to go out at once.
    let _ = stream.set_nodelay(true);
    let answering = Arc::clone(&guest);
    let answer = service_fn(move |request: Request<Incoming>| {
        let asked = Arc::new(OnceLock::new());
        let request = request.map(|body| Received::new(body, &answering, &asked));
        let service = service.clone();
        async move {
            let response: Result<Response<Body>, Infallible> = service.oneshot(request).await;
            response.map(|response| {
                response.map(|body| Counted {
                    body,
                    _asked: asked,
                })
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.reading)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    tokio::select! {
        // An error here is the client's: it went away, or spoke no HTTP.
        _ = connection.as_mut() => return,
        () = guest.must_leave() => return,
        _ = phase.wait_for(|phase| *phase > Phase::Open) => {}
    }
    let is_answered = guest.is_answered();
    connection.as_mut().graceful_shutdown();
    if !is_answered {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = sleep(LAST_WORDS) => {}
        }
        if !guest.is_answered() {
            return;
        }
    }
    let _ = connection.await;
}

/// The body of a request. Its client counts as being answered from the body's end on: one that does not send what it
/// announced has to make room like one that says nothing.
struct Received {
    body: Incoming,
    guest: Arc<Guest>,
    asked: Arc<OnceLock<Asked>>,
}

impl Received {
    fn new(body: Incoming, guest: &Arc<Guest>, asked: &Arc<OnceLock<Asked>>) -> Received {
        let received = Received {
            body,
            guest: Arc::clone(guest),
            asked: Arc::clone(asked),
        };
        received.look();
        received
    }

    /// Counts the request if nothing more of it will come.
    fn look(&self) {
        if self.body.is_end_stream() {
            self.asked.get_or_init(|| self.guest.asks());
        }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) {
            self.asked.get_or_init(|| self.guest.asks());
        } else {
            self.look();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, whose client counts as being answered until it is written.
struct Counted {
    body: Body,
    _asked: Arc<OnceLock<Asked>>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
