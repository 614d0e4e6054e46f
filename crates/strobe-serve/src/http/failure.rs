// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client is told when it does not get what it asked for.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use strobe::error::Words;

/// A status, and the object, the reason and the remedy.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    words: Words,
    lost: Option<(u64, u64)>,
}

impl Failure {
    /// Of this status.
    pub fn new(status: StatusCode, words: Words) -> Failure {
        Failure {
            status,
            words,
            lost: None,
        }
    }

    /// The request is wrong.
    pub fn bad(words: Words) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, words)
    }

    /// There is no such thing.
    pub fn none(words: Words) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, words)
    }

    /// It cannot be done as things are.
    pub fn conflict(words: Words) -> Failure {
        Failure::new(StatusCode::CONFLICT, words)
    }

    /// It was understood, and this machine cannot do it.
    pub fn refused(words: Words) -> Failure {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, words)
    }

    /// These rows are not there any more.
    pub fn lost(words: Words, from: u64, to: u64) -> Failure {
        Failure {
            lost: Some((from, to)),
            ..Failure::new(StatusCode::GONE, words)
        }
    }

    /// The daemon itself is at fault.
    pub fn inner(object: &str, error: impl ToString) -> Failure {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Words::new(object, error.to_string()),
        )
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Words {
            object,
            reason,
            remedy,
        } = self.words;
        let mut body = json!({"object": object, "reason": reason, "remedy": remedy});
        if let Some((from, to)) = self.lost {
            body["lost"] = json!([from, to]);
        }
        (self.status, Json(body)).into_response()
    }
}

/// Does what may take a while on a thread that may wait.
///
/// # Errors
/// The work's own, or its thread has died.
pub async fn blocking<T: Send + 'static>(
    object: &'static str,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Failure::inner(object, error)))
}
