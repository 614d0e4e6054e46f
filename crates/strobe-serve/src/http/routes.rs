// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which address is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use strobe::error::Words;

use super::failure::Failure;
use super::guard::guard;
use super::{Http, late, live, machine, metrics, openapi, page, recipes, rows, runs, trace};

type Route = (&'static str, &'static str, MethodRouter<Arc<Http>>);

/// All there are: method, address, and what answers.
fn routes() -> Vec<Route> {
    vec![
        ("get", "/api", get(machine::about)),
        ("get", "/api/catalogue", get(machine::catalogue)),
        ("get", "/api/runs", get(runs::list)),
        ("post", "/api/runs", post(runs::create)),
        ("get", "/api/runs/{id}", get(runs::show)),
        ("delete", "/api/runs/{id}", delete(runs::remove)),
        ("post", "/api/runs/{id}/start", post(runs::start)),
        ("post", "/api/runs/{id}/stop", post(runs::stop)),
        ("post", "/api/runs/{id}/pause", post(runs::pause)),
        ("post", "/api/runs/{id}/resume", post(runs::resume)),
        ("post", "/api/runs/{id}/trigger", post(runs::trigger)),
        ("post", "/api/runs/{id}/tune", post(runs::tune)),
        ("get", "/api/runs/{id}/rows", get(rows::rows)),
        ("get", "/api/runs/{id}/live", get(live::live)),
        ("get", "/api/runs/{id}/trace", get(trace::trace)),
        ("get", "/api/runs/{id}/late", get(late::late)),
        ("get", "/api/recipes", get(recipes::list)),
        ("put", "/api/recipes/{name}", put(recipes::put)),
        ("get", "/api/get", get(machine::get)),
        ("post", "/api/set", post(machine::set)),
        ("get", "/api/health", get(machine::health)),
        ("get", "/api/openapi.json", get(openapi::openapi)),
        ("get", "/metrics", get(metrics::metrics)),
    ]
}

/// The whole server.
pub fn router(http: &Arc<Http>) -> Router {
    let router = routes().into_iter();
    let router = router.fold(Router::new(), |router, (_, path, route)| {
        router.route(path, route)
    });
    router
        .merge(page::router())
        .fallback(nothing)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(http), guard))
        .with_state(Arc::clone(http))
}

async fn nothing(uri: Uri) -> Failure {
    let words = Words::new(uri.path(), "there is nothing at this address");
    Failure::none(words.mend("docs/reference/serve.md lists the addresses"))
}

async fn no_method(method: Method, uri: Uri) -> Failure {
    let words = Words::new(
        format!("{method} {}", uri.path()),
        "this address does not have this method",
    );
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        words.mend("docs/reference/serve.md lists the methods"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_every_address_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(openapi::DOCUMENT).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let described: BTreeSet<(&str, &str)> = (paths.iter())
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods");
                methods
                    .keys()
                    .map(|method| (method.as_str(), path.as_str()))
            })
            .collect();
        let answered = routes();
        let answered: BTreeSet<(&str, &str)> = (answered.iter())
            .map(|(method, path, _)| (*method, *path))
            .collect();
        assert_eq!(described, answered);
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
