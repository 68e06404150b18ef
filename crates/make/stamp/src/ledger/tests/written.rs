//! Ledgers that are written, read again and joined.

use proptest::sample::Index;

use super::super::bytes::LedgerWriter;
use super::*;

/// Bytes before the content: mark and version.
const HEAD: usize = 9;
/// Bytes of the checksum.
const SUM: usize = 8;

/// Enters an arrival that is damaged, late or neither, as its number says.
fn enter_odd(ledger: &mut Ledger, sequence: u64) {
    let stamp = Stamp {
        run: ledger.expected().run,
        stream: stream(),
        sequence,
        time: 1_000,
        lateness: 7,
        span: Span::NONE,
    };
    let span = match sequence % 97 {
        0 => SpanCheck::Damaged,
        1 => SpanCheck::Pending,
        2 => SpanCheck::Unverifiable,
        _ => SpanCheck::Intact,
    };
    let delay = if sequence.is_multiple_of(89) { 500 } else { 5 };
    ledger.enter(&stamp, span, Moment::new(1_000 + delay));
    if sequence % 194 == 1 {
        ledger.check_span(&stamp, SpanCheck::Intact);
    }
}

fn read(bytes: &[u8], like: &Ledger) -> Result<Ledger, LedgerReadError> {
    Ledger::from_bytes(bytes, like.expected().clone())
}

/// The figures that do not depend on which of two arrivals came first.
fn without_order(mut figures: StreamFigures) -> StreamFigures {
    figures.damaged_sequences.sort_unstable();
    if figures.damaged > 64 {
        figures.damaged_sequences.clear();
    }
    StreamFigures {
        reordered: 0,
        displacement_max: 0,
        late: 0,
        ..figures
    }
}

/// The content of written bytes with the right checksum for it.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut to = LedgerWriter::begin();
    to.bytes(content);
    to.end()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_split_that_is_written_and_read_is_one_ledger_together(
        arrivals in arrivals(),
        machines in 1_usize..6,
        places in prop::collection::vec(any::<Index>(), 1..97),
        sent in 0_u64..600_000,
        copies in 1_u8..4,
    ) {
        let mut parts = vec![ledger(copies); machines];
        let (mut single, mut whole) = (ledger(copies), ledger(copies));
        for (sequence, place) in arrivals.iter().zip(places.iter().cycle()) {
            enter_odd(&mut parts[place.index(machines)], *sequence);
            enter_odd(&mut single, *sequence);
        }
        let (mut reordered, mut late, mut displacement) = (0, 0, 0);
        for part in &parts {
            let bytes = part.to_bytes();
            let mut again = read(&bytes, part).unwrap();
            prop_assert_eq!(again.to_bytes(), bytes);
            let its = figures(part, Some(sent));
            prop_assert_eq!(&figures(&again, Some(sent)), &its);
            reordered += its.reordered;
            late += its.late;
            displacement = displacement.max(its.displacement_max);
            whole.absorb(&mut again).unwrap();
        }
        let together = figures(&whole, Some(sent));
        // There is no order between machines: each counts what it saw.
        prop_assert_eq!((together.reordered, together.displacement_max), (reordered, displacement));
        prop_assert_eq!(together.late, late);
        prop_assert_eq!(without_order(together), without_order(figures(&single, Some(sent))));
        let ranges = |ledger: &Ledger| ledger.losses(stream(), Some(sent), usize::MAX);
        prop_assert_eq!(ranges(&whole), ranges(&single));
    }

    #[test]
    fn a_ledger_that_gave_numbers_up_is_read_as_it_was_written(
        scattered in prop::collection::vec(0_u64..400_000, 6_000..12_000),
        arrivals in arrivals(),
        machines in 1_usize..4,
        sent in 1_u64..500_000,
        copies in 1_u8..4,
    ) {
        let mut parts = vec![tight(copies); machines];
        let (mut whole, mut plain) = (tight(copies), Plain::default());
        for (place, sequence) in scattered.iter().chain(&arrivals).enumerate() {
            enter(&mut parts[place % machines], *sequence);
            plain.enter(*sequence, u64::from(copies));
        }
        for part in &parts {
            let bytes = part.to_bytes();
            let mut again = read(&bytes, part).unwrap();
            prop_assert_eq!(again.to_bytes(), bytes);
            prop_assert!(again.memory() <= part.memory());
            prop_assert_eq!(figures(&again, Some(sent)), figures(part, Some(sent)));
            whole.absorb(&mut again).unwrap();
        }
        let figures = figures(&whole, Some(sent));
        let truth = plain.truth(sent, u64::from(copies));
        for (bounds, truth) in bounds(&figures).iter().zip(truth) {
            prop_assert!(bounds.contains(truth), "{truth} in {bounds:?} of {figures:?}");
        }
    }

    #[test]
    fn what_is_damaged_is_refused(
        arrivals in arrivals(),
        place in any::<Index>(),
        change in 1..=u8::MAX,
        end in any::<Index>(),
        more in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let mut ledger = ledger(2);
        arrivals.iter().for_each(|sequence| enter_odd(&mut ledger, *sequence));
        let bytes = ledger.to_bytes();
        let mut changed = bytes.clone();
        changed[place.index(bytes.len())] ^= change;
        prop_assert!(read(&changed, &ledger).is_err());
        prop_assert!(read(&bytes[..end.index(bytes.len())], &ledger).is_err());
        prop_assert!(read(&[&bytes[..], &more].concat(), &ledger).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// As if someone had made the checksum fit.
    #[test]
    fn no_content_makes_a_ledger_that_panics(
        arrivals in arrivals(),
        is_tight in any::<bool>(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0_usize..3), 1..6),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let make = || if is_tight { tight(2) } else { ledger(2) };
        let mut seen = make();
        arrivals.iter().for_each(|sequence| enter_odd(&mut seen, *sequence));
        let bytes = seen.to_bytes();
        let mut content = bytes[HEAD..bytes.len() - SUM].to_vec();
        for (place, byte, how) in changes {
            let place = place.index(content.len());
            match how {
                0 => content[place] = byte,
                1 => content.insert(place, byte),
                _ => {
                    content.remove(place);
                }
            }
        }
        let cut = content.len() / 2;
        for content in [content.clone(), [&content[..cut], &noise].concat(), noise] {
            let Ok(mut odd) = read(&sealed(&content), &seen) else {
                continue;
            };
            prop_assert!(odd.memory() <= odd.expected().memory);
            drop(figures(&odd, Some(1_000_000)));
            drop(odd.losses(stream(), None, usize::MAX));
            let mut whole = seen.clone();
            whole.absorb(&mut odd.clone()).unwrap();
            drop(figures(&whole, None));
            arrivals.iter().for_each(|sequence| enter_odd(&mut odd, *sequence));
            odd.absorb(&mut whole).unwrap();
            prop_assert!(odd.memory() <= odd.expected().memory);
        }
    }
}

#[test]
fn bytes_are_few() {
    let mut ledger = ledger(1);
    for sequence in (0..30 * 65_536).filter(|sequence| sequence % 100 != 7) {
        enter(&mut ledger, sequence);
    }
    // One byte for each missing event, and little more.
    let bytes = ledger.to_bytes();
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    let again = read(&bytes, &ledger).unwrap();
    assert_eq!(figures(&again, None).lost, Bounds::exact(19_661));
}

#[test]
fn other_ledgers_are_refused_by_name() {
    let bytes = ledger(1).to_bytes();
    let refused = |bytes: &[u8], like: &Ledger| read(bytes, like).unwrap_err();
    let like = ledger(1);
    assert_eq!(refused(b"PAR1", &like), LedgerReadError::NoLedger);
    assert_eq!(
        refused(b"stwledgr", &like).to_string(),
        "the delivery ledger is damaged: its end is missing"
    );
    let mut later = bytes.clone();
    later[HEAD - 1] = 2;
    assert_eq!(
        refused(&later, &like),
        LedgerReadError::Version { version: 2 }
    );
    let unlike = LedgerReadError::Ledger(LedgerError::Unlike);
    assert_eq!(refused(&bytes, &ledger(2)), unlike);
    let mut open = ledger(1);
    (0..40).for_each(|window| enter_half(&mut open, window));
    assert_eq!(
        refused(&open.to_bytes(), &tight(1)),
        LedgerReadError::Memory
    );
}

/// Enters every other number of a window, so it is kept as bits.
fn enter_half(ledger: &mut Ledger, window: u64) {
    for place in (0..65_536).step_by(2) {
        enter(ledger, window * 65_536 + place);
    }
}
