// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live page: files of `web/dist` that are part of the program.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;

/// What the browser lets the page do: use its own files, and ask the daemon that it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const FILES: [File; 4] = [
    File {
        path: "/",
        kind: "text/html; charset=utf-8",
        bytes: include_bytes!("../../web/dist/index.html"),
    },
    File {
        path: "/page.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../web/dist/page.js"),
    },
    File {
        path: "/page.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../../web/dist/page.css"),
    },
    File {
        path: "/page.svg",
        kind: "image/svg+xml",
        bytes: include_bytes!("../../web/dist/page.svg"),
    },
];

/// Whether this is a file of the page. They say nothing of the machine: whoever may connect may have them, and the page then
/// asks for a token, if one is needed.
pub fn is_public(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// The page's files.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move || async move { answer(file) }))
    })
}

fn answer(file: &'static File) -> impl IntoResponse {
    // Another version of the daemon has another page.
    let headers = [
        (CONTENT_TYPE, file.kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, file.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < 200_000, "{bytes} bytes");
    }

    #[test]
    fn the_page_names_no_other_place() {
        for file in &FILES {
            let text = str::from_utf8(file.bytes).unwrap();
            let elsewhere = text
                .match_indices("://")
                .map(|(at, _)| &text[at.saturating_sub(5)..(at + 30).min(text.len())])
                // The name of a vocabulary, which is never asked for.
                .find(|place| !place.contains("www.w3.org/2000/svg"));
            assert_eq!(elsewhere, None, "in {}", file.path);
        }
    }

    #[test]
    fn the_page_has_no_script_or_style_in_itself() {
        let text = str::from_utf8(FILES[0].bytes).unwrap();
        assert!(!text.contains("<style") && !text.contains("style="));
        assert!(!text.contains("onclick=") && !text.contains("javascript:"));
        assert_eq!(text.matches("<script").count(), 1);
    }

    #[test]
    fn only_the_files_of_the_page_are_of_the_page() {
        assert!(is_public("/") && is_public("/page.js"));
        assert!(!is_public("/api") && !is_public("/page.js/x") && !is_public(""));
    }
}
