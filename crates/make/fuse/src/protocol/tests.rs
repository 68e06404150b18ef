use std::ffi::OsStr;

use proptest::prelude::*;

use super::*;

/// A request as the kernel writes it.
fn request(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(REQUEST_HEAD_BYTES + body.len()).unwrap();
    let mut bytes = Vec::new();
    bytes.extend(length.to_ne_bytes());
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(77_u64.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    for number in [1000_u32, 1001, 4242, 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(body);
    bytes
}

#[test]
fn a_write_is_read_with_its_data() {
    let mut body = Vec::new();
    body.extend(5_u64.to_ne_bytes());
    body.extend(4096_u64.to_ne_bytes());
    body.extend(3_u32.to_ne_bytes());
    body.extend([0; 20]);
    body.extend(b"abc and more");
    let bytes = request(16, 9, &body);
    let request = Request::parse(&bytes).unwrap();
    assert_eq!(
        (request.unique, request.node, request.uid, request.gid),
        (77, 9, 1000, 1001)
    );
    assert_eq!(request.thread, 4242);
    let Operation::Write {
        handle: 5,
        offset: 4096,
        data,
    } = request.operation
    else {
        panic!("{request:?}");
    };
    assert_eq!(data, b"abc");
}

#[test]
fn names_end_where_they_end() {
    let mut body = 8_u64.to_ne_bytes().to_vec();
    body.extend(b"old\0new\0");
    let bytes = request(12, 1, &body);
    let request = Request::parse(&bytes).unwrap();
    let Operation::Rename {
        folder: 8,
        flags: 0,
        from,
        to,
    } = request.operation
    else {
        panic!("{request:?}");
    };
    assert_eq!((from, to), (OsStr::new("old"), OsStr::new("new")));
}

#[test]
fn only_what_is_to_be_changed_is_given() {
    let mut body = Vec::new();
    // The length, and the time of the last change, which is now.
    body.extend((1_u32 << 3 | 1 << 5 | 1 << 8).to_ne_bytes());
    body.extend([0; 4]);
    body.extend(3_u64.to_ne_bytes());
    body.extend(123_u64.to_ne_bytes());
    body.extend([0; 64]);
    let bytes = request(4, 2, &body);
    let request = Request::parse(&bytes).unwrap();
    let Operation::SetAttributes(change) = request.operation else {
        panic!("{request:?}");
    };
    let expected = SetAttributes {
        size: Some(123),
        modified: Some(None),
        ..SetAttributes::default()
    };
    assert_eq!(change, expected);
}

#[test]
fn answers_are_as_long_as_the_kernel_requires() {
    let attributes = Attributes::read_only(2, NodeKind::File, 1000, (5, 6), (0, 0));
    let length = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        put(&mut out);
        out.len()
    };
    let init = Init {
        major: 7,
        minor: 40,
        readahead: 4096,
        flags: u32::MAX,
    };
    assert_eq!(length(&|out| init_reply(init, out)), 64);
    assert_eq!(
        length(&|out| put_entry(out, 2, &attributes, Validity::NONE)),
        128
    );
    assert_eq!(
        length(&|out| put_attributes(out, &attributes, Validity::NONE)),
        104
    );
    assert_eq!(length(&|out| put_open(out, 1, OpenFlags::Direct)), 16);
    assert_eq!(length(&|out| put_written(out, 1)), 8);
    assert_eq!(length(&|out| put_statfs(out, 1 << 30, 1 << 20)), 80);
}

#[test]
fn a_listing_stays_within_its_room() {
    let mut out = vec![0; REPLY_HEAD_BYTES];
    let entry = FolderEntry {
        inode: 3,
        offset: 1,
        kind: 0o100_000,
        name: OsStr::new("abc"),
    };
    let from = out.len();
    assert!(put_folder_entry(&mut out, from, 64, entry));
    assert!(put_folder_entry(&mut out, from, 64, entry));
    assert!(!put_folder_entry(&mut out, from, 64, entry));
    assert_eq!(out.len() - from, 64);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(opcode in 0_u32..60, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = request(opcode, 1, &body);
        drop(Request::parse(&bytes));
        drop(Request::parse(&body));
        prop_assert!(forgotten(&body).count() <= body.len() / 16);
    }
}
