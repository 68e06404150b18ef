use std::io::{Read, Write};

use stillwell_metric::Outcome;
use stillwell_wire::{Stream, dial, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::on_worker;

#[test]
fn an_address_without_a_listener_counts_as_refused() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let error = dial::tcp(&free.to_string()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectRefused);
        assert_eq!(error.to_string(), format!("connect to {free}"));
        let nothing = folder.path().join("nothing");
        let error = dial::unix_stream(&nothing).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectRefused);
        let error = dial::unix_datagram(&nothing).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectRefused);
        let stale = folder.path().join("stale");
        drop(std::os::unix::net::UnixListener::bind(&stale)?);
        let error = dial::unix_stream(&stale).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectRefused);
        Ok(())
    });
}

#[test]
fn what_is_no_address_counts_as_failed() {
    on_worker(|| async {
        let error = dial::tcp("127.0.0.1").await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectFailed);
        let error = dial::udp("127.0.0.1:0", "[::1]:9").await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::ConnectFailed);
        Ok(())
    });
}

#[test]
fn datagrams_reach_where_they_were_dialled() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("datagrams");
        let unix = tokio::net::UnixDatagram::from_std(listen::unix_datagram(&path)?)?;
        dial::unix_datagram(&path).await?.send(b"unix").await?;
        let udp = tokio::net::UdpSocket::from_std(listen::udp("127.0.0.1:0".parse()?)?)?;
        let address = udp.local_addr()?.to_string();
        let sender = dial::udp("127.0.0.1:0", &address).await?;
        sender.send(b"inet").await?;
        let mut room = [0; 16];
        let length = unix.recv(&mut room).await?;
        assert_eq!(&room[..length], b"unix");
        let length = udp.recv(&mut room).await?;
        assert_eq!(&room[..length], b"inet");
        Ok(())
    });
}

#[test]
fn datagrams_from_any_address_leave_from_one_of_the_family_of_their_receiver() {
    on_worker(|| async {
        let receiver = listen::udp("127.0.0.1:0".parse()?)?;
        let address = receiver.local_addr()?;
        // The name may have an address of IPv6 as well.
        let named = format!("localhost:{}", address.port());
        for (bind, to) in [("0.0.0.0:0", &named), ("[::]:0", &address.to_string())] {
            let sender = dial::udp(bind, to).await?;
            assert_eq!(sender.peer_addr()?, address, "{bind}");
        }
        // A host without IPv6 has no such receiver.
        if let Ok(receiver) = std::net::UdpSocket::bind("[::1]:0") {
            let address = receiver.local_addr()?;
            let sender = dial::udp("0.0.0.0:0", &address.to_string()).await?;
            assert_eq!(sender.peer_addr()?, address);
        }
        Ok(())
    });
}

#[test]
fn streams_of_both_kinds_carry_bytes_both_ways() {
    on_worker(|| async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("stream");
        let unix = listen::unix_stream(&path)?;
        let tcp = listen::tcp("127.0.0.1:0".parse()?)?;
        let address = tcp.local_addr()?.to_string();
        let mut stream = Stream::from(dial::unix_stream(&path).await?);
        let mut two = Stream::from(dial::tcp(&address).await?);
        // Both have connected, so both can be accepted at once.
        let (mut stream_peer, _) = unix.accept()?;
        let (mut two_peer, _) = tcp.accept()?;
        stream_peer.set_nonblocking(false)?;
        two_peer.set_nonblocking(false)?;
        for (stream, peer) in [
            (&mut stream, &mut stream_peer as &mut dyn ReadWrite),
            (&mut two, &mut two_peer),
        ] {
            stream.write_all(b"ping").await?;
            let mut room = [0; 4];
            peer.read_exact(&mut room)?;
            assert_eq!(&room, b"ping");
            peer.write_all(b"pong")?;
            stream.read_exact(&mut room).await?;
            assert_eq!(&room, b"pong");
        }
        Ok(())
    });
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}
