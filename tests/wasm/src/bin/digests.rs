//! Prints the numbers of all policies, as they are on this target.

fn main() {
    for number in 0..relent_wasm::POLICIES {
        println!("{number} {:016x}", relent_wasm::digest(number));
    }
}
