// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of all addresses, for programs.

use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;

/// An OpenAPI document. A test compares its addresses with those that are answered, and tests/http what is answered with
/// what it says.
pub const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/openapi.json`
pub async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}
