//! The first configuration of a new installation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_types::SecretBytes;
use coffer_types::random::{Random, RandomError};
use zeroize::Zeroizing;

const KEY: usize = 32;

/// A configuration (YAML) that encrypts `resources` by AES-GCM under one new key, `key1`.
///
/// There is no `identity` in it: nothing was ever stored in plaintext, so nothing in
/// plaintext is to be read. A stock kube-apiserver takes the same file.
pub fn generate(resources: &[&str], random: &dyn Random) -> Result<SecretBytes, RandomError> {
    let mut key = Zeroizing::new([0; KEY]);
    random.fill(&mut *key)?;
    let secret = Zeroizing::new(STANDARD.encode(*key));
    let listed: String = resources.iter().map(|resource| format!("  - '{resource}'\n")).collect();
    let parts = [
        "apiVersion: apiserver.config.k8s.io/v1\n",
        "kind: EncryptionConfiguration\n",
        "resources:\n",
        "- resources:\n",
        &listed,
        "  providers:\n",
        "  - aesgcm:\n",
        "      keys:\n",
        "      - name: key1\n",
        "        secret: ",
        &secret,
        "\n",
    ];
    // Joined at once, so that the key is not left behind in a buffer that was too small.
    Ok(SecretBytes::from(parts.concat()))
}
