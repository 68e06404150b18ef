//! Flow records as routers export them: `NetFlow` version 5, `NetFlow` version
//! 9 (RFC 3954) and IPFIX (RFC 7011). An event is one packet, and a block has
//! one.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{NetflowPlan, NetflowVersion};

use crate::ExporterPosition;
use crate::contract::{Event, Joint, Recipe, Writer};
use crate::event_time::EventTime;
use crate::pool::{SLACK, TextWriter};
use crate::random::Random;

/// Bytes of a version 5 header, and of a record.
const V5_HEADER: usize = 24;
const V5_RECORD: usize = 48;

/// Records of a version 5 packet at most.
const V5_RECORDS_MAX: usize = 30;

/// Bytes of what is not records in other packets at most: header, template and
/// padding.
const HEADERS_MAX: usize = 128;

/// The template's number: the first that is free.
const TEMPLATE: u16 = 256;

/// Numbers of information elements and their lengths, alike in version 9 and
/// IPFIX: bytes, packets, protocol, type of service, TCP flags, source port and
/// address, input, destination port and address, output, next hop, origins, and
/// source and destination prefix lengths.
const ELEMENTS: [(u16, u16); 16] = [
    (1, 4),
    (2, 4),
    (4, 1),
    (5, 1),
    (6, 1),
    (7, 2),
    (8, 4),
    (10, 2),
    (11, 2),
    (12, 4),
    (14, 2),
    (15, 4),
    (16, 2),
    (17, 2),
    (9, 1),
    (13, 1),
];

/// Last and first time of a flow, in milliseconds since the exporter's start, which is in the
/// header of version 9.
const SINCE_START: [(u16, u16); 2] = [(21, 4), (22, 4)];

/// The same since 1970: the header of IPFIX has no start.
const SINCE_1970: [(u16, u16); 2] = [(153, 8), (152, 8)];

/// Bytes of a record by that template.
const fn record_bytes(times: &[(u16, u16); 2]) -> usize {
    let (mut sum, mut position) = ((times[0].1 + times[1].1) as usize, 0);
    while position < ELEMENTS.len() {
        sum += ELEMENTS[position].1 as usize;
        position += 1;
    }
    sum
}

/// Returns the fields of the times of flows.
const fn times(version: NetflowVersion) -> &'static [(u16, u16); 2] {
    match version {
        NetflowVersion::V5 | NetflowVersion::V9 => &SINCE_START,
        NetflowVersion::Ipfix => &SINCE_1970,
    }
}

/// Bytes into which a packet of one record always fits.
pub(crate) fn floor(format: &PayloadFormat) -> usize {
    match format {
        PayloadFormat::Netflow(plan) if plan.version == NetflowVersion::V5 => V5_HEADER + V5_RECORD,
        PayloadFormat::Netflow(plan) => HEADERS_MAX + record_bytes(times(plan.version)),
        _ => HEADERS_MAX,
    }
}

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::Netflow(plan) => *plan,
        _ => NetflowPlan::default(),
    };
    let flows_max = match plan.version {
        NetflowVersion::V5 => ((recipe.event_max - V5_HEADER) / V5_RECORD).min(V5_RECORDS_MAX),
        version => (recipe.event_max - HEADERS_MAX) / record_bytes(times(version)),
    };
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let record_max = V5_RECORD.max(record_bytes(times(plan.version)));
    let mut time = EventTime::new(&mut random);
    if let Some(before) = recipe.exporter {
        time.nanos = before.nanos;
    }
    Box::new(Netflow {
        time,
        random,
        plan,
        number: u32::from(plan.exporter).wrapping_add(recipe.part.index),
        flows_max,
        began: recipe.exporter.map_or(0, |before| before.began),
        flows: recipe.exporter.map_or(0, |before| before.flows),
        packets: recipe.exporter.map_or(0, |before| before.packets),
        before: recipe.exporter,
        room: vec![0; HEADERS_MAX + 256 * record_max + SLACK].into_boxed_slice(),
    })
}

#[derive(Debug)]
struct Netflow {
    random: Random,
    time: EventTime,
    plan: NetflowPlan,
    /// Number of the exporter. Each worker is an exporter of its own, because sequence numbers
    /// are those of one exporter.
    number: u32,
    /// Records that a packet has room for.
    flows_max: usize,
    /// When the exporter started, in milliseconds since 1970.
    began: u64,
    /// Records sent so far.
    flows: u32,
    packets: u32,
    /// Position before the packet given last; `None` before the first packet.
    before: Option<ExporterPosition>,
    room: Box<[u8]>,
}

/// One flow record.
struct Flow {
    source: u32,
    destination: u32,
    next_hop: u32,
    interfaces: [u16; 2],
    packets: u32,
    bytes: u32,
    /// Milliseconds since the exporter's start.
    first: u32,
    last: u32,
    ports: [u16; 2],
    flags: u8,
    protocol: u8,
    systems: [u16; 2],
}

impl Writer for Netflow {
    fn next(&mut self) -> Option<Event<'_>> {
        let mut random = self.random.clone();
        if self.began > 0 {
            self.before = Some(ExporterPosition {
                began: self.began,
                nanos: self.time.nanos,
                flows: self.flows,
                packets: self.packets,
            });
        }
        self.time.advance(&mut random);
        if self.began == 0 {
            self.began = self.time.milliseconds() - 3_600_000;
        }
        let range = self.plan.flows_per_packet;
        let drawn = random.between(u64::from(range.low), u64::from(range.high));
        let count = crate::mix::index(drawn).clamp(1, self.flows_max);
        let mut out = TextWriter::new(&mut self.room);
        let moment = Moment {
            nanos: self.time.nanos,
            seconds: self.time.seconds(),
            uptime: low_32(self.time.milliseconds() - self.began),
        };
        let position = Position {
            exporter: self.number,
            flows: self.flows,
            packets: self.packets,
            has_template: self
                .packets
                .is_multiple_of(u32::from(self.plan.template_every.max(1))),
        };
        match self.plan.version {
            NetflowVersion::V5 => version_5(&mut out, &mut random, &moment, &position, count),
            NetflowVersion::V9 => version_9(&mut out, &mut random, &moment, &position, count),
            NetflowVersion::Ipfix => ipfix(&mut out, &mut random, &moment, &position, count),
        }
        let units = stillwell_units::count(count);
        self.flows = self.flows.wrapping_add(units);
        self.packets = self.packets.wrapping_add(1);
        self.random = random;
        Some(Event {
            bytes: out.finish(),
            slot: None,
            units,
            joint: Joint::Break,
        })
    }

    fn exporter(&self) -> Option<ExporterPosition> {
        self.before
    }
}

/// When a packet leaves.
struct Moment {
    nanos: u64,
    seconds: u32,
    /// Milliseconds since the exporter's start.
    uptime: u32,
}

impl Moment {
    /// Milliseconds since 1970 at so many since the exporter's start.
    fn since_1970(&self, uptime: u32) -> u64 {
        self.nanos / 1_000_000 - u64::from(self.uptime.saturating_sub(uptime))
    }
}

/// The position of a packet in its stream.
struct Position {
    exporter: u32,
    flows: u32,
    packets: u32,
    has_template: bool,
}

fn version_5(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    moment: &Moment,
    position: &Position,
    count: usize,
) {
    put_16(out, 5);
    put_16(out, low_16(count));
    put_32(out, moment.uptime);
    put_32(out, moment.seconds);
    put_32(out, low_32(moment.nanos % 1_000_000_000));
    put_32(out, position.flows);
    // Engine type and number, and no sampling.
    let [.., engine_type, engine_number] = position.exporter.to_be_bytes();
    out.fixed(&[engine_type, engine_number, 0, 0]);
    for _ in 0..count {
        let flow = Flow::draw(random, moment.uptime);
        put_32(out, flow.source);
        put_32(out, flow.destination);
        put_32(out, flow.next_hop);
        put_16(out, flow.interfaces[0]);
        put_16(out, flow.interfaces[1]);
        put_32(out, flow.packets);
        put_32(out, flow.bytes);
        put_32(out, flow.first);
        put_32(out, flow.last);
        put_16(out, flow.ports[0]);
        put_16(out, flow.ports[1]);
        out.fixed(&[0, flow.flags, flow.protocol, 0]);
        put_16(out, flow.systems[0]);
        put_16(out, flow.systems[1]);
        // Prefix lengths and padding.
        out.fixed(&[16, 24, 0, 0]);
    }
}

fn version_9(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    moment: &Moment,
    position: &Position,
    count: usize,
) {
    put_16(out, 9);
    put_16(out, low_16(count + usize::from(position.has_template)));
    put_32(out, moment.uptime);
    put_32(out, moment.seconds);
    put_32(out, position.packets);
    put_32(out, position.exporter);
    if position.has_template {
        write_template(out, 0, &SINCE_START);
    }
    write_records(out, random, moment, (&SINCE_START, count));
}

fn ipfix(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    moment: &Moment,
    position: &Position,
    count: usize,
) {
    put_16(out, 10);
    put_16(out, 0);
    put_32(out, moment.seconds);
    put_32(out, position.flows);
    put_32(out, position.exporter);
    if position.has_template {
        write_template(out, 2, &SINCE_1970);
    }
    write_records(out, random, moment, (&SINCE_1970, count));
    let [high, low] = low_16(out.len()).to_be_bytes();
    out.replace(2, high);
    out.replace(3, low);
}

/// Writes the template as the one record of set `set`.
fn write_template(out: &mut TextWriter<'_>, set: u16, times: &[(u16, u16); 2]) {
    let elements = ELEMENTS.len() + times.len();
    put_16(out, set);
    put_16(out, low_16(8 + 4 * elements));
    put_16(out, TEMPLATE);
    put_16(out, low_16(elements));
    for (element, length) in ELEMENTS.iter().chain(times) {
        put_16(out, *element);
        put_16(out, *length);
    }
}

/// Writes records as the template says, filled up to a multiple of four bytes.
fn write_records(
    out: &mut TextWriter<'_>,
    random: &mut Random,
    moment: &Moment,
    (times, count): (&[(u16, u16); 2], usize),
) {
    let size = (4 + count * record_bytes(times)).next_multiple_of(4);
    let end = out.len() + size;
    put_16(out, TEMPLATE);
    put_16(out, low_16(size));
    for _ in 0..count {
        let flow = Flow::draw(random, moment.uptime);
        put_32(out, flow.bytes);
        put_32(out, flow.packets);
        out.fixed(&[flow.protocol, 0, flow.flags]);
        put_16(out, flow.ports[0]);
        put_32(out, flow.source);
        put_16(out, flow.interfaces[0]);
        put_16(out, flow.ports[1]);
        put_32(out, flow.destination);
        put_16(out, flow.interfaces[1]);
        put_32(out, flow.next_hop);
        put_16(out, flow.systems[0]);
        put_16(out, flow.systems[1]);
        out.fixed(&[16, 24]);
        for (time, (_, length)) in [flow.last, flow.first].into_iter().zip(times) {
            match length {
                4 => put_32(out, time),
                _ => out.fixed(&moment.since_1970(time).to_be_bytes()),
            }
        }
    }
    while out.len() < end {
        out.fixed(&[0]);
    }
}

impl Flow {
    /// Of 10.0.0.0/8 to 192.168.0.0/16, by one of a hundred TCP or UDP or
    /// rarely something else.
    fn draw(random: &mut Random, uptime: u32) -> Self {
        const WELL_KNOWN: [u16; 16] = [
            22, 25, 53, 80, 110, 123, 143, 389, 443, 443, 443, 993, 3306, 5432, 6379, 8080,
        ];
        let (word, more) = (random.word(), random.word());
        let protocol = match random.below(100) {
            0..70 => 6,
            70..95 => 17,
            95..98 => 1,
            _ => 47,
        };
        let has_ports = protocol == 6 || protocol == 17;
        let ports = if has_ports {
            [1024 + random.below(64_512), *random.choose(&WELL_KNOWN)]
        } else {
            [0, 0]
        };
        let packets = 1 + u32::from(random.below(10_000));
        let size = 64 + u32::from(random.below(1437));
        let age = u32::from(random.bits(16)).min(uptime);
        let duration = u32::from(random.bits(12)).min(age);
        Self {
            source: 10 << 24 | low_32(word) >> 8,
            destination: 0xc0a8_0000 | low_32(word >> 32) >> 16,
            next_hop: 0xac10_0000 | low_32(more) >> 16,
            interfaces: [1 + random.below(254), 1 + random.below(254)],
            packets,
            bytes: packets * size,
            first: uptime - age,
            last: uptime - age + duration,
            ports,
            flags: if protocol == 6 {
                random.byte() & 0x1f
            } else {
                0
            },
            protocol,
            systems: [1 + random.below(65_534), 1 + random.below(65_534)],
        }
    }
}

#[inline(always)]
fn put_16(out: &mut TextWriter<'_>, value: u16) {
    out.fixed(&value.to_be_bytes());
}

#[inline(always)]
fn put_32(out: &mut TextWriter<'_>, value: u32) {
    out.fixed(&value.to_be_bytes());
}

/// A count that fits 16 bits, as every packet does.
fn low_16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "dropping the high bits is what this function is for"
)]
const fn low_32(word: u64) -> u32 {
    word as u32
}
