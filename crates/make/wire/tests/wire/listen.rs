use std::error::Error;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use stillwell_wire::{ListenError, listen};

#[test]
fn a_taken_address_is_reported_with_what_to_do() {
    let first = listen::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = first.local_addr().unwrap();
    let error = listen::tcp(address).unwrap_err();
    assert!(error.is_taken());
    assert_eq!(
        error.to_string(),
        format!(
            "listen on {address}: it is already in use; stop that program or choose another address"
        )
    );
    assert!(error.source().is_some());
    let first = listen::udp("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(
        listen::udp(first.local_addr().unwrap())
            .unwrap_err()
            .is_taken()
    );
}

#[test]
fn an_address_of_another_host_is_not_taken() {
    let error = listen::tcp("192.0.2.1:0".parse().unwrap()).unwrap_err();
    assert!(!error.is_taken());
}

/// Binds a path either way and drops the socket.
fn bind_both(path: &Path) -> [Result<(), ListenError>; 2] {
    [
        listen::unix_stream(path).map(drop),
        listen::unix_datagram(path).map(drop),
    ]
}

#[test]
fn a_live_socket_stays_and_a_stale_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let stream = listen::unix_stream(&path).unwrap();
    assert!(
        bind_both(&path)
            .iter()
            .all(|b| b.as_ref().unwrap_err().is_taken())
    );
    UnixStream::connect(&path).unwrap();
    drop(stream);
    let datagram = listen::unix_datagram(&path).unwrap();
    assert!(
        bind_both(&path)
            .iter()
            .all(|b| b.as_ref().unwrap_err().is_taken())
    );
    UnixDatagram::unbound()
        .unwrap()
        .send_to(b"x", &path)
        .unwrap();
    drop(datagram);
    let _stream = listen::unix_stream(&path).unwrap();
    UnixStream::connect(&path).unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link, folder.path()] {
        for bound in bind_both(path) {
            let error = bound.unwrap_err();
            assert!(!error.is_taken());
            assert!(
                error
                    .to_string()
                    .contains("remove it or choose another path")
            );
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}
