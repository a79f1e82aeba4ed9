//! Links between the project's own pages lead somewhere, and the book has all of its chapters.

use super::tree::{TextFile, root, text_files};
use std::path::Path;

/// What is linked to in a Markdown text, `[words](here)`, code blocks apart.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let after = line.split("](").skip(1);
        found.extend(after.filter_map(|rest| rest.split([')', ' ']).next()));
    }
    found
}

/// The links of some pages that lead nowhere; `exists` says what there is, from the root on.
fn broken(pages: &[TextFile], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for page in pages.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        for link in links(&page.text) {
            let file = link.split('#').next().unwrap_or_default();
            let is_ours = !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:");
            if is_ours && !exists(&folder.join(file)) {
                broken.push(format!("{}: {link}", page.path));
            }
        }
    }
    broken
}

/// The pages of the book that its table of contents leaves out, and links of its pages that leave the book.
fn outside_of_book(pages: &[TextFile]) -> Vec<String> {
    let chapters = || {
        let in_docs = pages.iter().filter(|page| page.path.starts_with("docs/"));
        in_docs.filter(|page| page.path.ends_with(".md"))
    };
    let contents = chapters().find(|page| page.path == "docs/SUMMARY.md");
    let listed = contents.map_or_else(Vec::new, |page| links(&page.text));
    let left_out = chapters()
        .filter(|page| page.path != "docs/SUMMARY.md")
        .filter(|page| !listed.contains(&page.path.trim_start_matches("docs/")))
        .map(|page| format!("{} is not in docs/SUMMARY.md", page.path));
    let leaving = chapters().flat_map(|page| {
        let links = links(&page.text).into_iter();
        let out = links.filter(|link| link.starts_with("../"));
        out.map(|link| format!("{}: {link} is not in the book", page.path))
    });
    left_out.chain(leaving).collect()
}

#[test]
fn no_link_leads_nowhere() {
    let root = root();
    let found = broken(&text_files(), |path| root.join(path).exists());
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_book_is_whole() {
    assert_eq!(outside_of_book(&text_files()), Vec::<String>::new());
}

#[test]
fn planted_faults_are_found() {
    let page = |path: &str, text: &str| TextFile {
        path: path.into(),
        text: text.into(),
    };
    let pages = [
        page("docs/SUMMARY.md", "- [One](one.md)\n"),
        page(
            "docs/one.md",
            "[two](two.md#end), [home](../README.md), [web](https://example.org)\n",
        ),
        page(
            "docs/two.md",
            "```\n[no link](gone.md)\n```\n[gone](gone.md)\n",
        ),
    ];
    let there = ["docs/one.md", "docs/two.md", "docs/../README.md"];
    let found = broken(&pages, |path| {
        there.iter().any(|name| path == Path::new(name))
    });
    assert_eq!(found, ["docs/two.md: gone.md"]);
    assert_eq!(
        outside_of_book(&pages),
        [
            "docs/two.md is not in docs/SUMMARY.md",
            "docs/one.md: ../README.md is not in the book"
        ]
    );
}
