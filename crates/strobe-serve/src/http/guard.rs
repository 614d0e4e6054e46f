// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every request is asked before anything is done: where it comes from, who it is, and how often.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, ORIGIN,
    REFERRER_POLICY, RETRY_AFTER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use strobe::error::Words;

use super::connection::Connection;
use super::failure::Failure;
use super::page;
use super::{Http, body};
use crate::access::Role;

/// Asks, and lets the request through or not.
pub async fn guard(State(http): State<Arc<Http>>, mut request: Request, next: Next) -> Response {
    let friend = friend(&http, request.headers());
    let mut response = match check(&http, &mut request) {
        Ok(()) => match hear(request).await {
            Ok(request) if friend.is_some() && request.method() == Method::OPTIONS => {
                StatusCode::NO_CONTENT.into_response()
            }
            Ok(request) => next.run(request).await,
            Err(failure) => failure.into_response(),
        },
        Err(failure) => {
            body::discard(request).await;
            failure.into_response()
        }
    };
    let status = response.status();
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE = status {
        // There may be more of its body.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(origin) = friend {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("origin"));
        let allowed = "authorization, content-type";
        headers.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(allowed),
        );
        let allowed = "GET, POST, PUT, DELETE";
        headers.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(allowed),
        );
    }
    response
}

/// The request, with all its body if somebody may want that. Also what nobody wants is waited for: whoever is answered before
/// loses the connection, and with it the next request, if that is on its way already.
async fn hear(request: Request) -> Result<Request, Failure> {
    let may_say = request.extensions().get() == Some(&Role::Control);
    if may_say && matches!(*request.method(), Method::POST | Method::PUT) {
        body::whole(request).await
    } else {
        Ok(body::discard(request).await)
    }
}

fn check(http: &Http, request: &mut Request) -> Result<(), Failure> {
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let connection = connection.ok_or_else(|| Failure::inner("connection", "it is not known"))?;
    host(http, &connection, request.headers(), request.uri())?;
    origin(http, &connection, request)?;
    if !connection.place.may_ask() {
        let words = Words::new("request", "this client sends too many requests");
        return Err(Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            words.mend("send fewer requests, or raise `requests` in [limits]"),
        ));
    }
    let role = role(http, &connection, request)?;
    if let Some(role) = role {
        request.extensions_mut().insert(role);
    }
    Ok(())
}

/// The name by which a client has found the way must be one of this server: a web site can have its own name lead to any
/// address, and its pages may then talk to what is there.
fn host(
    http: &Http,
    connection: &Connection,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Failure> {
    let Some(local) = connection.local else {
        // Nobody comes to a socket in the file system by a name.
        return Ok(());
    };
    let mut said = headers.get_all(HOST).iter();
    let wrong = |name: &str| {
        let words = Words::new(
            format!("host {name}"),
            "this server does not accept this name",
        );
        Failure::new(
            StatusCode::MISDIRECTED_REQUEST,
            words.mend("use its address, or add the name to `hosts` in [http]"),
        )
    };
    let (Some(host), None) = (said.next(), said.next()) else {
        return Err(Failure::bad(
            Words::new("header host", "it must be present once").mend("speak HTTP/1.1"),
        ));
    };
    let host = host.to_str().ok().and_then(|host| host.parse().ok());
    let host: Authority = host.ok_or_else(|| wrong("?"))?;
    for authority in [Some(&host), uri.authority()].into_iter().flatten() {
        let name = authority.host();
        if !goes_by(http, local, name) || authority.as_str().contains('@') {
            return Err(wrong(name));
        }
    }
    Ok(())
}

fn goes_by(http: &Http, local: IpAddr, name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return address == local || (address.is_loopback() && local.is_loopback());
    }
    let mut names = http.names.iter();
    (local.is_loopback() && name.eq_ignore_ascii_case("localhost"))
        || names.any(|own| own.eq_ignore_ascii_case(name))
}

/// A web page of somebody else cannot have its reader's browser talk to this server.
fn origin(http: &Http, connection: &Connection, request: &Request) -> Result<(), Failure> {
    let headers = request.headers();
    let refused = |origin: &str| {
        let words = Words::new(
            format!("origin {origin}"),
            "this server does not accept requests of pages from there",
        );
        Failure::new(
            StatusCode::FORBIDDEN,
            words.mend("add it to `origins` in [http] to accept them"),
        )
    };
    if let Some(origin) = headers.get(ORIGIN) {
        let scheme = if connection.is_secure {
            "https"
        } else {
            "http"
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let own = format!("{scheme}://{}", host.unwrap_or_default());
        let origin = origin.to_str().unwrap_or("?");
        let is_named = http.daemon.config.http.origins.iter().any(|o| o == origin);
        return match origin.eq_ignore_ascii_case(&own) || is_named {
            true => Ok(()),
            false => Err(refused(origin)),
        };
    }
    // Browsers leave the origin out where a page only loads something; to open the live page by a link is no harm.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = matches!(site, Some(b"cross-site" | b"same-site"));
    match is_foreign && !page::is_public(request.uri().path()) {
        true => Err(refused("it comes from another site")),
        false => Ok(()),
    }
}

/// The origin of a page, if it was named in the configuration.
fn friend(http: &Http, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let mut named = http.daemon.config.http.origins.iter();
    named
        .any(|name| name.as_bytes() == origin.as_bytes())
        .then(|| origin.clone())
}

/// The role of the client, if it has shown one; an error if it needs more for this request.
fn role(http: &Http, connection: &Connection, request: &Request) -> Result<Option<Role>, Failure> {
    let is_seen_only = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let needed = if is_seen_only {
        Role::View
    } else {
        Role::Control
    };
    let tokens = match &http.tokens {
        Some(tokens) if connection.local.is_some() => tokens,
        // On this machine: who can reach the socket may use it.
        _ => return Ok(Some(Role::Control)),
    };
    let is_free = page::is_public(request.uri().path()) || *request.method() == Method::OPTIONS;
    let role = match tokens.get() {
        Ok(tokens) => token(request).and_then(|token| tokens.role(&token)),
        // It was said why.
        Err(_) => None,
    };
    match role {
        Some(role) if role >= needed => Ok(Some(role)),
        Some(role) => {
            let words = Words::new(
                format!("{} {}", request.method(), request.uri().path()),
                format!("the role {} may not do this", role.name()),
            );
            Err(Failure::new(
                StatusCode::FORBIDDEN,
                words.mend(format!("use a token of the role {}", needed.name())),
            ))
        }
        None if is_free => Ok(None),
        None => Err(Failure::new(
            StatusCode::UNAUTHORIZED,
            Words::new("token", "it is missing or not known")
                .mend("send the header `authorization: Bearer TOKEN`"),
        )),
    }
}

/// What a client shows of itself. A browser cannot send a header with a WebSocket.
fn token(request: &Request) -> Option<String> {
    if let Some(said) = request.headers().get(AUTHORIZATION) {
        let (scheme, token) = said.to_str().ok()?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned());
    }
    let uri = request.uri();
    let mut pairs = uri.query()?.split('&');
    let token = pairs.find_map(|pair| pair.strip_prefix("token="))?;
    (uri.path().ends_with("/live")).then(|| token.to_owned())
}
