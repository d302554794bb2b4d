//! The command line: every command with its flags. Help texts and manual pages are made from this file;
//! [`shared`] decides which of the flags in [`Global`] a command has.

pub(crate) mod shared;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Carries a Kubernetes Secret through its whole life, from the external store to the process.
#[derive(Debug, Parser)]
#[command(name = "coffer", bin_name = "coffer", version, max_term_width = 100)]
#[command(after_help = "Start with: coffer demo\n\n\
    Exit codes: 0 done, 1 found a problem or failed, 2 wrong usage,\n\
    3 could not reach or read what was named, 124 timed out.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What several commands understand, before or after the command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of several commands")]
pub(crate) struct Global {
    /// Namespace; that of the kubeconfig's context unless given
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// The kubeconfig file; that of $KUBECONFIG or ~/.kube/config unless given
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; its current one unless given
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Output format
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,

    /// Colours in tables
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,

    /// More log lines; -vv and -vvv for still more
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
    /// Only names
    Name,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the whole chain on a fresh directory: a credential's trip and one rotation
    Demo(Demo),
    /// Run the whole chain in one process: API server, operator, node, keys
    Up(Up),
    /// Run the API server alone; flags are named as kube-apiserver's
    Apiserver(Box<Apiserver>),
    /// Run the operator alone, on any Kubernetes API server; flags as External Secrets Operator's
    Operator(Operator),
    /// Run the node alone; flags are named as the kubelet's
    Node(Node),
    /// Tell the whole life of one Secret, and the first broken link
    Trace(Trace),
    /// Encryption keys
    Keys(KeysCommand),
    /// Tell what is stored under which provider and key, and what is not as it should be
    Audit(Audit),
    /// Explain one stored value: its provider and key, its layout, and what it holds
    Inspect(Inspect),
    /// Run a KMS v2 plugin on a Unix socket, for this or a stock API server
    KmsPlugin(KmsPlugin),
    /// Run a command each time a mounted Secret changes, or print what has changed
    Watch(Watch),
    /// Configuration files
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    Man {
        /// The command that it is about; coffer itself unless given
        command: Vec<String>,
    },
}

/// `coffer demo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Demo {
    /// End after the show; exit code 0 when every step held
    #[arg(long)]
    pub(crate) once: bool,

    /// Directory to use; it must be empty or not exist. A new temporary one unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Take the credential from this OpenBao or Vault instead of the built-in store
    #[arg(long, value_name = "URL", requires = "vault_token_file")]
    pub(crate) vault_addr: Option<String>,

    /// File with the token for it
    #[arg(long, value_name = "FILE", requires = "vault_addr")]
    pub(crate) vault_token_file: Option<PathBuf>,
}

/// `coffer up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Up {
    /// Where keys, certificates, the kubeconfig and the embedded store are
    #[arg(long, value_name = "DIR", default_value = "coffer-data")]
    pub(crate) data_dir: PathBuf,

    /// Address of the API server; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,

    /// Name of the one node
    #[arg(long, value_name = "NAME", default_value = "coffer")]
    pub(crate) node_name: String,
}

/// Where etcd is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EtcdFlags {
    /// etcd's URLs, comma separated; without it the store is embedded
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,

    /// Prefix of all keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(crate) etcd_prefix: String,

    /// Certificate authority of etcd
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    pub(crate) etcd_cafile: Option<PathBuf>,

    /// Client certificate for etcd
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_keyfile"])]
    pub(crate) etcd_certfile: Option<PathBuf>,

    /// Key of the client certificate for etcd
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_certfile"])]
    pub(crate) etcd_keyfile: Option<PathBuf>,
}

/// `coffer apiserver`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Apiserver {
    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,

    /// Directory of the embedded store, instead of --etcd-servers
    #[arg(long, value_name = "DIR", conflicts_with = "etcd_servers")]
    pub(crate) data_dir: Option<PathBuf>,

    /// How long the store may take to answer the health check etcd
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = go_duration)]
    pub(crate) etcd_healthcheck_timeout: Duration,

    /// How long the store may take to answer the health check etcd-readiness
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = go_duration)]
    pub(crate) etcd_readycheck_timeout: Duration,

    /// EncryptionConfiguration; without it nothing is encrypted, as in kube-apiserver
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,

    /// Use the file of --encryption-provider-config anew whenever it changes; without this a change is only told
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) encryption_provider_config_automatic_reload: bool,

    /// Features to switch on or off: KMSv1=true takes KMS plugins of version 1
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,

    /// Certificate authority of client certificates
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Tokens of users: lines of token,user,uid,"group,…"
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Certificate of the server
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: PathBuf,

    /// Key of the server's certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: PathBuf,

    /// Port
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,

    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0")]
    pub(crate) bind_address: std::net::IpAddr,

    /// Address under which clients reach the server, as the OpenID documents tell it; --bind-address unless given
    #[arg(long, value_name = "ADDR")]
    pub(crate) advertise_address: Option<std::net::IpAddr>,

    /// Issuer of service account tokens; the first issues, all are accepted
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) service_account_issuer: Vec<String>,

    /// Addresses of Services
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: coffer_server::service_addresses::Range,

    /// Key that signs service account tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: PathBuf,

    /// Keys that verify service account tokens
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Client certificate for kubelets; without it there are no logs of pods
    #[arg(long, value_name = "FILE", requires_all = ["kubelet_client_key", "kubelet_certificate_authority"])]
    pub(crate) kubelet_client_certificate: Option<PathBuf>,

    /// Key of the client certificate for kubelets
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    pub(crate) kubelet_client_key: Option<PathBuf>,

    /// Certificate authority of kubelets
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    pub(crate) kubelet_certificate_authority: Option<PathBuf>,

    /// Which of a node's addresses to use, in order
    #[arg(
        long,
        value_name = "TYPE,…",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub(crate) kubelet_preferred_address_types: Vec<String>,

    /// Who decides what is allowed, in order: AlwaysAllow, AlwaysDeny, Node, RBAC
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', default_value = "RBAC")]
    pub(crate) authorization_mode: Vec<String>,

    /// Admission plugins beside those that are always on: OwnerReferencesPermissionEnforcement
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
}

/// `coffer watch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "It looks at what is read through the path, as an application would: a volume is\n\
    replaced as a whole by a link, which a watch of the file itself does not see.\n\n\
    Reload nginx: coffer watch /etc/tls -- nginx -s reload\n\
    In a script:  coffer watch /etc/db/password | while read -r path; do reload; done")]
pub(crate) struct Watch {
    /// A mounted volume, or a file in one
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// What to run after each change; without it the path is printed
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `coffer operator`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Operator {
    /// How many ExternalSecrets of one store are worked on at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrent: u16,

    /// Only stores of this class
    #[arg(long, value_name = "CLASS", default_value = "default")]
    pub(crate) controller_class: String,

    /// Install the CustomResourceDefinitions at start
    #[arg(long)]
    pub(crate) install_crds: bool,

    /// Serve the v1beta1 of the definitions too, when they are installed, for clients that still speak it
    #[arg(long, requires = "install_crds")]
    pub(crate) unsafe_serve_v1beta1: bool,

    /// Where metrics are served; 0 for nowhere
    #[arg(long, value_name = "ADDR", default_value = ":8080")]
    pub(crate) metrics_addr: ListenAddress,

    /// Where health is served; 0 for nowhere
    #[arg(long, value_name = "ADDR", default_value = ":8082")]
    pub(crate) live_addr: ListenAddress,

    /// How often a store is validated
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = go_duration)]
    pub(crate) store_requeue_interval: Duration,

    /// Wait for a store to be ready before it is asked for values
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_flood_gate: bool,

    /// Reconcile ClusterSecretStores
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_cluster_store_reconciler: bool,

    /// Reconcile SecretStores
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_secret_store_reconciler: bool,

    /// Refuse to take over a Secret that holds keys of others, instead of dropping them with a warning
    #[arg(long)]
    pub(crate) refuse_foreign_keys: bool,

    /// Note the version of each remote value in an annotation, for `coffer trace`
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) record_source_versions: bool,

    #[command(flatten)]
    pub(crate) election: ElectionFlags,
}

/// Which of several operators acts.
#[derive(Debug, Clone, Args)]
pub(crate) struct ElectionFlags {
    /// Act only while holding a Lease, so that several may run
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_leader_election: bool,

    /// Name of the Lease, in the namespace of the context or the pod
    #[arg(long, value_name = "NAME", default_value = "external-secrets-controller")]
    pub(crate) leader_election_id: String,

    /// How long the others wait after the last renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = go_duration)]
    pub(crate) leader_election_lease_duration: Duration,

    /// How long the leader tries to renew before it steps down
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = go_duration)]
    pub(crate) leader_election_renew_deadline: Duration,

    /// The time between tries
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = go_duration)]
    pub(crate) leader_election_retry_period: Duration,
}

/// An address to listen on as Go writes it: `:8080` for all addresses, `0` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub(crate) Option<SocketAddr>);

impl std::str::FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
        full.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| "write it as IP:PORT, :PORT, or 0".to_owned())
    }
}

fn go_duration(text: &str) -> Result<Duration, String> {
    coffer_providers::duration::parse(text)
}

/// `coffer node`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Node {
    /// Name of the node; the machine's host name unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname_override: Option<String>,

    /// Directory below which the volumes are
    #[arg(long, value_name = "DIR", default_value = "/var/lib/coffer-node")]
    pub(crate) root_dir: PathBuf,
}

/// `coffer trace`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Trace {
    /// The Secret
    #[arg(value_name = "secret/NAME")]
    pub(crate) secret: String,

    /// Its name, when it was typed as kubectl also takes it: secret NAME
    #[arg(hide = true)]
    pub(crate) name: Option<String>,
}

/// `coffer keys`.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeysCommand {
    #[command(subcommand)]
    pub(crate) command: KeysSubcommand,
}

/// What to do with keys.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum KeysSubcommand {
    /// Derive one key from a root secret and a seed bundle; needs no cluster
    ///
    /// Prints the key in base64, as Secrets and EncryptionConfigurations hold it.
    /// Its check value tells nothing of the key and may be shown to anyone: equal
    /// values on two clusters mean equal keys.
    Derive(Derive),
    /// Have the API server store everything anew: under the key of new writes
    ///
    /// Every object is sent a patch that changes nothing, and the server rewrites what it
    /// stores in an old form. Values are never fetched. Run it once every API server has
    /// loaded the configuration with the new key in front.
    Migrate(Migrate),
}

/// `coffer keys migrate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Migrate {
    /// Resources to rewrite: secrets, configmaps, deployments.apps, …
    #[arg(value_name = "RESOURCE", default_value = "secrets")]
    pub(crate) resources: Vec<String>,

    /// Rewrites in a second
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) rate: std::num::NonZeroU32,

    /// Keep the progress in this file, and go on from it; it is removed at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// The server does everything but write
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `coffer keys derive`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Derive {
    /// File with the root secret: 32 bytes, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub(crate) root_file: PathBuf,

    /// Seed of the bundle: 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) seed: String,

    /// Replication group ID
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: String,

    /// Dimension: the lineage of keys inside the group
    #[arg(long, value_name = "DIMENSION", default_value = "default")]
    pub(crate) dimension: String,

    /// Revision, from 0 to 18446744073709551615
    #[arg(long, value_name = "N")]
    pub(crate) revision: u64,

    /// hkdf-sha512-v1 or hkdf-sha256-v1
    #[arg(long, value_name = "ALGORITHM", default_value = "hkdf-sha512-v1")]
    pub(crate) algorithm: String,

    /// How lengths, revision and seed become bytes: LENGTH-REVISION-SEED out of
    /// uint16be|uint16le, u64be|u64le|decimal|varint, raw|hexascii
    #[arg(long, value_name = "PROFILE", default_value = coffer_crypto::derive::DEFAULT_PROFILE)]
    pub(crate) profile: String,

    /// Print the check value instead of the key
    #[arg(long)]
    pub(crate) check_only: bool,
}

/// The store that is looked at. Nothing is written to it, and one that does not exist is not made.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("store").args(["etcd_servers", "snapshot", "data_dir", "api_server"]))]
#[command(mut_arg("etcd_prefix", |argument| argument.conflicts_with("api_server")))]
pub(crate) struct StoreFlags {
    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,

    /// A file of `etcdctl snapshot save`, or the member/snap/db of a stopped member
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,

    /// Directory of an embedded store. While coffer up uses it, that process is asked in its place
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Ask the running coffer API server of the kubeconfig: it reads what it stores, with the keys that
    /// it uses, and sends no value
    #[arg(long)]
    pub(crate) api_server: bool,
}

/// `coffer audit`.
#[derive(Debug, Clone, Args)]
#[command(mut_group("store", |group| group.required(true)))]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// EncryptionConfiguration: every value is opened with its keys
    #[arg(long, value_name = "FILE", conflicts_with = "api_server")]
    pub(crate) config: Option<PathBuf>,

    /// Do not check the hash at the end of the snapshot
    #[arg(long, requires = "snapshot")]
    pub(crate) skip_hash_check: bool,
}

/// `coffer inspect`.
#[derive(Debug, Clone, Args)]
#[command(mut_group("store", |group| group.required(true)))]
pub(crate) struct Inspect {
    /// Key in etcd, such as /registry/secrets/NAMESPACE/NAME
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// File with the raw value instead of a store; - for standard input
    #[arg(long, value_name = "FILE", group = "store")]
    pub(crate) file: Option<PathBuf>,

    /// EncryptionConfiguration: the value is opened with its keys
    #[arg(long, value_name = "FILE", conflicts_with = "api_server")]
    pub(crate) config: Option<PathBuf>,

    /// Print the object itself, secret values included
    #[arg(long, conflicts_with = "api_server")]
    pub(crate) reveal: bool,
}

/// The flags that name a backend of `coffer kms-plugin`.
#[cfg(feature = "pkcs11")]
const BACKENDS: [&str; 3] = ["key_file", "transit_address", "pkcs11_module"];
#[cfg(not(feature = "pkcs11"))]
const BACKENDS: [&str; 2] = ["key_file", "transit_address"];

/// `coffer kms-plugin`.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("backend").required(true).args(BACKENDS))]
pub(crate) struct KmsPlugin {
    /// Socket to serve; its directory is made when it is missing
    #[arg(long, value_name = "unix://PATH", default_value = "unix:///run/coffer/kms.sock")]
    pub(crate) listen: String,

    /// File of keys, lines of NAME: BASE64 of 32 bytes; the first one writes. Add a line at the top to rotate
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// OpenBao or Vault whose transit engine encrypts
    #[arg(long, value_name = "URL", requires = "transit_key", requires = "transit_token_file")]
    pub(crate) transit_address: Option<String>,

    /// Name of the key there
    #[arg(long, value_name = "KEY", requires = "transit_address")]
    pub(crate) transit_key: Option<String>,

    /// Where the engine is mounted
    #[arg(long, value_name = "PATH", default_value = "transit")]
    pub(crate) transit_mount: String,

    /// File with the token; read again when the token is refused
    #[arg(long, value_name = "FILE", requires = "transit_address")]
    pub(crate) transit_token_file: Option<PathBuf>,

    /// Namespace of OpenBao or Vault
    #[arg(long, value_name = "NAMESPACE", requires = "transit_address")]
    pub(crate) transit_namespace: Option<String>,

    /// Certificate authority of OpenBao or Vault; the system's unless given
    #[arg(long, value_name = "FILE", requires = "transit_address")]
    pub(crate) transit_ca_file: Option<PathBuf>,

    #[cfg(feature = "pkcs11")]
    #[command(flatten)]
    pub(crate) pkcs11: Pkcs11Flags,
}

/// A token behind PKCS#11.
#[cfg(feature = "pkcs11")]
#[derive(Debug, Clone, Args)]
pub(crate) struct Pkcs11Flags {
    /// Library of a PKCS#11 token whose key encrypts
    #[arg(long, value_name = "FILE", requires_all = ["pkcs11_token", "pkcs11_key", "pkcs11_pin_file"])]
    pub(crate) pkcs11_module: Option<PathBuf>,

    /// Label of the token
    #[arg(long, value_name = "LABEL", requires = "pkcs11_module")]
    pub(crate) pkcs11_token: Option<String>,

    /// Label of its AES keys; the one with the largest ID writes. Make another one to rotate
    #[arg(long, value_name = "LABEL", requires = "pkcs11_module")]
    pub(crate) pkcs11_key: Option<String>,

    /// File with the PIN; one that was refused is not tried again
    #[arg(long, value_name = "FILE", requires = "pkcs11_module")]
    pub(crate) pkcs11_pin_file: Option<PathBuf>,
}

/// `coffer config`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    pub(crate) command: ConfigSubcommand,
}

/// What to do with configuration files.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConfigSubcommand {
    /// Check files, with the original's exact errors
    Check {
        /// EncryptionConfiguration files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}
