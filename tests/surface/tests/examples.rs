//! Each public item is shown at work, in code that fits its page.

use std::collections::BTreeSet;
use std::fs;

use relent_surface::RUSTDOC_JSON;
use serde_json::Value;

/// What rustdoc knows, by the number of the item.
struct Index(Value);

impl Index {
    fn read() -> Self {
        Self(serde_json::from_str(&fs::read_to_string(&*RUSTDOC_JSON).unwrap()).unwrap())
    }

    /// Not there if it is of another crate.
    fn get(&self, id: &Value) -> Option<&Value> {
        self.0["index"].get(id.to_string())
    }

    fn all<'a>(&'a self, ids: &'a Value) -> impl Iterator<Item = &'a Value> {
        ids.as_array().into_iter().flatten().filter_map(|id| self.get(id))
    }

    fn documented(&self) -> impl Iterator<Item = &Value> {
        self.0["index"].as_object().unwrap().values().filter(|item| item["docs"].is_string())
    }

    /// What can be reached by a public path, with its paths: modules and re-exports followed.
    fn reachable(&self) -> Vec<(String, &Value)> {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        let mut waiting = vec![(String::from("relent"), self.get(&self.0["root"]).unwrap())];
        while let Some((path, item)) = waiting.pop() {
            if !seen.insert(item["id"].to_string()) {
                continue;
            }
            for child in self.all(&item["inner"]["module"]["items"]).filter(|child| is_public(child)) {
                let exported = &child["inner"]["use"];
                let (name, target) = match self.get(&exported["id"]) {
                    Some(target) => (&exported["name"], target),
                    None => (&child["name"], child),
                };
                waiting.push((format!("{path}::{}", name.as_str().unwrap_or_default()), target));
            }
            found.push((path, item));
        }
        found
    }

    /// The `impl` blocks of a type that are of no trait.
    fn inherent<'a>(&'a self, item: &'a Value) -> impl Iterator<Item = &'a Value> {
        let inner = item["inner"].as_object().unwrap().values().next().unwrap();
        self.all(&inner["impls"]).filter(|block| block["inner"]["impl"]["trait"].is_null())
    }

    /// The parts of a type or a trait that are its users': each with what its example may be shared with.
    fn parts<'a>(&'a self, item: &'a Value) -> Vec<(&'a Value, Vec<&'a Value>)> {
        let inner = &item["inner"];
        let mut parts: Vec<_> = self
            .all(&inner["struct"]["kind"]["plain"]["fields"])
            .filter(|field| is_public(field))
            .chain(self.all(&inner["enum"]["variants"]))
            .chain(self.all(&inner["trait"]["items"]).filter(|part| part["inner"]["assoc_type"].is_null()))
            .map(|part| (part, vec![item]))
            .collect();
        for block in self.inherent(item) {
            let methods = self.all(&block["inner"]["impl"]["items"]).filter(|method| is_public(method));
            parts.extend(methods.map(|method| (method, vec![item, block])));
        }
        parts
    }
}

fn is_public(item: &Value) -> bool {
    item["visibility"] == "public"
}

/// The code in an item's docs, each block with the words after its fence.
fn code(item: &Value) -> Vec<(&str, Vec<&str>)> {
    let (mut blocks, mut is_open) = (Vec::new(), false);
    for line in item["docs"].as_str().unwrap_or_default().lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push((info, Vec::new()));
            }
        } else if is_open {
            blocks.last_mut().unwrap().1.push(line);
        }
    }
    blocks
}

/// The blocks of an item's docs that a test compiles, and what of them asserts something: by a value, or by not compiling.
fn examples(item: &Value) -> impl Iterator<Item = (bool, String)> {
    code(item).into_iter().filter(|(info, _)| !["text", "sh"].contains(info)).map(|(info, lines)| {
        let code = lines.join("\n");
        (info.contains("compile_fail") || code.contains("assert"), code)
    })
}

fn asserts(item: &Value) -> bool {
    examples(item).any(|(asserts, _)| asserts)
}

fn names(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// Whoever opens the page of an item finds it used there.
///
/// - A function, a macro, a constant, a type, a trait, and a method that takes arguments: by an example of its own that
///   asserts something, or that must not compile.
/// - A method without arguments, a field, and what belongs to a trait: by its own, or by name in one of its type, trait
///   or `impl` block.
/// - A variant: so too, or as `Type::Variant` in any example.
/// - A struct that offers nothing itself, such as the future that a method returns: by its own, which may merely compile,
///   or in that of an item that its docs link to.
#[test]
#[cfg_attr(not(pinned), ignore = "the docs are read with the rustdoc of Rust 1.95")]
fn every_public_item_has_an_example() {
    let index = Index::read();
    let everything: String =
        index.documented().flat_map(examples).filter(|(asserts, _)| *asserts).map(|(_, code)| code).collect();

    let (mut checked, mut forgotten) = (0, Vec::new());
    for (path, item) in index.reachable() {
        let inner = &item["inner"];
        if !inner["module"].is_null() {
            continue;
        }
        let parts = index.parts(item);
        let offers_nothing = !inner["struct"].is_null() && parts.is_empty();
        let mut linked = item["links"].as_object().unwrap().values().filter_map(|id| index.get(id));
        let is_shown = asserts(item) || offers_nothing && (examples(item).next().is_some() || linked.any(asserts));
        if !is_shown {
            forgotten.push(path.clone());
        }
        checked += 1 + parts.len();
        for (part, parents) in parts {
            let name = part["name"].as_str().unwrap();
            let full = format!("{}::{name}", item["name"].as_str().unwrap());
            let takes_arguments = part["inner"]["function"]["sig"]["inputs"]
                .as_array()
                .is_some_and(|inputs| inputs.iter().any(|input| input[0] != "self"));
            let is_named = |parent: &&Value| examples(parent).any(|(asserts, code)| asserts && names(&code, name));
            let may_share = !takes_arguments || !inner["trait"].is_null();
            let is_shown = asserts(part)
                || may_share && parents.iter().any(is_named)
                || !part["inner"]["variant"].is_null() && everything.contains(&full);
            if !is_shown {
                forgotten.push(format!("{path}::{name}"));
            }
        }
    }
    forgotten.sort();
    assert!(checked > 350, "{checked} items");
    assert!(forgotten.is_empty(), "without an example:\n{}", forgotten.join("\n"));
}

/// How much code stands on a page before it has to be scrolled.
const WIDTH: usize = 96;

#[test]
#[cfg_attr(not(pinned), ignore = "the docs are read with the rustdoc of Rust 1.95")]
fn no_line_of_an_example_is_wider_than_its_page() {
    let index = Index::read();
    let lines = index.documented().flat_map(code).flat_map(|(_, lines)| lines);
    let shown = lines.filter(|line| !line.trim_start().starts_with("# "));
    let wide: BTreeSet<&str> = shown.filter(|line| line.chars().count() > WIDTH).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

/// Rustdoc shows the methods of a submodule before those of the module that the type is in.
#[test]
#[cfg_attr(not(pinned), ignore = "the docs are read with the rustdoc of Rust 1.95")]
fn a_page_begins_with_what_is_called_first() {
    let index = Index::read();
    let first_methods = [
        ("Policy", "exponential"),
        ("Retry", "when"),
        ("Backoff", "new"),
        ("RetryBudget", "new"),
        ("CircuitBreaker", "new"),
    ];
    for (name, first) in first_methods {
        let strukt = index.documented().find(|item| item["name"] == name && !item["inner"]["struct"].is_null());
        let block = index.inherent(strukt.unwrap()).next().unwrap();
        let mut methods = index.all(&block["inner"]["impl"]["items"]);
        let method = methods.find(|item| !item["inner"]["function"].is_null() && is_public(item)).unwrap();
        assert_eq!(method["name"], first, "{name}");
    }
}
