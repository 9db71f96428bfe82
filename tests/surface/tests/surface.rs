//! The public API is the one that was agreed to, and each of its types is looked after.
//!
//! After a change that is meant, `RELENT_BLESS=1 cargo test --package relent-surface` writes the snapshot anew, and its
//! diff shows what the change does to users.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;

use relent_surface::{RUSTDOC_JSON, root};
use serde_json::Value;

fn public_api() -> String {
    // What the compiler derives from the fields of a type is asserted by `tests/surface.rs` of the crate.
    let api = public_api::Builder::from_rustdoc_json(&*RUSTDOC_JSON)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .unwrap();
    // No promise where fields are private, which rustdoc knows and this does not: its pages hide it.
    api.to_string().replace("#[repr(C)] ", "")
}

#[test]
#[cfg_attr(not(pinned), ignore = "the snapshot is read with the rustdoc of Rust 1.95")]
fn the_snapshot_is_the_public_api() {
    let path = root().join("tests/surface/api.txt");
    let api = public_api();
    if env::var_os("RELENT_BLESS").is_some() {
        fs::write(path, &api).unwrap();
        return;
    }
    let snapshot = fs::read_to_string(path).unwrap();
    let lines = |text| BTreeSet::from_iter(str::lines(text));
    let (old, new) = (lines(&snapshot), lines(&api));
    let removed = old.difference(&new).map(|line| format!("- {line}\n"));
    let added = new.difference(&old).map(|line| format!("+ {line}\n"));
    let changes: String = removed.chain(added).collect();
    assert!(api == snapshot, "the public API is not that of the snapshot:\n{changes}");
}

#[test]
#[cfg_attr(not(pinned), ignore = "the types are read with the rustdoc of Rust 1.95")]
fn every_public_type_is_asserted_to_be_shared_and_printed() {
    let test = fs::read_to_string(root().join("tests/surface.rs")).unwrap();
    let asserted: BTreeSet<&str> = test
        .lines()
        .filter(|line| !line.starts_with("use "))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric()))
        .collect();
    let api = public_api();
    let types = api.lines().filter_map(|line| {
        let (_, item) = line.split_once("pub struct ").or_else(|| line.split_once("pub enum "))?;
        let path = item.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).next()?;
        path.rsplit("::").next()
    });
    let types: BTreeSet<&str> = types.collect();
    assert!(types.len() > 60, "{types:?}");
    let forgotten: Vec<_> = types.difference(&asserted).collect();
    assert!(forgotten.is_empty(), "not in tests/surface.rs: {forgotten:?}");
}

/// A future, an iterator or a builder that is dropped unused is a mistake, and the compiler says what to do instead.
#[test]
#[cfg_attr(not(pinned), ignore = "the types are read with the rustdoc of Rust 1.95")]
fn what_does_nothing_by_itself_must_be_used() {
    let json: Value = serde_json::from_str(&fs::read_to_string(&*RUSTDOC_JSON).unwrap()).unwrap();
    let index = json["index"].as_object().unwrap();
    let item = |id: &Value| &index[&id.to_string()];
    let reason = |item: &Value| item["attrs"].as_array().unwrap().iter().find_map(|attr| attr.get("must_use").cloned());

    let (mut checked, mut forgotten) = (BTreeMap::new(), Vec::new());
    let public = index.values().filter(|item| item["crate_id"] == 0 && item["visibility"] == "public");
    for strukt in public.filter(|item| item["inner"].get("struct").is_some()) {
        let name = strukt["name"].as_str().unwrap();
        let impls: Vec<_> = strukt["inner"]["struct"]["impls"].as_array().unwrap().iter().map(item).collect();
        let is_lazy = impls.iter().any(|block| {
            let path = &block["inner"]["impl"]["trait"]["path"];
            block["inner"]["impl"]["blanket_impl"].is_null() && (path == "Future" || path == "Iterator")
        });
        let methods = impls
            .iter()
            .filter(|block| block["inner"]["impl"]["trait"].is_null())
            .flat_map(|block| block["inner"]["impl"]["items"].as_array().unwrap())
            .map(item);
        let setters: Vec<_> = methods.filter(|method| is_setter(strukt, method)).collect();
        if !is_lazy && setters.is_empty() {
            continue;
        }
        let is_told = match reason(strukt) {
            Some(reason) => reason["reason"].is_string(),
            None => !is_lazy && setters.iter().all(|setter| reason(setter).is_some()),
        };
        checked.insert(name, is_lazy);
        if !is_told {
            forgotten.push(name);
        }
    }
    assert!(forgotten.is_empty(), "without `#[must_use = \"reason\"]`: {forgotten:?}");
    for known in ["Policy", "Retry", "Reported", "Backoff", "Wait", "Level", "RetryBudget", "CircuitBreaker", "Delays"]
    {
        assert!(checked.contains_key(known), "{known} is not among {checked:?}");
    }
}

/// Takes `self` and gives back a value of the same type, with other parameters perhaps.
fn is_setter(strukt: &Value, method: &Value) -> bool {
    let signature = &method["inner"]["function"]["sig"];
    let takes_self = signature["inputs"][0] == serde_json::json!(["self", { "generic": "Self" }]);
    let output = &signature["output"];
    takes_self && (output["generic"] == "Self" || output["resolved_path"]["id"] == strukt["id"])
}
