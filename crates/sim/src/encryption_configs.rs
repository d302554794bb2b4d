//! EncryptionConfigurations and what kube-apiserver 1.37 says to them.
//!
//! Tests of `config` hold our loader to the texts, and the texts to the original; those of the command line hold
//! `coffer config check` to them. The configurations are JSON, which is YAML too.

/// A key of 32 bytes in base64.
pub const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// One configuration.
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// The text of the file.
    pub config: String,
    /// What we say; "" when the configuration is good.
    pub expected: String,
    /// Whether the original says something else: what it says holds a key.
    pub differs: bool,
}

const HEAD: &str = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration""#;
const PARSING: &str = "error while parsing file: ";
const DECODING: &str =
    "error while parsing file: error decoding encryption provider configuration file \"encryption.yaml\": ";
const BUILDING: &str = "error while building transformers: ";

/// A file of this kind with further members.
fn file(members: &str) -> String {
    format!("{HEAD}{members}}}")
}

/// A file with one rule for Secrets.
fn providers(providers: &str) -> String {
    file(&format!(r#","resources":[{{"resources":["secrets"],"providers":{providers}}}]"#))
        .replace("$KEY", KEY)
}

/// A file with one rule of plaintext for `names`.
fn resources(names: &str) -> String {
    file(&format!(r#","resources":[{{"resources":{names},"providers":[{{"identity":{{}}}}]}}]"#))
}

fn case(name: &'static str, config: String, at: &str, expected: &str) -> Case {
    Case { name, config, expected: format!("{at}{expected}"), differs: false }
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = kinds();
    cases.extend(types());
    cases.extend(strictness());
    cases.extend(structure());
    cases.extend(names());
    cases.extend(keys());
    cases.extend(kms());
    cases.extend(masking());
    cases.extend(yaml());
    cases
}

fn kinds() -> Vec<Case> {
    let kind = |name, version: &str, kind: &str, expected| {
        let rules = r#""resources":[{"resources":["secrets"],"providers":[{"identity":{}}]}]"#;
        case(name, format!(r#"{{"apiVersion":"{version}","kind":"{kind}",{rules}}}"#), "", expected)
    };
    let unregistered = |name, version: &str, of: &str| {
        let mut case = kind(name, version, of, "");
        case.expected = format!(
            "{DECODING}no kind \"{of}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        case
    };
    let redacted = |name, config: &str, what: &str| Case {
        differs: true,
        ..case(name, config.to_owned(), DECODING, &format!("Object '{what}' is missing in 'REDACTED'"))
    };
    vec![
        case("JSON that ends too early", r#"{"apiVersion":"apiserver.config.k8s.io/v1","#.to_owned(), DECODING, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        case("empty", String::new(), PARSING, "error while loading file: encryption provider configuration file \"encryption.yaml\" is empty"),
        redacted("null", "null", "Kind"),
        redacted("no kind, with a key inside", &format!(r#"{{"apiVersion":"v1","secret":"{KEY}"}}"#), "Kind"),
        redacted("no version", r#"{"kind":"X"}"#, "apiVersion"),
        case("text", "\"abc\"".to_owned(), DECODING, "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"),
        case("list", "[\"a\"]".to_owned(), DECODING, "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"),
        case("kind is a number", r#"{"apiVersion":"v1","kind":3}"#.to_owned(), DECODING, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string"),
        case("version of three parts", r#"{"apiVersion":"a/b/c","kind":"X"}"#.to_owned(), DECODING, "unexpected GroupVersion string: a/b/c"),
        kind("TestLegacyConfig", "v1", "EncryptionConfig", ""),
        kind("current", "apiserver.config.k8s.io/v1", "EncryptionConfiguration", ""),
        unregistered("unknown kind", "apiserver.config.k8s.io/v1", "X"),
        unregistered("unknown version", "apiserver.config.k8s.io/v9", "EncryptionConfiguration"),
        unregistered("alpha version", "apiserver.config.k8s.io/v1alpha1", "EncryptionConfiguration"),
        unregistered("old kind in the new group", "apiserver.config.k8s.io/v1", "EncryptionConfig"),
        unregistered("new kind in the old group", "v1", "EncryptionConfiguration"),
        unregistered("a Secret", "v1", "Secret"),
        case("another kind of the group", r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[]}"#.to_owned(), PARSING, "got unexpected config type: apiserver.config.k8s.io/v1, Kind=AuthorizationConfiguration"),
    ]
}

fn types() -> Vec<Case> {
    let wrong = |name, config, what: &str, field: &str, of: &str| {
        case(
            name,
            config,
            DECODING,
            &format!("json: cannot unmarshal {what} into Go struct field {field} of type {of}"),
        )
    };
    let rules = "EncryptionConfiguration.resources";
    let key = "Key.resources.providers.aesgcm.keys";
    let kms = "KMSConfiguration.resources.providers.kms";
    vec![
        wrong(
            "resources is text",
            file(r#","resources":"abc""#),
            "string",
            rules,
            "[]v1.ResourceConfiguration",
        ),
        wrong(
            "resources is an object",
            file(r#","resources":{}"#),
            "object",
            rules,
            "[]v1.ResourceConfiguration",
        ),
        wrong("a rule is text", file(r#","resources":["abc"]"#), "string", rules, "v1.ResourceConfiguration"),
        wrong(
            "names are text",
            resources("\"abc\""),
            "string",
            "ResourceConfiguration.resources.resources",
            "[]string",
        ),
        wrong(
            "a name is a number",
            resources("[1]"),
            "number",
            "ResourceConfiguration.resources.resources",
            "string",
        ),
        wrong(
            "providers are text",
            providers("\"abc\""),
            "string",
            "ResourceConfiguration.resources.providers",
            "[]v1.ProviderConfiguration",
        ),
        wrong(
            "a provider is text",
            providers("[\"abc\"]"),
            "string",
            "ResourceConfiguration.resources.providers",
            "v1.ProviderConfiguration",
        ),
        wrong(
            "identity is text",
            providers(r#"[{"identity":"x"}]"#),
            "string",
            "ProviderConfiguration.resources.providers.identity",
            "v1.IdentityConfiguration",
        ),
        wrong(
            "aesgcm is a list",
            providers(r#"[{"aesgcm":[]}]"#),
            "array",
            "ProviderConfiguration.resources.providers.aesgcm",
            "v1.AESConfiguration",
        ),
        wrong(
            "secretbox is a list",
            providers(r#"[{"secretbox":[]}]"#),
            "array",
            "ProviderConfiguration.resources.providers.secretbox",
            "v1.SecretboxConfiguration",
        ),
        wrong(
            "kms is text",
            providers(r#"[{"kms":"x"}]"#),
            "string",
            "ProviderConfiguration.resources.providers.kms",
            "v1.KMSConfiguration",
        ),
        wrong(
            "keys are an object",
            providers(r#"[{"aesgcm":{"keys":{}}}]"#),
            "object",
            "AESConfiguration.resources.providers.aesgcm.keys",
            "[]v1.Key",
        ),
        wrong(
            "a key is text",
            providers(r#"[{"aesgcm":{"keys":["a"]}}]"#),
            "string",
            "AESConfiguration.resources.providers.aesgcm.keys",
            "v1.Key",
        ),
        wrong(
            "a key's name is a number",
            providers(r#"[{"aesgcm":{"keys":[{"name":1,"secret":"$KEY"}]}}]"#),
            "number",
            &format!("{key}.name"),
            "string",
        ),
        wrong(
            "a key is a number",
            providers(r#"[{"aesgcm":{"keys":[{"name":"a","secret":123}]}}]"#),
            "number",
            &format!("{key}.secret"),
            "string",
        ),
        wrong(
            "a key is a flag",
            providers(r#"[{"aesgcm":{"keys":[{"name":"a","secret":true}]}}]"#),
            "bool",
            &format!("{key}.secret"),
            "string",
        ),
        wrong(
            "a key is an object",
            providers(r#"[{"aesgcm":{"keys":[{"name":"a","secret":{"b":"c"}}]}}]"#),
            "object",
            &format!("{key}.secret"),
            "string",
        ),
        wrong(
            "cache size is text",
            providers(r#"[{"kms":{"cachesize":"abc"}}]"#),
            "string",
            &format!("{kms}.cachesize"),
            "int32",
        ),
        wrong(
            "cache size is a fraction",
            providers(r#"[{"kms":{"cachesize":1.5}}]"#),
            "number 1.5",
            &format!("{kms}.cachesize"),
            "int32",
        ),
        wrong(
            "cache size is too large",
            providers(r#"[{"kms":{"cachesize":99999999999}}]"#),
            "number 99999999999",
            &format!("{kms}.cachesize"),
            "int32",
        ),
        wrong(
            "timeout is a number",
            providers(r#"[{"kms":{"timeout":3}}]"#),
            "number",
            &format!("{kms}.timeout"),
            "string",
        ),
        case(
            "timeout is no duration",
            providers(r#"[{"kms":{"timeout":"abc"}}]"#),
            DECODING,
            "time: invalid duration \"abc\"",
        ),
        case(
            "timeout without unit",
            providers(r#"[{"kms":{"timeout":"3"}}]"#),
            DECODING,
            "time: missing unit in duration \"3\"",
        ),
        wrong(
            "only the first wrong type is told",
            file(r#","extra":1,"resources":[1,2]"#),
            "number",
            rules,
            "v1.ResourceConfiguration",
        ),
    ]
}

fn strictness() -> Vec<Case> {
    let unknown = |name, config, fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        case(name, config, DECODING, &format!("strict decoding error: {}", fields.join(", ")))
    };
    vec![
        unknown(
            "unknown field of identity",
            providers(r#"[{"identity":{"a":1}}]"#),
            &["resources[0].providers[0].identity.a"],
        ),
        unknown(
            "unknown field of kms",
            providers(r#"[{"identity":{}},{"kms":{"pandas":1}}]"#),
            &["resources[0].providers[1].kms.pandas"],
        ),
        unknown(
            "unknown fields everywhere",
            file(&format!(
                r#","a":1,"b":2,"resources":[{{"providers":[{{"aesgcm":{{"keys":[{{"name":"a","secret":"{KEY}","x":1}}],"z":1}}}}],"resources":["secrets"]}}]"#
            )),
            &["a", "b", "resources[0].providers[0].aesgcm.keys[0].x", "resources[0].providers[0].aesgcm.z"],
        ),
        case(
            "repeated fields of JSON",
            providers(r#"[{"identity":{},"identity":{}}]"#),
            DECODING,
            "strict decoding error: duplicate field \"resources[0].providers[0].identity\"",
        ),
        unknown("names are case-sensitive", file(r#","Resources":[]"#), &["Resources"]),
        unknown("no metadata", file(r#","metadata":{},"resources":[]"#), &["metadata"]),
    ]
}

fn structure() -> Vec<Case> {
    let empty = r#"{"AESGCM":null,"AESCBC":null,"Secretbox":null,"Identity":null,"KMS":null}"#;
    let none = format!(
        "resources[0].providers[0]: Invalid value: {empty}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
    );
    let none = none.as_str();
    let two = |name, config, shown: &str, holds_key: bool| {
        let text = format!(
            "resources[0].providers[0]: Invalid value: {shown}: more than one provider specified in a single element, should split into different list elements"
        );
        Case { differs: holds_key, ..case(name, config, PARSING, &text) }
    };
    vec![
        case(
            "no resources",
            file(""),
            PARSING,
            "resources: Required value: at least one resources is required",
        ),
        case(
            "null resources",
            file(r#","resources":null"#),
            PARSING,
            "resources: Required value: at least one resources is required",
        ),
        case(
            "empty resources",
            file(r#","resources":[]"#),
            PARSING,
            "resources: Required value: at least one resources is required",
        ),
        case(
            "an empty rule",
            file(r#","resources":[{}]"#),
            PARSING,
            "[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]",
        ),
        case(
            "a null rule",
            file(r#","resources":[null]"#),
            PARSING,
            "[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]",
        ),
        case("an empty provider", providers("[{}]"), PARSING, none),
        case("a null provider", providers("[null]"), PARSING, none),
        case("a null identity", providers(r#"[{"identity":null}]"#), PARSING, none),
        case(
            "null keys",
            providers(r#"[{"aesgcm":null,"kms":null,"aescbc":null,"secretbox":null}]"#),
            PARSING,
            none,
        ),
        two(
            "two providers, one with a key",
            providers(r#"[{"aesgcm":{"keys":[{"name":"key1","secret":"$KEY"}]},"identity":{}}]"#),
            r#"{"AESGCM":{"Keys":[{"Name":"key1","Secret":"REDACTED"}]},"AESCBC":null,"Secretbox":null,"Identity":{},"KMS":null}"#,
            true,
        ),
        two(
            "two providers, kms and plaintext",
            providers(r#"[{"kms":{"name":"a","endpoint":"unix:///a"},"identity":{}}]"#),
            r#"{"AESGCM":null,"AESCBC":null,"Secretbox":null,"Identity":{},"KMS":{"APIVersion":"v1","Name":"a","CacheSize":1000,"Endpoint":"unix:///a","Timeout":"3s"}}"#,
            false,
        ),
        two(
            "two providers, kms v2 and no keys",
            providers(
                r#"[{"kms":{"name":"a","endpoint":"unix:///a","apiVersion":"v2","timeout":"90s"},"aescbc":{"keys":[]}}]"#,
            ),
            r#"{"AESGCM":null,"AESCBC":{"Keys":[]},"Secretbox":null,"Identity":null,"KMS":{"APIVersion":"v2","Name":"a","CacheSize":null,"Endpoint":"unix:///a","Timeout":"1m30s"}}"#,
            false,
        ),
        case("two identities are fine", providers(r#"[{"identity":{}},{"identity":{}}]"#), "", ""),
    ]
}

fn names() -> Vec<Case> {
    let bad = |name, resource: &str, rule: &str| {
        let text = format!("resources[0].resources[0]: Invalid value: \"{resource}\": {rule}");
        case(name, resources(&format!("[\"{resource}\"]")), PARSING, &text)
    };
    let list = |name, names: &str, rules: &[&str]| {
        let texts: Vec<_> = rules
            .iter()
            .map(|rule| format!("resources[0].resources: Invalid value: {names}: {rule}"))
            .collect();
        let text =
            if let [single] = texts.as_slice() { single.clone() } else { format!("[{}]", texts.join(", ")) };
        case(name, resources(names), PARSING, &text)
    };
    let good = |name, names: &str| case(name, resources(names), "", "");
    let twice = "the same resource cannot be specified multiple times";
    let overlap = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
    let events = "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file";
    vec![
        bad("capital letters", "configMaps", "resource name should not contain capital letters"),
        bad("capital letters in the group", "a.B", "resource name should not contain capital letters"),
        bad(
            "bare wildcard",
            "*",
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        ),
        bad("no REST 1", "apiserveripinfo", "resources which do not have REST API/s cannot be encrypted"),
        bad(
            "no REST 2",
            "serviceipallocations",
            "resources which do not have REST API/s cannot be encrypted",
        ),
        bad(
            "no REST 3",
            "servicenodeportallocations",
            "resources which do not have REST API/s cannot be encrypted",
        ),
        bad("events", "events.events.k8s.io", events),
        bad("any events", "*.events.k8s.io", events),
        bad(
            "extensions",
            "replicasets.extensions",
            "'extensions' group has been removed and cannot be used for encryption",
        ),
        bad(
            "any of extensions",
            "*.extensions",
            "'extensions' group has been removed and cannot be used for encryption",
        ),
        bad("across groups", "secrets.*", "encrypting the same resource across groups is not supported"),
        list("twice", r#"["secrets","secrets"]"#, &[twice]),
        list("twice, core group written out", r#"["secrets","secrets."]"#, &[twice]),
        list("core wildcard and a core resource", r#"["*.","secrets"]"#, &[overlap]),
        list("a resource and its group's wildcard", r#"["deployments.apps","*.apps"]"#, &[overlap]),
        list("everything and something", r#"["*.*","a.b"]"#, &[overlap]),
        list("something and everything", r#"["a.b","*.*"]"#, &[overlap]),
        list("two equal wildcards", r#"["*.apps","*.apps"]"#, &[twice, overlap]),
        good("wildcards of different groups", r#"["*.apps","*."]"#),
        good("a resource and another group's wildcard", r#"["deployments.apps","*."]"#),
        good("everything", r#"["*.*"]"#),
        good("an empty name", r#"[""]"#),
        good("a null name", "[null]"),
        good("a name nobody has", r#"["no-such.resource.example"]"#),
        case(
            "several",
            resources(r#"["A","*"]"#),
            PARSING,
            "[resources[0].resources: Invalid value: [\"A\",\"*\"]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked, resources[0].resources[0]: Invalid value: \"A\": resource name should not contain capital letters, resources[0].resources[1]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources]",
        ),
    ]
}

fn keys() -> Vec<Case> {
    let bad = |name, provider: &str, key: &str, rule: &str| {
        let text = format!("resources[0].providers[0].{provider}.keys[0].{rule}");
        case(name, providers(&format!(r#"[{{"{provider}":{{"keys":[{key}]}}}}]"#)), PARSING, &text)
    };
    let good = |name, provider: &str, keys: &str| {
        case(name, providers(&format!(r#"[{{"{provider}":{{"keys":[{keys}]}}}}]"#)), "", "")
    };
    let not_base64 = "secret: Invalid value: \"REDACTED\": secrets must be base64 encoded";
    vec![
        case(
            "no keys",
            providers(r#"[{"aesgcm":{}},{"aescbc":{"keys":null}},{"secretbox":{"keys":[]}}]"#),
            PARSING,
            "[resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required, resources[0].providers[1].aescbc.keys: Required value: at least one keys is required, resources[0].providers[2].secretbox.keys: Required value: at least one keys is required]",
        ),
        case(
            "a null key",
            providers(r#"[{"aesgcm":{"keys":[null]}}]"#),
            PARSING,
            "[resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key, resources[0].providers[0].aesgcm.keys[0].secret: Required value: secret is a mandatory field for a key]",
        ),
        bad(
            "no name",
            "aescbc",
            r#"{"secret":"$KEY"}"#,
            "name: Required value: name is a mandatory field for a key",
        ),
        bad(
            "no secret",
            "secretbox",
            r#"{"name":"a"}"#,
            "secret: Required value: secret is a mandatory field for a key",
        ),
        bad("no base64", "aesgcm", r#"{"name":"a","secret":"!!"}"#, not_base64),
        bad("no padding", "aesgcm", r#"{"name":"a","secret":"MDEyMzQ1Njc4OWFiY2RlZg"}"#, not_base64),
        bad("URL alphabet", "aesgcm", r#"{"name":"a","secret":"__________________________8="}"#, not_base64),
        bad("blank inside", "aesgcm", r#"{"name":"a","secret":"MDEyMzQ1Njc4 OWFiY2RlZg=="}"#, not_base64),
        bad(
            "aesgcm of 3 bytes",
            "aesgcm",
            r#"{"name":"a","secret":"YWJj"}"#,
            "secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 3, expected one of [16 24 32]",
        ),
        bad(
            "aescbc of 3 bytes",
            "aescbc",
            r#"{"name":"a","secret":"YWJj"}"#,
            "secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 3, expected one of [16 24 32]",
        ),
        bad(
            "secretbox of 16 bytes",
            "secretbox",
            r#"{"name":"a","secret":"MDEyMzQ1Njc4OWFiY2RlZg=="}"#,
            "secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 16, expected one of [32]",
        ),
        good("16 bytes", "aescbc", r#"{"name":"a","secret":"MDEyMzQ1Njc4OWFiY2RlZg=="}"#),
        good("24 bytes", "aesgcm", r#"{"name":"a","secret":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"}"#),
        good(
            "line break and trailing bits",
            "aesgcm",
            r#"{"name":"a","secret":"MDEyMzQ1Njc4\r\nOWFiY2RlZh==\n"}"#,
        ),
        good(
            "field_case_k17: repeated names, colons in names",
            "aesgcm",
            r#"{"name":"a:b","secret":"$KEY"},{"name":"a:b","secret":"MDEyMzQ1Njc4OWFiY2RlZg=="}"#,
        ),
    ]
}

fn kms() -> Vec<Case> {
    let bad = |name, member: &str, rule: &str| {
        let text = format!("resources[0].providers[0].kms.{rule}");
        case(name, providers(&format!(r#"[{{"kms":{{{member}}}}}]"#)), PARSING, &text)
    };
    let endpoint = |name, endpoint: &str, rule: &str| {
        bad(
            name,
            &format!(r#""name":"a","endpoint":"{endpoint}""#),
            &format!("endpoint: Invalid value: \"{endpoint}\": {rule}"),
        )
    };
    let unparsable = |name, bad: &str, error: &str| {
        endpoint(name, bad, &format!("invalid endpoint for kms provider, error: parse \"{bad}\": {error}"))
    };
    let deprecated = |name, config| {
        let text = "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  \
                    Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.";
        case(name, config, BUILDING, text)
    };
    let named = |version: &str| {
        format!(r#"{{"kms":{{"apiVersion":"{version}","name":"a","endpoint":"unix:///a"}}}}"#)
    };
    let duplicate = "resources[0].providers[1].kms.name: Invalid value: \"a\": duplicate KMS provider name a, names must be unique";
    vec![
        bad(
            "no name",
            r#""endpoint":"unix:///a""#,
            "name: Required value: name is a mandatory field for a provider",
        ),
        bad(
            "colon in a name of v2",
            r#""name":"a:b","apiVersion":"v2","endpoint":"unix:///a""#,
            "name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'",
        ),
        bad(
            "negative timeout",
            r#""name":"a","endpoint":"unix:///a","timeout":"-1m""#,
            "timeout: Invalid value: \"-1m0s\": timeout should be a positive value",
        ),
        bad(
            "no timeout",
            r#""name":"a","endpoint":"unix:///a","timeout":"0s""#,
            "timeout: Invalid value: \"0s\": timeout should be a positive value",
        ),
        bad(
            "no endpoint",
            r#""name":"a""#,
            "endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms",
        ),
        endpoint(
            "scheme http",
            "http://x",
            "unsupported scheme \"http\" for KMS provider, only unix is supported",
        ),
        endpoint("no scheme", "a b", "unsupported scheme \"\" for KMS provider, only unix is supported"),
        unparsable("bad escape", "unix:///%zz", "invalid URL escape \"%zz\""),
        unparsable("starts with a colon", ":foo", "missing protocol scheme"),
        unparsable("digit before a colon", "1a:b", "first path segment in URL cannot contain colon"),
        unparsable("blank in the host", "unix://a b", "invalid character \" \" in host name"),
        unparsable("bad port", "unix://h:x", "invalid port \":x\" after host"),
        unparsable("open bracket", "unix://[::1", "missing ']' in host"),
        unparsable("bad user", "unix://a b@h", "net/url: invalid userinfo"),
        bad(
            "cache size in v2",
            r#""name":"a","apiVersion":"v2","endpoint":"unix:///a","cachesize":5"#,
            "cachesize: Invalid value: 5: cachesize is not supported in v2",
        ),
        bad(
            "cache size 0",
            r#""name":"a","endpoint":"unix:///a","cachesize":0"#,
            "cachesize: Invalid value: 0: cachesize should be a positive value, or negative to disable",
        ),
        bad(
            "version v3",
            r#""name":"a","apiVersion":"v3","endpoint":"unix:///a""#,
            "apiVersion: Invalid value: \"v3\": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported",
        ),
        case(
            "v2 after v1 of the same name",
            providers(&format!("[{},{}]", named("v1"), named("v2"))),
            PARSING,
            duplicate,
        ),
        case("v2", providers(&format!("[{}]", named("v2"))), "", ""),
        deprecated("v1 without its feature gate", providers(&format!("[{}]", named("v1")))),
        deprecated(
            "v1 after v2 of the same name keeps the rules",
            providers(&format!("[{},{}]", named("v2"), named("v1"))),
        ),
        deprecated(
            "cache switched off keeps the rules",
            providers(r#"[{"kms":{"name":"a:b","endpoint":"unix:///a","cachesize":-1}}]"#),
        ),
    ]
}

/// What only YAML can say.
fn yaml() -> Vec<Case> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
    let rule = "resources:\n- resources: [secrets]\n  providers:\n";
    let repeated = |name, text: String, line: usize, key: &str| {
        let expected = format!(
            "strict decoding error: yaml: unmarshal errors:\n  line {line}: key \"{key}\" already set in map"
        );
        case(name, text, DECODING, &expected)
    };
    vec![
        case(
            "block style",
            format!(
                "{head}{rule}  - aescbc:\n      keys:\n      - name: key1\n        secret: {KEY}\n  - identity: {{}}\n"
            ),
            "",
            "",
        ),
        case(
            "a comment and a document start",
            format!("# for the cluster\n---\n{head}{rule}  - identity: {{}}\n"),
            "",
            "",
        ),
        case(
            "only the first document counts",
            format!("{head}{rule}  - identity: {{}}\n---\nfoo: bar\n"),
            "",
            "",
        ),
        repeated("repeated field", format!("{head}resources: []\nresources: []\n"), 4, "resources"),
        repeated(
            "repeated name of a key",
            format!("{head}{rule}  - aesgcm: {{keys: [{{name: a, name: b, secret: {KEY}}}]}}\n"),
            6,
            "name",
        ),
        case(
            "a number where text is wanted",
            format!("{head}{rule}  - aesgcm: {{keys: [{{name: 1, secret: {KEY}}}]}}\n"),
            DECODING,
            "json: cannot unmarshal number into Go struct field Key.resources.providers.aesgcm.keys.name of type string",
        ),
        case(
            "yes is a flag",
            format!("{head}{rule}  - aesgcm: {{keys: [{{name: yes, secret: {KEY}}}]}}\n"),
            DECODING,
            "json: cannot unmarshal bool into Go struct field Key.resources.providers.aesgcm.keys.name of type string",
        ),
        Case {
            differs: true,
            ..case("blank", "\n".to_owned(), DECODING, "Object 'Kind' is missing in 'REDACTED'")
        },
    ]
}

/// Upstream's TestWildcardMasking, without KMS.
/// Upstream's TestWildcardMasking.
fn masking() -> Vec<Case> {
    let rules = |name, first: &str, second: &str, masked: Option<(&str, &str)>| {
        let rule = |names: &str| format!(r#"{{"resources":{names},"providers":[{{"identity":{{}}}}]}}"#);
        let config = file(&format!(r#","resources":[{},{}]"#, rule(first), rule(second)));
        match masked {
            None => case(name, config, "", ""),
            Some((what, by)) => case(
                name,
                config,
                BUILDING,
                &format!("resource \"{what}\" is masked by earlier rule \"{by}\""),
            ),
        }
    };
    vec![
        rules("masked by the core wildcard", r#"["*."]"#, r#"["secrets"]"#, Some(("secrets", "*."))),
        rules(
            "masked by a group's wildcard",
            r#"["*.apps"]"#,
            r#"["b","deployments.apps"]"#,
            Some(("deployments.apps", "*.apps")),
        ),
        rules("masked by everything", r#"["*.*"]"#, r#"["a.b"]"#, Some(("a.b", "*.*"))),
        rules("core wildcard masked by everything", r#"["*.*"]"#, r#"["*."]"#, Some(("*.", "*.*"))),
        rules("masked by itself", r#"["*.apps"]"#, r#"["*.apps"]"#, Some(("*.apps", "*.apps"))),
        rules("narrow before wide", r#"["secrets","deployments.apps"]"#, r#"["*.*"]"#, None),
        rules("groups side by side", r#"["*."]"#, r#"["*.apps"]"#, None),
        rules("the same resource twice", r#"["secrets"]"#, r#"["secrets"]"#, None),
    ]
}

/// A configuration, and what a value of each resource starts with when it is written now.
pub struct Routes {
    /// The text of the file.
    pub config: String,
    /// Resource and prefix.
    pub expected: Vec<(&'static str, &'static str)>,
}

/// Upstream's TestWildcardStructure with keys instead of KMS plugins, and other orders.
pub fn routes() -> Vec<Routes> {
    let rule = |names: &str, provider: &str, key: &str| {
        format!(
            r#"{{"resources":{names},"providers":[{{"{provider}":{{"keys":[{{"name":"{key}","secret":"{KEY}"}}]}}}},{{"identity":{{}}}}]}}"#
        )
    };
    let config = |rules: &[String]| file(&format!(r#","resources":[{}]"#, rules.join(",")));
    vec![
        Routes {
            config: config(&[
                rule(r#"["configmaps","*.apps"]"#, "aesgcm", "kms"),
                rule(r#"["secrets"]"#, "aescbc", "another-kms"),
                rule(r#"["*."]"#, "secretbox", "fancy"),
                rule(r#"["*.*"]"#, "aesgcm", "yet-another"),
            ]),
            expected: vec![
                ("configmaps", "k8s:enc:aesgcm:v1:kms:"),
                ("secrets", "k8s:enc:aescbc:v1:another-kms:"),
                ("events", "k8s:enc:secretbox:v1:fancy:"),
                ("pods", "k8s:enc:secretbox:v1:fancy:"),
                ("pandas", "k8s:enc:secretbox:v1:fancy:"),
                ("deployments.apps", "k8s:enc:aesgcm:v1:kms:"),
                ("jobs.apps", "k8s:enc:aesgcm:v1:kms:"),
                ("pandas.bears", "k8s:enc:aesgcm:v1:yet-another:"),
                ("pandas.awesome.bears.com", "k8s:enc:aesgcm:v1:yet-another:"),
            ],
        },
        Routes {
            config: config(&[
                rule(r#"["secrets"]"#, "aesgcm", "first"),
                rule(r#"["secrets","pods"]"#, "aescbc", "second"),
            ]),
            expected: vec![
                ("secrets", "k8s:enc:aesgcm:v1:first:"),
                ("pods", "k8s:enc:aescbc:v1:second:"),
                ("secrets.apps", ""),
                ("configmaps", ""),
            ],
        },
        Routes {
            config: config(&[rule(r#"["pandas.awesome.bears.com","*.bears.com"]"#, "secretbox", "key1")]),
            expected: vec![
                ("pandas.awesome.bears.com", "k8s:enc:secretbox:v1:key1:"),
                ("grizzlies.bears.com", "k8s:enc:secretbox:v1:key1:"),
                ("grizzlies.awesome.bears.com", ""),
            ],
        },
    ]
}
