//! Lists of objects, as stores send them: XML of `ListObjectsV2`.

/// An object of a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredObject {
    /// Its key below the prefix of the store.
    pub key: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The objects below a prefix.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StoreListing {
    /// The objects.
    pub objects: Vec<StoredObject>,
    /// True if there are more: the list ended at its limit.
    pub is_cut: bool,
}

impl StoreListing {
    /// Adds the objects of a page below `prefix`. Returns the token of the next page, unless the list has `max`
    /// objects.
    pub(super) fn add(&mut self, page: ListingPage, prefix: &str, max: usize) -> Option<String> {
        let below = page.objects.into_iter().filter_map(|object| {
            // An object with the name of the prefix is no file in it.
            let key = object.key.strip_prefix(prefix)?;
            let key = Some(key).filter(|key| !key.is_empty())?.to_owned();
            Some(StoredObject { key, ..object })
        });
        self.objects.extend(below);
        self.is_cut = page.next.is_some() && self.objects.len() >= max;
        page.next.filter(|_| !self.is_cut)
    }
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
    fn a_list_that_ends_at_its_limit_is_cut() {
        let object = |key: &str| StoredObject {
            key: key.to_owned(),
            size: 1,
        };
        let page = |keys: &[&str], next: Option<&str>| ListingPage {
            objects: keys.iter().map(|key| object(key)).collect(),
            next: next.map(str::to_owned),
        };
        let mut listing = StoreListing::default();
        let next = listing.add(page(&["p/", "p/a"], Some("1")), "p/", 3);
        assert_eq!((next.as_deref(), listing.is_cut), (Some("1"), false));
        let mut whole = listing.clone();
        assert_eq!(whole.add(page(&["p/b", "p/c"], None), "p/", 3), None);
        assert!(!whole.is_cut);
        assert_eq!(whole.objects, [object("a"), object("b"), object("c")]);
        let next = listing.add(page(&["p/b", "p/c"], Some("2")), "p/", 3);
        assert_eq!((next, listing.is_cut), (None, true));
    }

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
