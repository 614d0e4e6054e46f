// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who gets in, and who may do what.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strobe_serve::config::Config;
use strobe_serve::daemon::Daemon;
use strobe_serve::http::Http;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::common::{Answer, PATIENCE, Server, agent, said, wait_until};
use super::{SCAN, SOFT};

const VIEW: &str = "view-0123456789abcdef";
const CONTROL: &str = "control-0123456789abcdef";
const DOCUMENT: &str = include_str!("../../../src/http/openapi.json");

/// A file that only its owner can read.
fn secret(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    path
}

fn with_tokens(folder: &Path) -> Config {
    let mut config = Config::default();
    let text = format!("view {VIEW}\ncontrol {CONTROL}\n");
    config.tokens.file = Some(secret(folder, "tokens", &text));
    config
}

fn status(answer: &str) -> u16 {
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status: {answer}"))
}

/// The status of a request with these lines in its head.
fn asked(server: &Server, first: &str, lines: &[&str]) -> u16 {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    status(&server.raw(&format!(
        "{first} HTTP/1.1\r\nconnection: close\r\n{lines}\r\n"
    )))
}

#[test]
fn a_name_that_is_not_the_servers_is_refused() {
    let mut config = Config::default();
    config.http.hosts = vec!["lab.example.org".to_owned()];
    let server = Server::new(config);
    let get = |host: &str| asked(&server, "GET /api", &[&format!("host: {host}")]);
    for own in [
        "127.0.0.1",
        "localhost:8000",
        "LOCALHOST",
        "[::1]:1",
        "lab.example.org",
        "127.0.0.1:80",
    ] {
        assert_eq!(get(own), 200, "{own}");
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "lab.example.org.evil",
        "a@localhost",
        "",
    ] {
        assert!([400, 421].contains(&get(foreign)), "{foreign}");
    }
    assert_eq!(asked(&server, "GET /api", &[]), 400);
    assert_eq!(
        asked(&server, "GET /api", &["host: localhost", "host: localhost"]),
        400
    );
    assert_eq!(
        asked(&server, "GET http://evil.example/api", &["host: localhost"]),
        421
    );
}

#[test]
fn a_page_of_another_site_cannot_use_it() {
    let mut config = Config::default();
    config.http.origins = vec!["https://friend.example".to_owned()];
    let server = Server::new(config);
    let host = format!("host: {}", server.address);
    let from = |first: &str, origin: &str| {
        asked(
            &server,
            first,
            &[&host, &format!("origin: {origin}"), "content-length: 0"],
        )
    };
    assert_eq!(from("GET /api", &format!("http://{}", server.address)), 200);
    assert_eq!(from("GET /api", "https://friend.example"), 200);
    let foreign = [
        "http://evil.example".to_owned(),
        "null".to_owned(),
        format!("https://{}", server.address),
        "http://127.0.0.1:1".to_owned(),
        "http://friend.example".to_owned(),
    ];
    for origin in &foreign {
        for first in [
            "GET /api",
            "POST /api/runs",
            "GET /api/runs/1/live",
            "DELETE /api/runs/1",
            "OPTIONS /api/runs",
        ] {
            assert_eq!(from(first, origin), 403, "{first} from {origin}");
        }
    }
    assert_eq!(
        asked(&server, "GET /api", &[&host, "sec-fetch-site: cross-site"]),
        403
    );
    assert_eq!(
        asked(&server, "GET /", &[&host, "sec-fetch-site: cross-site"]),
        200
    );
    let preflight = |origin: &str| {
        let request = format!(
            "OPTIONS /api/runs HTTP/1.1\r\nconnection: close\r\n{host}\r\norigin: {origin}\r\n\r\n"
        );
        server.raw(&request).to_lowercase()
    };
    let friend = preflight("https://friend.example");
    assert!(
        friend.contains("access-control-allow-origin: https://friend.example"),
        "{friend}"
    );
    assert!(!preflight("http://evil.example").contains("access-control"));
    assert!(
        !server
            .raw(&format!(
                "GET /api HTTP/1.1\r\nconnection: close\r\n{host}\r\n\r\n"
            ))
            .contains("access-control")
    );
}

#[test]
fn a_token_of_the_role_view_sees_everything_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = with_tokens(folder.path());
    // There is a lot to ask.
    config.limits.requests = u32::MAX;
    let server = Server::new(config);
    let host = format!("host: {}", server.address);
    let with = |first: &str, token: Option<&str>| {
        let token = token.map(|token| format!("authorization: Bearer {token}"));
        let mut lines = vec![
            host.as_str(),
            "content-type: application/json",
            "content-length: 2",
        ];
        lines.extend(token.as_deref());
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        status(&server.raw(&format!(
            "{first} HTTP/1.1\r\nconnection: close\r\n{lines}\r\n{{}}"
        )))
    };
    let made = agent()
        .post(server.url("/api/runs"))
        .header("authorization", format!("Bearer {CONTROL}"))
        .content_type("application/json")
        .send(json!({"recipe": SOFT}).to_string());
    assert_eq!(Answer::of(made).status, 201);
    // The document has all addresses that there are: see http::routes.
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let said = paths
        .values()
        .flat_map(|methods| methods.as_object().expect("methods").keys());
    let said: BTreeSet<String> = said.map(|method| method.to_uppercase()).collect();
    let others = ["HEAD", "PATCH", "TRACE", "LINK", "post"].map(str::to_owned);
    let mut tried = 0;
    for (path, methods) in paths {
        let path = path.replace("{id}", "1").replace("{name}", "scan");
        let query = match path.ends_with("/rows") {
            true => "?follow=false",
            false => "",
        };
        for method in said.iter().chain(&others) {
            let first = format!("{method} {path}{query}");
            assert_eq!(with(&first, None), 401, "{first}");
            assert_eq!(with(&first, Some("not-a-token-of-anybody")), 401, "{first}");
            let seen = with(&first, Some(VIEW));
            match method.as_str() {
                "GET" | "HEAD" => assert!(![401, 403].contains(&seen), "{first}: {seen}"),
                _ => assert_eq!(seen, 403, "{first}"),
            }
            let is_said = said.contains(method) && methods.get(method.to_lowercase()).is_some();
            tried += usize::from(is_said);
        }
    }
    let all = paths.values().filter_map(Value::as_object).map(Map::len);
    assert_eq!(tried, all.sum::<usize>());
    let run = agent()
        .get(server.url("/api/runs/1"))
        .header("authorization", format!("Bearer {VIEW}"));
    let run = Answer::of(run.call()).json();
    assert_eq!(
        (&run["state"], &run["triggers"]),
        (&json!("running"), &json!(0))
    );
    assert_eq!(with("POST /api/runs/1/stop", Some(CONTROL)), 200);
    // The page's files say nothing of the machine.
    assert_eq!(with("GET /", None), 200);
    // A browser cannot send a header with a WebSocket; nowhere else is a token in an address.
    assert_eq!(with(&format!("GET /api?token={VIEW}"), None), 401);
    let url = |token: &str| format!("ws://{}/api/runs/1/live?token={token}", server.address);
    assert!(tungstenite::connect(url(VIEW)).is_ok());
    assert!(tungstenite::connect(url("not-a-token-of-anybody")).is_err());
    assert!(tungstenite::connect(url("")).is_err());
}

#[test]
fn a_token_that_is_taken_out_of_the_file_is_none_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(with_tokens(folder.path()));
    let get = |token: &str| {
        let request = agent().get(server.url("/api"));
        let answer = request.header("authorization", format!("Bearer {token}"));
        Answer::of(answer.call()).status
    };
    assert_eq!((get(VIEW), get(CONTROL)), (200, 200));
    let new = secret(folder.path(), "new", &format!("control {CONTROL}\n"));
    std::fs::rename(&new, folder.path().join("tokens")).expect("a name");
    assert_eq!((get(VIEW), get(CONTROL)), (401, 200));
    // Nobody knows who may get in.
    std::fs::remove_file(folder.path().join("tokens")).expect("removed");
    assert_eq!((get(VIEW), get(CONTROL)), (401, 401));
}

#[test]
fn a_file_of_tokens_that_others_can_read_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = with_tokens(folder.path());
    let path = config.tokens.file.clone().expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let words = Http::new(Arc::new(Daemon::new(config)))
        .err()
        .expect("refused")
        .to_string();
    assert!(words.contains("chmod 0600"), "{words}");
}

/// A certificate of its own for this machine: as PEM, in two files.
fn certificate(folder: &Path, name: &str) -> (strobe_serve::tls::Config, Certificate<'static>) {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]);
    let made = made.expect("a certificate");
    let pem = made.cert.pem();
    let certificate = folder.join(format!("{name}.pem"));
    std::fs::write(&certificate, &pem).expect("written");
    let key = secret(
        folder,
        &format!("{name}.key"),
        &made.signing_key.serialize_pem(),
    );
    let trusted = Certificate::from_pem(pem.as_bytes()).expect("PEM");
    (strobe_serve::tls::Config { certificate, key }, trusted)
}

fn over_tls(server: &Server, trusted: &Certificate<'static>) -> Result<u16, ureq::Error> {
    let roots = RootCerts::new_with_certs(std::slice::from_ref(trusted));
    let tls = TlsConfig::builder().root_certs(roots).build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false);
    let agent: ureq::Agent = config.timeout_global(Some(PATIENCE)).build().into();
    let url = format!("https://localhost:{}/api", server.address.port());
    let answer = agent
        .get(url)
        .header("authorization", format!("Bearer {VIEW}"))
        .call()?;
    Ok(answer.status().as_u16())
}

#[test]
fn connections_are_encrypted_and_a_new_certificate_is_used_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = with_tokens(folder.path());
    let (tls, first) = certificate(folder.path(), "first");
    let (certificate_file, key_file) = (tls.certificate.clone(), tls.key.clone());
    config.http.tls = Some(tls);
    let server = Server::new(config);
    assert_eq!(over_tls(&server, &first).expect("an answer"), 200);
    // Who does not encrypt gets nothing.
    let request =
        format!("GET /api HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {VIEW}\r\n\r\n");
    assert!(!server.raw(&request).contains("200 OK"));
    let (new, second) = certificate(folder.path(), "second");
    assert!(over_tls(&server, &second).is_err());
    std::fs::rename(new.key, &key_file).expect("a name");
    std::fs::rename(new.certificate, &certificate_file).expect("a name");
    assert_eq!(over_tls(&server, &second).expect("an answer"), 200);
    assert!(over_tls(&server, &first).is_err());
    // While the file is wrong, the certificate of before is used.
    std::fs::write(&certificate_file, "no certificate").expect("written");
    assert_eq!(over_tls(&server, &second).expect("an answer"), 200);
}

#[tokio::test]
async fn an_address_that_other_machines_reach_needs_encryption_and_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tls, _) = certificate(folder.path(), "first");
    for (has_tls, has_tokens) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut config = match has_tokens {
            true => with_tokens(folder.path()),
            false => Config::default(),
        };
        config.http.tls = has_tls.then(|| tls.clone());
        config.http.listen = vec!["0.0.0.0:0".to_owned()];
        let http = Http::new(Arc::new(Daemon::new(config))).expect("a server");
        match http.listen().await {
            Ok(listeners) => assert!(has_tls && has_tokens && listeners.len() == 1),
            Err(words) => {
                assert!(!(has_tls && has_tokens));
                assert!(words.remedy.is_some_and(|remedy| remedy.contains("tls")));
            }
        }
        // One that the system has opened for the daemon is no exception.
        let given = tokio::net::TcpListener::bind("0.0.0.0:0")
            .await
            .expect("a port");
        if !(has_tls && has_tokens) {
            assert!(http.serve(given.into()).await.is_err());
        }
    }
    assert_eq!(Config::default().http.listen, ["127.0.0.1:8000"]);
}

#[test]
fn the_socket_in_the_file_system_is_for_the_daemons_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("http");
    let mut config = with_tokens(folder.path());
    config.http.listen.clear();
    config.http.unix = Some(path.clone());
    let daemon = Arc::new(Daemon::new(config));
    let served = Arc::clone(&daemon);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let http = Http::new(served).expect("a server");
            let listener = http
                .listen()
                .await
                .expect("a socket")
                .pop()
                .expect("a socket");
            // One that is in use is not taken away.
            assert!(http.listen().await.is_err());
            http.serve(listener).await.expect("served");
        });
    });
    wait_until("it listens", || UnixStream::connect(&path).is_ok());
    let mode = path.metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let stream = UnixStream::connect(&path).expect("a connection");
    let answer = said(
        stream,
        "GET /api HTTP/1.1\r\nhost: anything\r\nconnection: close\r\n\r\n",
    );
    assert!(
        answer.contains("200 OK") && answer.contains(r#""role":"control""#),
        "{answer}"
    );
    daemon.stop.cancel();
    thread.join().expect("served");
}

#[test]
fn a_recipe_is_written_once_and_never_outside_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        recipes: Some(folder.path().join("recipes")),
        ..Config::default()
    };
    std::fs::create_dir(folder.path().join("recipes")).expect("a folder");
    let server = Server::new(config);
    let text = |recipe: &str| json!({"text": recipe});
    assert_eq!(server.put("/api/recipes/scan", text(SCAN)).status, 201);
    assert_eq!(server.put("/api/recipes/scan", text(SOFT)).status, 409);
    assert_eq!(
        server
            .put("/api/recipes/scan?overwrite=true", text(SOFT))
            .status,
        200
    );
    let listed = server.get("/api/recipes").json();
    assert_eq!(listed, json!({"recipes": [{"name": "scan", "text": SOFT}]}));
    for name in ["..%2Fx", "%2Fetc%2Fx", "a.b", "%2e%2e", "a%00b", ".scan"] {
        let answer = server.put(&format!("/api/recipes/{name}"), text(SCAN));
        assert!(
            [400, 404].contains(&answer.status),
            "{name}: {}",
            answer.text()
        );
    }
    let with_sink = format!("{SCAN}sinks = [\"/nonexistent/x.h5\"]\n");
    assert_eq!(
        server.put("/api/recipes/sink", text(&with_sink)).status,
        422
    );
    let files = std::fs::read_dir(folder.path().join("recipes")).expect("a folder");
    assert_eq!(files.count(), 1);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
    let made = server.post("/api/runs", json!({"name": "scan", "start": false}));
    assert_eq!(
        (made.status, made.json()["name"].as_str()),
        (201, Some("scan"))
    );
}
