//! Each link of the documentation leads somewhere: rustdoc checks the names of items, but not those of sections.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use relent_surface::PAGES;
use scraper::{Html, Selector};

struct Page {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let html = Html::parse_document(&fs::read_to_string(path).unwrap());
        let all = |selector, attribute: &str| -> Vec<String> {
            let selector = Selector::parse(selector).unwrap();
            html.select(&selector).filter_map(|element| element.attr(attribute)).map(str::to_owned).collect()
        };
        Self { ids: all("[id]", "id").into_iter().collect(), links: all("a[href]", "href") }
    }
}

fn pages(directory: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.insert(path.canonicalize().unwrap(), Page::read(&path));
        }
    }
}

#[test]
fn every_link_and_every_section_exists() {
    let mut all = BTreeMap::new();
    pages(&PAGES, &mut all);
    let (mut links, mut sections, mut broken) = (0, 0, Vec::new());
    for (path, page) in &all {
        for link in page.links.iter().filter(|link| !link.contains("://") && !link.starts_with("javascript:")) {
            links += 1;
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { Ok(path.clone()) } else { path.with_file_name(file).canonicalize() };
            let exists = match target.map(|target| (all.get(&target), target)) {
                Err(_) => false,
                Ok((Some(target), _)) => {
                    sections += usize::from(!section.is_empty());
                    section.is_empty() || target.ids.contains(section)
                }
                // A page of the source: the numbers of lines are made sections by a script.
                Ok((None, target)) => target.is_file(),
            };
            if !exists {
                broken.push(format!("{} in {}", link, path.display()));
            }
        }
    }
    assert!(links > 5000 && sections > 2500, "{links} links, {sections} of them to a section");
    assert!(broken.is_empty(), "lead nowhere: {broken:#?}");
}
