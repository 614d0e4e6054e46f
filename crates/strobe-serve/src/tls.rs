// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encryption of connections: a certificate, which is read anew when its file changes.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto};
use serde::Deserialize;
use strobe::error::Words;

use crate::access::secret;
use crate::file_watch::FileWatch;

/// Where the certificate is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// PEM file of the certificate, and of those that vouch for it.
    pub certificate: PathBuf,
    /// PEM file of its key, which only the owner can read.
    pub key: PathBuf,
}

/// The certificate, now.
pub struct Tls(FileWatch<Arc<ServerConfig>>);

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// They cannot be read, do not belong together, or others can read the key.
    pub fn new(config: &Config) -> Result<Self, Words> {
        let Config { certificate, key } = config.clone();
        let paths: [&Path; 2] = [&config.certificate, &config.key];
        FileWatch::new(&paths, move || load(&certificate, &key)).map(Tls)
    }

    /// What a new connection is made with. While the files are wrong, this is what they said before.
    pub fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        Arc::clone(&self.0.last()).as_ref().clone().into()
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Words> {
    let wrong = |path: &Path, why: String| {
        Words::new(format!("tls {}", path.display()), why)
            .mend("give a certificate and its key, both in PEM")
    };
    let text = std::fs::File::open(certificate);
    let text = text.map_err(|error| wrong(certificate, error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(BufReader::new(text)).collect();
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it has no certificate".to_owned()));
    }
    let text = secret(key, "tls")?;
    let private = PrivateKeyDer::from_pem_slice(text.as_bytes());
    let private = private.map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config = config.map_err(|error| wrong(certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
