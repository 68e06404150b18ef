//! Lists of objects, as stores send them: XML of `ListObjectsV2`.

/// An object of a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredObject {
    /// Its key below the prefix of the store.
    pub key: String,
    /// Its size in bytes.
    pub size: u64,
}

/// One page of a list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ListingPage {
    pub(super) objects: Vec<StoredObject>,
    /// Token of the next page; `None` on the last one.
    pub(super) next: Option<String>,
}

impl ListingPage {
    /// Reads a page; keys are whole. `None` if the text is no list.
    pub(super) fn parse(xml: &str) -> Option<Self> {
        xml.contains("<ListBucketResult").then_some(())?;
        let objects = elements(xml, "Contents").map(|object| {
            Some(StoredObject {
                key: text(elements(object, "Key").next()?)?,
                size: elements(object, "Size").next()?.trim().parse().ok()?,
            })
        });
        let is_truncated = elements(xml, "IsTruncated").next() == Some("true");
        let next = elements(xml, "NextContinuationToken").next();
        Some(Self {
            objects: objects.collect::<Option<_>>()?,
            next: next.filter(|_| is_truncated).and_then(text),
        })
    }
}

/// Returns the content of each element with this name. These elements have no attributes and do not contain
/// themselves.
fn elements<'x>(xml: &'x str, name: &str) -> impl Iterator<Item = &'x str> + use<'x> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (content, after) = after.split_once(&close)?;
        rest = after;
        Some(content)
    })
}

/// Returns the text of an element with its references resolved; `None` with an unknown one.
fn text(content: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = content;
    while let Some((before, after)) = rest.split_once('&') {
        let (name, after) = after.split_once(';')?;
        text.push_str(before);
        text.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)?
            }
        });
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_objects_and_the_token_of_the_next_one() {
        let xml = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>\
            <Contents><Key>a/b&amp;c&#39;&#x41;</Key><ETag>&quot;x&quot;</ETag><Size>12</Size></Contents>\
            <Contents><Size>0</Size><Key>d</Key></Contents>\
            <NextContinuationToken>t/1=</NextContinuationToken></ListBucketResult>";
        let object = |key: &str, size| StoredObject {
            key: key.to_owned(),
            size,
        };
        let page = ListingPage::parse(xml).unwrap();
        assert_eq!(page.objects, [object("a/b&c'A", 12), object("d", 0)]);
        assert_eq!(page.next.as_deref(), Some("t/1="));
        let last = xml.replace("true", "false");
        assert_eq!(ListingPage::parse(&last).unwrap().next, None);
        assert_eq!(ListingPage::parse("<Error/>"), None);
        assert_eq!(ListingPage::parse(&xml.replace("&amp;", "&nbsp;")), None);
    }
}
