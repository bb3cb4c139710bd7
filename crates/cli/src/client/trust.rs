//! TLS: which servers a client trusts, and what it shows to them.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::login::ServerArgs;

/// Reads the files that the flags name.
pub(super) fn read(args: &ServerArgs) -> Result<Arc<ClientConfig>, String> {
    if !graviola::util::is_cpu_supported() {
        return Err(
            "TLS needs a processor with AES, AVX2 and ADX, or a 64-bit ARM with AES".into(),
        );
    }
    let mut roots = RootCertStore::empty();
    match &args.cacert {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        // Some of the system's may be damaged; the others are good.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
    let (Some(cert), Some(key_file)) = (&args.cert, &args.cert_key) else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| {
        format!(
            "{}: no private key in PEM form: {error}",
            key_file.display()
        )
    })?;
    let config = builder.with_client_auth_cert(certificates(cert)?, key);
    let config = config.map_err(|error| format!("{}: {error}", cert.display()))?;
    Ok(Arc::new(config))
}

/// The certificates of a file, one at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{}: no certificate in PEM form: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{}: no certificate in PEM form", path.display()));
    }
    Ok(found)
}
