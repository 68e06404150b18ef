//! Fields of forms and queries.

/// Maximum length of a field that is one line, in bytes.
pub(crate) const LINE_MAX: usize = 2_000;

/// Fields as they were sent, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `a=b&c=d`, as forms and queries have it.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Returns the field with this name, without spaces at its ends; empty if it is missing.
    pub(crate) fn line(&self, name: &str) -> &str {
        self.text(name).trim()
    }

    /// Returns the field with this name as it was sent; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        let mut fields = self.0.iter();
        let field = fields.find(|(known, _)| known == name);
        field.map_or("", |(_, value)| value)
    }
}
