//! Signatures of requests to object stores: AWS's fourth version, by which every store that
//! is compatible with S3 identifies a client.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Algorithm of the signature, as the header names it.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The service of the requests.
const SERVICE: &str = "s3";

/// The client's keys, and its region.
#[derive(Clone, Eq, PartialEq)]
pub struct StoreKeys {
    /// The name of the key.
    pub access: String,
    /// The key. It is never shown.
    pub secret: String,
    /// A token that goes with keys for a while.
    pub session: Option<String>,
    /// The region, such as `us-east-1`; many stores take any.
    pub region: String,
}

impl std::fmt::Debug for StoreKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreKeys")
            .field("access", &self.access)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// A request that is to be signed.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// Such as `PUT`.
    pub method: &'a str,
    /// As in the `host` header.
    pub host: &'a str,
    /// The path as it is sent, made by [`encoded_path`]; without a query.
    pub path: &'a str,
    /// The query as it is sent, without `?`: parameters in order, made by [`encoded_query`].
    pub query: &'a str,
    /// Further headers that are signed, with small names.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
    /// The time in UTC: `20130524T000000Z`.
    pub time: &'a str,
}

impl Unsigned<'_> {
    /// The headers that are to be sent besides `host` and [`Self::headers`].
    #[must_use]
    pub fn sign(&self, keys: &StoreKeys) -> Vec<(String, String)> {
        let body = HEXLOWER.encode(&Sha256::digest(self.body));
        let mut headers = vec![
            ("x-amz-content-sha256".to_owned(), body.clone()),
            ("x-amz-date".to_owned(), self.time.to_owned()),
        ];
        if let Some(session) = &keys.session {
            headers.push(("x-amz-security-token".to_owned(), session.clone()));
        }
        let borrowed = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut signed: Vec<(&str, &str)> = borrowed.chain([("host", self.host)]).collect();
        signed.extend(self.headers);
        signed.sort_unstable();
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let mut request = format!("{}\n{}\n{}\n", self.method, self.path, self.query);
        for (name, value) in &signed {
            request.push_str(&format!("{name}:{}\n", value.trim()));
        }
        request.push_str(&format!("\n{names}\n{body}"));
        let day = self.time.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{SERVICE}/aws4_request", keys.region);
        let hash = HEXLOWER.encode(&Sha256::digest(&request));
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{hash}", self.time);
        let mut key = hmac(format!("AWS4{}", keys.secret).as_bytes(), day.as_bytes());
        for word in [keys.region.as_str(), SERVICE, "aws4_request"] {
            key = hmac(&key, word.as_bytes());
        }
        let signature = HEXLOWER.encode(&hmac(&key, text.as_bytes()));
        let access = &keys.access;
        headers.push((
            "authorization".to_owned(),
            format!("{ALGORITHM} Credential={access}/{scope},SignedHeaders={names},Signature={signature}"),
        ));
        headers
    }
}

/// `path` with all that a path must not hold as `%XX`, and slashes as they are.
#[must_use]
pub fn encoded_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Parameters as a query: in the order of their names, with all that a value must not hold as `%XX`.
#[must_use]
pub fn encoded_query(parameters: &[(&str, &str)]) -> String {
    let mut sorted = parameters.to_vec();
    sorted.sort_unstable();
    let pairs = sorted.iter().map(|(name, value)| {
        let value = encoded_path(value).replace('/', "%2F");
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// HMAC with SHA-256.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).expect("RFC 2104 has no limit of a key's length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of AWS's documentation.
    fn keys() -> StoreKeys {
        StoreKeys {
            access: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session: None,
            region: "us-east-1".to_owned(),
        }
    }

    #[test]
    fn the_signature_is_that_of_the_documented_example() {
        let path = encoded_path("/test$file.text");
        let unsigned = Unsigned {
            method: "PUT",
            host: "examplebucket.s3.amazonaws.com",
            path: &path,
            query: "",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            body: b"Welcome to Amazon S3.",
            time: "20130524T000000Z",
        };
        let headers = unsigned.sign(&keys());
        let (name, value) = headers.last().unwrap();
        assert_eq!(name, "authorization");
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert!(value.ends_with(signature), "{value}");
        let names = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class";
        assert!(value.contains(names), "{value}");
    }

    #[test]
    fn a_query_is_signed_as_in_the_documented_example() {
        let query = encoded_query(&[("prefix", "J"), ("max-keys", "2")]);
        let unsigned = Unsigned {
            method: "GET",
            host: "examplebucket.s3.amazonaws.com",
            path: "/",
            query: &query,
            headers: &[],
            body: b"",
            time: "20130524T000000Z",
        };
        let headers = unsigned.sign(&keys());
        let signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        let (_, value) = headers.last().unwrap();
        assert!(value.ends_with(signature), "{value}");
        assert_eq!(
            encoded_query(&[("b", "a/ü"), ("a", "1")]),
            "a=1&b=a%2F%C3%BC"
        );
    }

    #[test]
    fn a_session_is_sent_and_signed_and_no_key_is_shown() {
        let keys = StoreKeys {
            session: Some("token".to_owned()),
            ..keys()
        };
        let unsigned = Unsigned {
            method: "PUT",
            host: "a",
            path: "/b/c",
            query: "",
            headers: &[],
            body: b"",
            time: "20130524T000000Z",
        };
        let headers = unsigned.sign(&keys);
        assert_eq!(
            headers[2],
            ("x-amz-security-token".to_owned(), "token".to_owned())
        );
        assert!(
            headers[3].1.contains("x-amz-date;x-amz-security-token,"),
            "{headers:?}"
        );
        let shown = format!("{keys:?}");
        assert!(
            !shown.contains("wJalr") && !shown.contains("token"),
            "{shown}"
        );
    }
}
