//! Service account tokens: signing, verification, issuing and discovery.
