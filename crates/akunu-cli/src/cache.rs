//! Where downloaded models and the history of questions are kept.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Akunu's folder among the user's caches, where this system keeps such; `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    folder_for(env::consts::OS, variable)
}

fn folder_for(os: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from);
    let caches = match os {
        "windows" => path("LOCALAPPDATA"),
        "macos" => path("HOME").map(|home| home.join("Library/Caches")),
        _ => path("XDG_CACHE_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".cache"))),
    };
    caches.map(|caches| caches.join("akunu"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_system_has_its_place() {
        let found = |os: &str, set: &[(&str, &str)]| {
            folder_for(os, |name| {
                let pair = set.iter().find(|(key, _)| *key == name)?;
                Some(pair.1.into())
            })
        };
        let home = ("HOME", "/h");
        let is = |path: &str| Some(Path::new(path).to_path_buf());
        assert_eq!(found("linux", &[home]), is("/h/.cache/akunu"));
        let xdg = ("XDG_CACHE_HOME", "/x");
        assert_eq!(found("linux", &[home, xdg]), is("/x/akunu"));
        let relative = ("XDG_CACHE_HOME", "x");
        let by_the_rules = is("/h/.cache/akunu");
        assert_eq!(found("linux", &[home, relative]), by_the_rules);
        assert_eq!(found("macos", &[home, xdg]), is("/h/Library/Caches/akunu"));
        assert_eq!(found("windows", &[("LOCALAPPDATA", "/l")]), is("/l/akunu"));
        assert_eq!(found("linux", &[]), None);
    }
}
