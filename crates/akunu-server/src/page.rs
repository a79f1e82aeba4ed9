//! The page to talk to, embedded in the program.
//!
//! It sends requests to this server only: the policy below lets a browser load and run nothing else, and no text can become a
//! script.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What a browser may do for the page: load these files, and ask this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Path, type and content of each file.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("page/index.html")),
    ("/page/style.css", CSS, include_str!("page/style.css")),
    (
        "/page/icon.svg",
        "image/svg+xml",
        include_str!("page/icon.svg"),
    ),
    ("/page/app.js", JS, include_str!("page/app.js")),
    ("/page/code.js", JS, include_str!("page/code.js")),
    ("/page/markdown.js", JS, include_str!("page/markdown.js")),
    ("/page/store.js", JS, include_str!("page/store.js")),
    ("/page/talk.js", JS, include_str!("page/talk.js")),
    ("/page/view.js", JS, include_str!("page/view.js")),
];

/// Whether the page is made of this, which everybody may see.
pub(crate) fn has(path: &str) -> bool {
    FILES.iter().any(|(file, ..)| *file == path)
}

/// A file of the page.
pub(crate) async fn page(uri: axum::http::Uri) -> Response {
    let found = FILES.iter().find(|(path, ..)| *path == uri.path());
    let Some((_, kind, content)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, *content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a script or a style would be refused by the policy, or when the page sends requests elsewhere.
    #[test]
    fn the_page_needs_nothing_that_the_policy_forbids() {
        for (path, _, content) in FILES {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "style=\"",
                "onclick=",
            ] {
                assert!(!content.contains(forbidden), "{path} has {forbidden}");
            }
        }
        let (_, _, html) = FILES[0];
        for part in html
            .split(['"', '\''])
            .filter(|part| part.starts_with("/page/"))
        {
            assert!(has(part), "{part} is not there");
        }
        assert!(!html.contains("://"), "the page loads from nowhere else");
        let scripts = FILES.iter().filter(|(path, ..)| path.ends_with(".js"));
        let imports = scripts.flat_map(|(_, _, content)| content.split("from \"./").skip(1));
        for import in imports {
            let name = import.split('"').next().unwrap_or_default();
            assert!(has(&format!("/page/{name}")), "{name} is not there");
        }
    }
}
