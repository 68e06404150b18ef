use proptest::prelude::*;

use super::*;

const STAT: &[u8] = b"cpu  10 1 5 900 7 2 3 4 6 0\ncpu0 10 1 5 900 7 2 3 4 6 0\nintr 1\n";
const DEVICES: &[u8] = b"Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 2 0 1 0 0 0 0 100 2 0 0 0 0 0 0
  eth0:7 1 0 0 0 0 0 0 9 2 0 3 0 0 0 0
";
const SNMP: &[u8] = b"Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors
Udp: 8 0 6 9 6
";
const TCP: &[u8] = b"Tcp: RtoMax ActiveOpens PassiveOpens AttemptFails CurrEstab
Tcp: -1 5 7 1 3
";
const SOCKETS: &[u8] = b"sockets: used 9
TCP: inuse 1 orphan 0 tw 287 alloc 1 mem 0
UDP: inuse 0 mem 84
";
const DISKS: &[u8] = b" 8 0 sda 1 2 30 4 5 6 70 8 9 10 11
 8 1 sda1 1 2 30 4 5 6 70 8 9 10 11
 8 2 sdab 1 2 1 4 5 6 2 8 9 10 11
 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11
 259 1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11
 7 0 loop0 1 2 500 4 5 6 700 8 9 10 11
 253 0 dm-0 1 2 500 4 5 6 700 8 9 10 11
";

#[test]
fn the_kernels_texts_are_read() {
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(cpu::parse(STAT), Some([21 * tick, 4 * tick, 0]));
    assert_eq!(network::parse_devices(DEVICES), Some([107, 109, 4]));
    assert_eq!(network::udp_errors(SNMP), Some(6));
    assert_eq!(network::udp6_errors(b"Udp6InErrors   \t2\n"), Some(2));
    assert_eq!(disk::parse(DISKS), Some([34 * 512, 79 * 512, 0]));
    assert_eq!(disk::flushes(DISKS), None);
    let newer = b"254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 7 0 loop0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 9 9\n";
    assert_eq!(disk::flushes(newer), Some(16));
    assert_eq!(network::tcp_counts(TCP), Some([3, 12, 0]));
    assert_eq!(network::tcp_counts(SNMP), None);
    assert_eq!(network::tcp_time_wait(SOCKETS), Some(287));
    let pressure = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=17\nfull avg10=0.00 total=9\n";
    assert_eq!(pressure::parse(pressure), Some(17_000));
    assert_eq!(parse_load(b"0.25 0.1 0.0 1/2 3\n"), Some(0.25));
}

#[test]
fn a_folder_with_little_gives_little() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = HostReader::new(folder.path());
    let (mut samples, mut buffer) = (Vec::new(), Vec::new());
    reader.sample(0, (0, &[]), &mut buffer, &mut samples);
    assert_eq!(samples, []);
    std::fs::create_dir_all(folder.path().join("thread-self/net")).unwrap();
    for (name, text) in [
        ("stat", STAT),
        ("thread-self/net/dev", DEVICES),
        ("diskstats", DISKS),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    reader.sample(0, (0, &[]), &mut buffer, &mut samples);
    let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    let expected = [
        "host_cpu_busy",
        "host_cpu_steal",
        "host_cpu_foreign",
        "host_net_receive_bytes",
        "host_net_send_bytes",
        "host_net_drops",
        "host_disk_read_bytes",
        "host_disk_write_bytes",
    ];
    assert_eq!(names, expected);
}

proptest! {
    #[test]
    fn for_all_bytes_nothing_panics(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(b" :\n0123456789".to_vec())], 0..300),
    ) {
        for prefix in [b"".as_slice(), b"cpu ", b"some total=", b"Udp: InErrors\nUdp: ", b"Tcp: CurrEstab\nTcp: ", b"TCP: tw "] {
            let text = [prefix, &bytes].concat();
            cpu::parse(&text);
            pressure::parse(&text);
            network::parse_devices(&text);
            network::udp_errors(&text);
            network::udp6_errors(&text);
            disk::parse(&text);
            disk::flushes(&text);
            network::tcp_counts(&text);
            network::tcp_time_wait(&text);
            parse_load(&text);
        }
    }

    #[test]
    fn for_all_ticks_foreign_never_falls_and_is_never_too_much(
        beats in proptest::collection::vec((0_u64..1000, 0_u64..1000), 1..40),
    ) {
        let (mut foreign, mut busy, mut known, mut last) = (cpu::Foreign::default(), 0, 0, 0);
        for (more_busy, more_known) in beats {
            busy += more_busy;
            known += more_known;
            let total = foreign.total(busy, known);
            prop_assert!(total >= last && total <= busy);
            last = total;
        }
    }
}

#[test]
fn busy_time_is_read_of_the_target_s_cpus() {
    let text = b"cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 900 0 4 5 7 0 0\ncpu1 10 0 0 0 0 0 0 1 0 0\ncpu10 1 0 0 0 0 0 0 0 0 0\n";
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(cpu::busy_of(text, &[0]), Some([15 * tick, 7 * tick, 0]));
    assert_eq!(cpu::busy_of(text, &[0, 1]), Some([25 * tick, 8 * tick, 0]));
    assert_eq!(cpu::busy_of(text, &[10]), Some([tick, 0, 0]));
}
