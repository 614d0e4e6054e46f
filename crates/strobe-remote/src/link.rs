// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to one server, and the words for what goes wrong on the way.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use strobe::error::{Error, Words};
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, RequestBuilder};

use crate::access::{Access, Hints};

/// For a connection to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// A server that says that it was asked too often is asked again, so often and so long.
const AGAIN: Duration = Duration::from_millis(100);
const TOO_OFTEN: Duration = Duration::from_secs(30);
/// An answer that is no rows is not longer than this.
const ANSWER: u64 = 64 << 20;

/// What helps where nobody trusts the server.
const UNTRUSTED: &str = "give the certificate of its authority, or its own certificate";

/// Where systems have the certificates of the authorities that they trust.
const TRUSTED: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// A server, and how to speak to it.
pub(crate) struct Link {
    url: String,
    token: Option<String>,
    agent: Agent,
    hints: Hints,
}

/// What a server says of a request that it refuses.
#[derive(Deserialize)]
struct Refusal {
    object: String,
    reason: String,
    remedy: Option<String>,
}

impl Link {
    /// To the server at this URL. Nothing is sent yet.
    pub(crate) fn new(url: &str, access: &Access) -> Result<Self, Error> {
        let wrong = |why: &str| {
            let words = Words::new(url, why);
            Error::Server(words.mend("write http://HOST:PORT or https://HOST:PORT"))
        };
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        let is_secret = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it is not the URL of a server")),
        };
        if uri.query().is_some() {
            return Err(wrong("it must not have a query"));
        }
        if access.token.is_some() && !is_secret && !is_loopback(host) {
            let words = Words::new(url, "anybody on the network could read the token");
            return Err(Error::Server(words.mend(format!(
                "use https, or leave out the token{}",
                access.hints.token
            ))));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // What measures is on the same network.
            .proxy(None)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(access.patience))
            .timeout_per_write(Some(access.patience))
            .user_agent(concat!("strobe/", env!("CARGO_PKG_VERSION")));
        if is_secret {
            let tls = TlsConfig::builder().root_certs(roots(access.ca.as_deref())?);
            config = config.tls_config(tls.build());
        }
        Ok(Link {
            url: url.trim_end_matches('/').to_owned(),
            token: access.token.clone(),
            agent: config.build().into(),
            hints: access.hints,
        })
    }

    /// The server's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The answer to a question, in JSON.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Error> {
        self.json(self.open(path, query)?)
    }

    /// The answer to a request, in JSON.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(|error| self.foreign(&error.to_string()))?;
        let answer = self.ask(|| {
            let request = self.agent.post(format!("{}{path}", self.url));
            let request = self.admitted(request.header("content-type", "application/json"));
            request.send(&body)
        });
        self.json(answer?)
    }

    /// Something is not to be there any more.
    pub(crate) fn delete(&self, path: &str) -> Result<(), Error> {
        let url = format!("{}{path}", self.url);
        let answer = self.ask(|| self.admitted(self.agent.delete(&url)).call());
        answer.map(|_| ())
    }

    /// An answer whose body is read by and by.
    pub(crate) fn open(&self, path: &str, query: &[(&str, &str)]) -> Result<Response<Body>, Error> {
        self.ask(|| {
            let request = self.agent.get(format!("{}{path}", self.url));
            let request = request.query_pairs(query.iter().copied());
            self.admitted(request).call()
        })
    }

    /// The answer to a request. One that came too soon after others was not heard, and is made again.
    fn ask(
        &self,
        request: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, Error> {
        let begun = Instant::now();
        loop {
            let answer = request().map_err(|error| self.failed(&error))?;
            let is_refused = answer.status() == StatusCode::TOO_MANY_REQUESTS;
            if !is_refused || begun.elapsed() > TOO_OFTEN {
                return self.granted(answer);
            }
            sleep(AGAIN);
        }
    }

    /// The request, with the token if there is one.
    fn admitted<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// An error of what is not strobe's server, or not of this version.
    pub(crate) fn foreign(&self, why: &str) -> Error {
        let words = Words::new(&self.url, format!("its answer is not understood: {why}"));
        Error::Server(words.mend(
            "check that strobe serve listens there and no other program; then install both from one release",
        ))
    }

    /// The answer, if it is none of an error.
    fn granted(&self, answer: Response<Body>) -> Result<Response<Body>, Error> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.into_body().into_with_config().limit(ANSWER);
        let body = body.read_to_vec().unwrap_or_default();
        let Ok(refusal) = serde_json::from_slice::<Refusal>(&body) else {
            return Err(match status.as_u16() {
                401 => self.no_token("it asks for a token"),
                _ => self.foreign(&format!("HTTP status {status}")),
            });
        };
        let object = format!("{}: {}", self.url, refusal.object);
        let words = Words::new(object, refusal.reason);
        Err(match (status.as_u16(), refusal.remedy) {
            (401, None) => self.no_token(&words.reason),
            (_, Some(remedy)) => Error::Server(words.mend(remedy)),
            (_, None) => Error::Server(words),
        })
    }

    fn no_token(&self, why: &str) -> Error {
        let words = Words::new(&self.url, why);
        Error::Server(words.mend(format!("give a token that it knows{}", self.hints.token)))
    }

    fn json<T: DeserializeOwned>(&self, answer: Response<Body>) -> Result<T, Error> {
        let body = answer.into_body().into_with_config().limit(ANSWER);
        let body = body.read_to_vec().map_err(|error| self.failed(&error))?;
        serde_json::from_slice(&body).map_err(|error| self.foreign(&error.to_string()))
    }

    fn failed(&self, error: &ureq::Error) -> Error {
        let (reason, remedy) = why(error);
        let words = Words::new(&self.url, reason);
        Error::Server(match remedy {
            Some(UNTRUSTED) => words.mend(format!("{UNTRUSTED}{}", self.hints.ca)),
            Some(remedy) => words.mend(remedy),
            None => words,
        })
    }
}

/// The reason and the remedy of an error on the way.
fn why(error: &ureq::Error) -> (String, Option<&'static str>) {
    use ureq::Error::{HostNotFound, Io, Protocol, Timeout};
    let (reason, remedy) = match error {
        HostNotFound => no_host(),
        Timeout(_) => (
            format!("not reachable, or it does not answer ({error})"),
            "check that it runs, and that no firewall is in between",
        ),
        Io(error) => return why_io(error),
        Protocol(error) => (
            format!("it does not speak HTTP ({error})"),
            "correct the port; if it speaks TLS, write https://",
        ),
        error => return (error.to_string(), None),
    };
    (reason, Some(remedy))
}

fn why_io(error: &io::Error) -> (String, Option<&'static str>) {
    let text = error.to_string();
    let (reason, remedy) = match error.kind() {
        io::ErrorKind::ConnectionRefused => (
            "refused: nothing listens there".to_owned(),
            "start strobe serve there, or correct the port",
        ),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => (
            format!("not reachable ({text})"),
            "check that it runs, and check the network",
        ),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => (
            "it closed the connection".to_owned(),
            "check that it runs; if it speaks TLS, write https://",
        ),
        // The library of the system has no kind for it.
        _ if text.contains("lookup") => no_host(),
        _ if text.contains("certificate") => (
            format!("its certificate is not trusted ({text})"),
            UNTRUSTED,
        ),
        io::ErrorKind::InvalidData => (
            format!("it does not speak TLS ({text})"),
            "correct the port, or write http://",
        ),
        _ => return (text, None),
    };
    (reason, Some(remedy))
}

fn no_host() -> (String, &'static str) {
    let reason = "no host of this name was found";
    (reason.to_owned(), "correct the name, or write its address")
}

/// Why the body of an answer ended too early.
pub(crate) fn cut(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(ureq::Error::Timeout(_)) => "the server does not answer".to_owned(),
        Some(error) => why(error).0,
        None => why_io(error).0,
    }
}

fn is_loopback(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whom to trust: these authorities, or those that the system trusts.
fn roots(ca: Option<&Path>) -> Result<RootCerts, Error> {
    let Some(path) = ca else {
        let system = TRUSTED.iter().find_map(|path| std::fs::read(path).ok());
        let certificates = system.map_or_else(Vec::new, |pem| certificates(&pem));
        return Ok(match certificates.is_empty() {
            true => RootCerts::WebPki,
            false => RootCerts::new_with_certs(&certificates),
        });
    };
    let failed = |why: String| {
        let words = Words::new(path.display().to_string(), why);
        Error::Server(words.mend("give a file with PEM certificates"))
    };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let certificates = certificates(&pem);
    match certificates.is_empty() {
        true => Err(failed("it has no certificate".to_owned())),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}

fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    let items = parse_pem(pem).filter_map(Result::ok);
    let certificates = items.filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    certificates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_has_only_those_options_that_its_program_has() {
        let mut access = Access {
            token: Some("secret".to_owned()),
            ..Access::default()
        };
        let said = |access: &Access| {
            let refused = Link::new("http://192.0.2.1:8000", access).err();
            refused.expect("a refusal").to_string()
        };
        assert!(
            said(&access).ends_with("or leave out the token"),
            "{}",
            said(&access)
        );
        access.hints.token = " (--token FILE)";
        assert!(said(&access).ends_with("or leave out the token (--token FILE)"));
    }
}
