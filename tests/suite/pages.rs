//! What the pages outside the manual say is there.

/// Links of a page that lead to a file of the project.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("](").skip(1);
    let whole = after.filter_map(|rest| rest.split(')').next());
    let file = whole.filter_map(|link| link.split('#').next());
    file.filter(|link| !link.is_empty() && !link.contains("://"))
}

#[test]
fn links_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, least) in [
        ("README.md", 40),
        ("docs/files.md", 0),
        ("docs/animations.md", 0),
        ("docs/methods.md", 0),
        ("docs/integrators.md", 0),
        ("CHANGELOG.md", 0),
    ] {
        let path = root.join(page);
        let text = std::fs::read_to_string(&path).expect("a page");
        let folder = path.parent().expect("a file is in a folder");
        let mut count = 0;
        for link in links(&text) {
            assert!(folder.join(link).exists(), "{page}: {link}");
            count += 1;
        }
        assert!(count >= least, "{page}: {count} links");
    }
}
