//! The command line. Help texts and the manual page are made from this file.

use std::net::SocketAddr;
use std::path::PathBuf;

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

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Namespace; that of the kubeconfig's context unless given
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// The kubeconfig file
    #[arg(long, global = true, env = "KUBECONFIG", value_name = "FILE")]
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

    /// More log lines; -vv for all
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
    /// Configuration files
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
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
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,

    /// Client certificate for etcd
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,

    /// Key of the client certificate for etcd
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
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

    /// EncryptionConfiguration; without it nothing is encrypted, as in kube-apiserver
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,

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

    /// Issuer of service account tokens; the first issues, all are accepted
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) service_account_issuer: Vec<String>,

    /// Key that signs service account tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: PathBuf,

    /// Keys that verify service account tokens
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Who decides what is allowed, in order: AlwaysAllow, AlwaysDeny, RBAC
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', default_value = "RBAC")]
    pub(crate) authorization_mode: Vec<String>,
}

/// `coffer operator`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Operator {
    /// How many ExternalSecrets are worked on at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) concurrent: usize,

    /// Only stores of this class
    #[arg(long, value_name = "CLASS", default_value = "default")]
    pub(crate) controller_class: String,

    /// Install the CustomResourceDefinitions at start
    #[arg(long)]
    pub(crate) install_crds: bool,
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
