//! Check values against vectors made with an independent HMAC.

use coffer_crypto::check_value::{KeyIdentity, key_check_value, root_check_value};

use crate::support::{counted, unhex};

const GROUP: &str = "6f1b9e2c-7c3a-4a9c-8b72-2fd0f8f3c1ab";

#[test]
fn of_a_derived_key() {
    let check = |key: &str, revision, expected| {
        let identity = KeyIdentity { group: GROUP, dimension: "default", revision };
        assert_eq!(key_check_value(&unhex(key), identity).as_deref(), Some(expected));
    };
    check("865c4a68047ac6e963fff56af18d3289fd408ea7c68f4844664f5eef20cd8c87", 1, "e10aac0eb64cc7b2");
    check("aa807c53767d2a823e9a146d4e40b75437e2aeb67ba84eefdfcff51d45e48a33", 2, "99334e958f17da33");
}

#[test]
fn of_a_root_secret() {
    let root = counted(0x00, 0x1f);
    assert_eq!(root_check_value(&root, GROUP).as_deref(), Some("2d9dea69a3878d34"));
    assert!(root_check_value(&root, &"g".repeat(65_535)).is_some());
    assert_eq!(root_check_value(&root, &"g".repeat(65_536)), None);
}

#[test]
fn the_parts_of_an_identity_do_not_run_together() {
    let value = |group, dimension| key_check_value(&[1; 32], KeyIdentity { group, dimension, revision: 1 });
    assert_ne!(value("ab", "c"), value("a", "bc"));
}
