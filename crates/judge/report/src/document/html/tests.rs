use proptest::prelude::*;

use super::super::tests::everywhere;
use super::*;
use crate::document::Format;

/// Returns a page with `text` everywhere, without its script.
fn shown(text: &str) -> String {
    let page = Format::Html.renderer().unwrap()(&everywhere(text), Style::default());
    let script = format!("<script>{}</script>", script());
    assert!(page.contains(&script), "{page}");
    page.replace(&script, "")
}

/// Checks that every element is closed, and returns how many there are.
fn elements(page: &str) -> usize {
    let void = ["meta", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    for tag in page.split('<').skip(1) {
        let name = tag.split(['>', ' ']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{page}"),
            None if void.contains(&name) => {}
            None => {
                open.push(name);
                count += 1;
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    count
}

proptest! {
    /// For all texts: a page has the same elements as with plain text, and no control character.
    #[test]
    fn no_text_makes_an_element(text in "[ -~\u{0}-\u{1f}é]{1,40}x") {
        prop_assume!(!text.starts_with("http"));
        let page = shown(&text);
        prop_assert_eq!(elements(&page), elements(&shown("plain")), "{}", page);
        prop_assert!(!page.contains(|c: char| c.is_control() && c != '\n'), "{page:?}");
    }

    /// For all texts: the data of a page are the data that went in.
    #[test]
    fn data_are_embedded_whole(text in any::<String>()) {
        let json = serde_json::json!({ "text": text }).to_string();
        let page = page(&Document::default(), &json);
        let (_, data) = page.split_once("id=\"stillwell-data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        prop_assert_eq!(
            serde_json::from_str::<serde_json::Value>(data).unwrap(),
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        );
    }
}

#[test]
fn a_page_loads_nothing_and_runs_its_own_script_alone() {
    let page = shown("plain");
    assert!(page.contains("default-src 'none'"), "{page}");
    let (_, policy) = page.split_once("script-src ").unwrap();
    let hash = policy.split('\'').nth(1).unwrap();
    assert!(hash.starts_with("sha256-") && hash.len() == 51, "{hash}");
    for word in [
        " src=",
        "<link",
        "<script",
        "@import",
        "url(",
        "javascript:",
    ] {
        assert!(!page.contains(word), "{word}: {page}");
    }
}

#[test]
fn links_other_than_to_the_web_are_text() {
    let link = |target: &str| {
        let text = Text(vec![super::super::Inline::Link(
            "a".to_owned(),
            target.to_owned(),
        )]);
        line(&text).into_string()
    };
    assert_eq!(link("javascript:alert(1)"), "a");
    assert!(link("https://a.b/?c&d").contains("href=\"https://a.b/?c&amp;d\""));
}
