//! The codecs held to what Go's serializers write (`peers/go/codec`), and the rules to theirs.

mod codec;
mod kinds;
mod rules;
mod transcode;
mod yaml;
