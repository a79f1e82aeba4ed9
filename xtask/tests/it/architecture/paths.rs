//! No file names a place on somebody's machine.

use super::tree::text_files;

/// Beginnings of such places, written so that this file does not contain them.
const PLACES: [&str; 5] = [
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "Users/"),
    concat!("/", "work/"),
    concat!("C:", "\\Users"),
];

/// The lines that contain such a place at the start of a path, numbered from 1.
fn violations(text: &str) -> Vec<usize> {
    let starts_a_path = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-~/}$*)>".contains(c)))
    };
    let names_a_place = |line: &str| {
        PLACES.iter().any(|place| {
            line.match_indices(place)
                .any(|(at, _)| starts_a_path(line, at))
        })
    };
    let numbered = text.lines().enumerate();
    numbered
        .filter(|(_, line)| names_a_place(line))
        .map(|(n, _)| n + 1)
        .collect()
}

#[test]
fn no_file_names_a_place_on_a_machine() {
    let found: Vec<String> = text_files()
        .iter()
        .flat_map(|file| {
            violations(&file.text)
                .into_iter()
                .map(|n| format!("{}:{n}", file.path))
        })
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn planted_paths_are_found() {
    for place in PLACES {
        assert_eq!(
            violations(&format!("first\nlet path = \"{place}me/model.gguf\";")),
            [2]
        );
    }
    let relative = concat!("see docs/", "home/page and https://example.org/", "work/1");
    assert!(violations(relative).is_empty());
}
