//! Test only: clock, network, disk and fault injection, models, validators.
