//! The messages of both versions of the plugin protocol, and of the stored object.
//!
//! Only what carries no secret has a `Debug` that shows it.

use std::fmt;

use super::Annotations;

/// The methods of `v1beta1.KeyManagementService`.
pub mod v1 {
    /// Its name.
    pub const SERVICE: &str = "v1beta1.KeyManagementService";
    /// What a client and its plugin call this version.
    pub const VERSION: &str = "v1beta1";
    /// Asks for the version.
    pub const VERSION_METHOD: &str = "/v1beta1.KeyManagementService/Version";
    /// Encrypts.
    pub const ENCRYPT_METHOD: &str = "/v1beta1.KeyManagementService/Encrypt";
    /// Decrypts.
    pub const DECRYPT_METHOD: &str = "/v1beta1.KeyManagementService/Decrypt";

    /// `VersionRequest`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct VersionRequest {
        /// Of the caller.
        #[prost(string, tag = "1")]
        pub version: String,
    }

    /// `VersionResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct VersionResponse {
        /// Of the plugin.
        #[prost(string, tag = "1")]
        pub version: String,
        /// Name of its vendor.
        #[prost(string, tag = "2")]
        pub runtime_name: String,
        /// Its own version.
        #[prost(string, tag = "3")]
        pub runtime_version: String,
    }

    /// `EncryptRequest`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    #[prost(skip_debug)]
    pub struct EncryptRequest {
        /// Of the caller.
        #[prost(string, tag = "1")]
        pub version: String,
        /// A data key.
        #[prost(bytes = "vec", tag = "2")]
        pub plain: Vec<u8>,
    }

    /// `EncryptResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct EncryptResponse {
        /// The encrypted data key.
        #[prost(bytes = "vec", tag = "1")]
        pub cipher: Vec<u8>,
    }

    /// `DecryptRequest`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct DecryptRequest {
        /// Of the caller.
        #[prost(string, tag = "1")]
        pub version: String,
        /// An encrypted data key.
        #[prost(bytes = "vec", tag = "2")]
        pub cipher: Vec<u8>,
    }

    /// `DecryptResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    #[prost(skip_debug)]
    pub struct DecryptResponse {
        /// A data key.
        #[prost(bytes = "vec", tag = "1")]
        pub plain: Vec<u8>,
    }
}

/// The methods of `v2.KeyManagementService`.
pub mod v2 {
    use super::Annotations;

    /// Its name.
    pub const SERVICE: &str = "v2.KeyManagementService";
    /// Asks for version, health and key.
    pub const STATUS_METHOD: &str = "/v2.KeyManagementService/Status";
    /// Encrypts.
    pub const ENCRYPT_METHOD: &str = "/v2.KeyManagementService/Encrypt";
    /// Decrypts.
    pub const DECRYPT_METHOD: &str = "/v2.KeyManagementService/Decrypt";

    /// `StatusRequest`.
    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub struct StatusRequest {}

    /// `StatusResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct StatusResponse {
        /// `v2` or `v2beta1`.
        #[prost(string, tag = "1")]
        pub version: String,
        /// `ok`, or why not.
        #[prost(string, tag = "2")]
        pub healthz: String,
        /// The key that encrypts now.
        #[prost(string, tag = "3")]
        pub key_id: String,
    }

    /// `EncryptRequest`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    #[prost(skip_debug)]
    pub struct EncryptRequest {
        /// A seed or data key.
        #[prost(bytes = "vec", tag = "1")]
        pub plaintext: Vec<u8>,
        /// Of the call, for logs.
        #[prost(string, tag = "2")]
        pub uid: String,
    }

    /// `EncryptResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct EncryptResponse {
        /// The encrypted seed.
        #[prost(bytes = "vec", tag = "1")]
        pub ciphertext: Vec<u8>,
        /// Of the key that encrypted it.
        #[prost(string, tag = "2")]
        pub key_id: String,
        /// What the plugin wants to see again.
        #[prost(btree_map = "string, bytes", tag = "3")]
        pub annotations: Annotations,
    }

    /// `DecryptRequest`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    pub struct DecryptRequest {
        /// The encrypted seed.
        #[prost(bytes = "vec", tag = "1")]
        pub ciphertext: Vec<u8>,
        /// Of the call, for logs.
        #[prost(string, tag = "2")]
        pub uid: String,
        /// Of the key that encrypted it.
        #[prost(string, tag = "3")]
        pub key_id: String,
        /// As the plugin gave them.
        #[prost(btree_map = "string, bytes", tag = "4")]
        pub annotations: Annotations,
    }

    /// `DecryptResponse`.
    #[derive(Clone, PartialEq, Eq, prost::Message)]
    #[prost(skip_debug)]
    pub struct DecryptResponse {
        /// A seed or data key.
        #[prost(bytes = "vec", tag = "1")]
        pub plaintext: Vec<u8>,
    }
}

/// What stands behind `k8s:enc:kms:v2:NAME:`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EncryptedObject {
    /// The value under a data key.
    #[prost(bytes = "vec", tag = "1")]
    pub encrypted_data: Vec<u8>,
    /// Of the plugin's key.
    #[prost(string, tag = "2")]
    pub key_id: String,
    /// The encrypted seed or data key.
    #[prost(bytes = "vec", tag = "3")]
    pub encrypted_dek_source: Vec<u8>,
    /// As the plugin gave them.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: Annotations,
    /// What the plaintext of the source is; left out when it is a data key.
    #[prost(int32, tag = "5")]
    pub encrypted_dek_source_type: i32,
}

macro_rules! no_content {
    ($($message:ty),*) => {$(
        impl fmt::Debug for $message {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(concat!(stringify!($message), " [REDACTED]"))
            }
        }
    )*};
}

no_content!(v1::EncryptRequest, v1::DecryptResponse, v2::EncryptRequest, v2::DecryptResponse);
