//! The codecs held to what Go's serializers write (`peers/go/codec`).

mod codec;
mod transcode;
mod yaml;
