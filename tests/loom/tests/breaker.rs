//! The circuit breaker under every interleaving of two or three threads.

#[test]
fn skeleton() {
    loom::model(|| {});
}
