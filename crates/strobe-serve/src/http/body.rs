// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client says in the body of a request.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Number;
use strobe::error::Words;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::failure::Failure;

/// Bytes of a body, at most.
pub const BODY_MAX: usize = 1 << 20;
/// Bytes of a body that nobody wants, at most. After them the connection is closed while the client still sends.
const DISCARDED_MAX: usize = 16 << 20;
/// How long a body that nobody wants may take.
const DISCARDED: Duration = Duration::from_secs(30);

/// A JSON object.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Failure;

    /// Of a request that is whole.
    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let object = format!("body of {}", request.uri().path());
        let mime = request.headers().get(CONTENT_TYPE);
        let mime = mime
            .and_then(|mime| mime.to_str().ok())
            .unwrap_or("")
            .to_owned();
        // No form of another web site has this type.
        if mime.split(';').next().map(str::trim) != Some("application/json") {
            let words = Words::new(object, format!("it is of type `{mime}`"));
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                words.mend("send JSON, with the header content-type: application/json"),
            ));
        }
        let bytes = to_bytes(request.into_body(), BODY_MAX).await;
        let bytes = bytes.map_err(|error| Failure::inner(&object, error.to_string()))?;
        serde_json::from_slice(&bytes)
            .map(JsonBody)
            .map_err(|error| {
                let words = Words::new(object, error.to_string());
                Failure::bad(words.mend("docs/reference/serve.md describes the requests"))
            })
    }
}

/// A whole number of 64 bits, as its word; 5.0 is one, too, in JSON. A negative one is meant as its two's complement.
pub fn word(value: &Number) -> Option<u64> {
    let signed = |number: i64| number as u64;
    let real = || {
        let real = value.as_f64().filter(|real| real.fract() == 0.0)?;
        // Up to where reals are exact.
        (real.abs() <= (1_u64 << 53) as f64).then_some(real as i64 as u64)
    };
    value
        .as_u64()
        .or_else(|| value.as_i64().map(signed))
        .or_else(real)
}

/// The request, when all its body has come.
pub async fn whole(request: Request) -> Result<Request, Failure> {
    let object = format!("body of {}", request.uri().path());
    let connection = request.extensions().get::<Arc<Connection>>();
    let connection =
        connection.ok_or_else(|| Failure::inner(&object, "its connection is not known"))?;
    let (patience, stop) = (connection.place.patience(), connection.stop.clone());
    let (head, body) = request.into_parts();
    let mut parts = body.into_data_stream();
    let failure = tokio::select! {
        // What has come is not refused.
        biased;
        arrived = timeout(patience, collect(&mut parts, &object)) => match arrived {
            Ok(Ok(bytes)) => return Ok(Request::from_parts(head, Body::from(bytes))),
            Ok(Err(failure)) => failure,
            Err(_) => {
                let words = Words::new(object, format!("it did not arrive within {patience:?}"));
                let words = words.mend("send it faster, or raise `patience` in [limits]");
                return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, words));
            }
        },
        () = stop.cancelled() => {
            let words = Words::new(object, "the daemon ends before all of it has arrived");
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, words));
        }
    };
    skip(&mut parts, stop).await;
    Err(failure)
}

async fn collect(parts: &mut BodyDataStream, object: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| {
            let words = Words::new(object, error.to_string());
            Failure::bad(words.mend("send it as its head says"))
        })?;
        if bytes.len() + part.len() > BODY_MAX {
            let words = Words::new(object, "it is too long");
            let words = words.mend(format!("send at most {BODY_MAX} bytes"));
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, words));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// The request, without its body. That is taken, but not kept.
pub async fn discard(request: Request) -> Request {
    let connection = request.extensions().get::<Arc<Connection>>();
    let stop = connection.map(|connection| connection.stop.clone());
    let (head, body) = request.into_parts();
    skip(&mut body.into_data_stream(), stop.unwrap_or_default()).await;
    Request::from_parts(head, Body::empty())
}

/// Takes what comes, until the daemon ends.
async fn skip(parts: &mut BodyDataStream, stop: CancellationToken) {
    let all = async {
        let mut left = DISCARDED_MAX;
        while let Some(Ok(part)) = parts.next().await {
            match left.checked_sub(part.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    tokio::select! {
        _ = timeout(DISCARDED, all) => {}
        () = stop.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |text: &str| word(&serde_json::from_str(text).expect("a number"));
        assert_eq!(
            (read("5"), read("5.0"), read("5e0")),
            (Some(5), Some(5), Some(5))
        );
        assert_eq!((read("-1"), read("-1.0")), (Some(u64::MAX), Some(u64::MAX)));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for none in [
            "0.5",
            "1e300",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
