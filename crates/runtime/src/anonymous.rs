//! A client configuration without any identity.

use kube::Config;

/// Asks the same server as `config`, as nobody.
///
/// It starts from an empty configuration and takes over how the server is reached and verified. What it does not
/// name is not taken over: tokens, certificates, exec plugins, passwords, impersonation and headers.
pub fn anonymous(config: &Config) -> Config {
    let mut new = Config::new(config.cluster_url.clone());
    new.root_cert.clone_from(&config.root_cert);
    new.root_cert_file.clone_from(&config.root_cert_file);
    new.accept_invalid_certs = config.accept_invalid_certs;
    new.tls_server_name.clone_from(&config.tls_server_name);
    new.proxy_url.clone_from(&config.proxy_url);
    new.connect_timeout = config.connect_timeout;
    new.read_timeout = config.read_timeout;
    new.write_timeout = config.write_timeout;
    new.default_namespace.clone_from(&config.default_namespace);
    new
}

#[cfg(test)]
mod tests {
    use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The head of the request that a client of `config` sends.
    async fn sent(listener: &TcpListener, config: Config) -> String {
        let client = kube::Client::try_from(config).unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 8192];
            let read = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
            String::from_utf8(head[..read].to_vec()).unwrap().to_lowercase()
        };
        let request = http::Request::get("/version").body(Vec::new()).unwrap();
        let (head, answer) = tokio::join!(server, client.request::<serde_json::Value>(request));
        answer.unwrap();
        head
    }

    #[tokio::test]
    async fn s13_an_anonymous_client_carries_no_identity() {
        // What a kubeconfig may hold of a user, each alone; the mark in the request of the client that has it.
        let users = [
            (json!({"token": "canary-token"}), "bearer canary-token"),
            (json!({"username": "canary", "password": "word"}), "basic y2fuyxj5ondvcmq="),
            (
                json!({"token": "canary-token", "as": "canary-user", "as-groups": ["canary-group"]}),
                "impersonate-user: canary-user",
            ),
            (
                json!({"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "interactiveMode": "Never",
                    "args": [json!({
                        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                        "status": {"token": "canary-token"},
                    }).to_string()],
                }}),
                "bearer canary-token",
            ),
        ];
        for (user, mark) in users {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = format!("http://{}", listener.local_addr().unwrap());
            let kubeconfig: Kubeconfig = serde_json::from_value(json!({
                "clusters": [{"name": "k", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "current-context": "c",
            }))
            .unwrap();
            let options = KubeConfigOptions::default();
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            config.headers.push((
                http::HeaderName::from_static("x-canary"),
                http::HeaderValue::from_static("canary-header"),
            ));
            let with = sent(&listener, config.clone()).await;
            assert!(
                with.contains(mark) && with.contains("canary-header"),
                "{mark}: the identity is there at first"
            );
            let without = sent(&listener, anonymous(&config)).await;
            assert!(!without.contains("canary"), "{without}");
            assert!(!without.contains("authorization") && !without.contains("impersonate"), "{without}");
        }
    }

    #[test]
    fn s13_nothing_of_an_identity_is_taken_over() {
        let mut config = Config::new("https://server:6443/path".parse().unwrap());
        config.root_cert = Some(vec![vec![1]]);
        config.tls_server_name = Some("name".to_owned());
        config.auth_info = serde_json::from_value(json!({
            "username": "u", "password": "p", "token": "t", "tokenFile": "/f",
            "client-certificate": "/c", "client-certificate-data": "Yw==",
            "client-key": "/k", "client-key-data": "aw==",
            "as": "other", "as-groups": ["g"],
            "auth-provider": {"name": "p", "config": {}},
            "exec": {"command": "c", "apiVersion": "client.authentication.k8s.io/v1"},
        }))
        .unwrap();
        let nobody = anonymous(&config);
        let shown = |info: &AuthInfo| serde_json::to_value(info).unwrap();
        assert_ne!(shown(&config.auth_info), shown(&AuthInfo::default()));
        assert_eq!(shown(&nobody.auth_info), shown(&AuthInfo::default()));
        assert!(nobody.headers.is_empty());
        assert_eq!((nobody.cluster_url, nobody.root_cert), (config.cluster_url, config.root_cert));
        assert_eq!(nobody.tls_server_name, config.tls_server_name);
    }
}
