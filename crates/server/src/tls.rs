//! TLS: the server's certificate, and the checks of clients' certificates.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graviola::util::is_cpu_supported;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::config::settings::{AuthClients, TlsSettings};

const NO_CPU: &str = "TLS needs a processor with AES, AVX2 and ADX, or a 64-bit ARM with AES";
const NO_AUTHORITIES: &str =
    "tls-auth-clients needs tls-ca-cert-file; `tls-auth-clients no` asks for none";

/// Reads the files in the settings; `None` if TLS is off. An error says which of them is invalid.
pub fn read(settings: &TlsSettings) -> Result<Option<Arc<ServerConfig>>, String> {
    if settings.port == 0 {
        return Ok(None);
    }
    if !is_cpu_supported() {
        return Err(NO_CPU.into());
    }
    let needed =
        |path: &Option<PathBuf>, name| path.clone().ok_or_else(|| format!("tls-port needs {name}"));
    let cert_file = needed(&settings.cert_file, "tls-cert-file")?;
    let key_file = needed(&settings.key_file, "tls-key-file")?;
    let key = PrivateKeyDer::from_pem_file(&key_file)
        .map_err(|error| failed(&key_file, "private key", &error))?;
    let provider = Arc::new(rustls_graviola::default_provider());
    let unusable = |error: rustls::Error| of_file(&cert_file, &error);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(settings.protocols)
        .map_err(unusable)?;
    let builder = match (settings.auth_clients, &settings.ca_cert_file) {
        (AuthClients::No, _) => builder.with_no_client_auth(),
        (_, None) => return Err(NO_AUTHORITIES.into()),
        (wanted, Some(path)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| of_file(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = if wanted == AuthClients::Optional {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            let verifier = verifier.build();
            let verifier = verifier.map_err(|error| of_file(path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(certificates(&cert_file)?, key);
    Ok(Some(Arc::new(config.map_err(unusable)?)))
}

/// The certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| failed(path, "certificate", &error);
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong)?;
    if found.is_empty() {
        return Err(wrong(pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn failed(path: &Path, what: &str, error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => of_file(path, error),
        error => of_file(path, &format_args!("no {what} in PEM form: {error}")),
    }
}

fn of_file(path: &Path, problem: &dyn Display) -> String {
    format!("{}: {problem}", path.display())
}
