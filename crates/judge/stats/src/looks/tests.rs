use super::recursion::Boundaries;
use super::*;
use crate::draw::Draws;

const DEFAULT: [u32; 9] = [4, 6, 8, 10, 12, 14, 16, 18, 20];

fn planned(pairs: &[u32]) -> Looks {
    Looks::group_sequential(pairs, Level::NINETY_FIVE).unwrap()
}

/// The six digits: figures from four times as many nodes and places.
#[test]
fn default_boundaries_are_exact() {
    let exact = [
        8.160_395, 5.322_160, 4.166_535, 3.588_166, 3.222_080, 2.954_171, 2.738_722, 2.553_952,
        2.388_110,
    ];
    for (result, exact) in Boundaries::DEFAULT
        .criticals(&DEFAULT, 0.05)
        .into_iter()
        .zip(exact)
    {
        assert!((result - exact).abs() < 1e-6, "{result} for {exact}");
    }
}

/// The same boundaries found by simulating 400 000 experiments with other code:
/// each within their standard error, about 1 %.
#[test]
fn default_boundaries_are_near_those_by_simulation() {
    let simulated = [
        8.095, 5.341, 4.172, 3.609, 3.235, 2.956, 2.741, 2.561, 2.389,
    ];
    for (result, simulated) in Boundaries::DEFAULT
        .criticals(&DEFAULT, 0.05)
        .iter()
        .zip(simulated)
    {
        assert!(
            (result / simulated - 1.0).abs() < 0.01,
            "{result}, {simulated}"
        );
    }
}

#[test]
fn twice_as_fine_is_the_same() {
    let fine = Boundaries {
        places: 80,
        nodes: 80,
    };
    let dense: Vec<u32> = (3..=40).collect();
    let sparse = [4, 90, 200];
    for looks in [dense.as_slice(), &sparse, &DEFAULT] {
        let exact = fine.criticals(looks, 0.05);
        for (result, exact) in Boundaries::DEFAULT.criticals(looks, 0.05).iter().zip(exact) {
            assert!(
                (result / exact - 1.0).abs() < 1e-6,
                "{looks:?}: {result}, {exact}"
            );
        }
    }
}

/// A recursion shares no code with a simulation of whole experiments: what is
/// spent by each look is what should be.
#[test]
fn simulated_experiments_spend_what_is_planned() {
    const EXPERIMENTS: u32 = 100_000;
    for looks in [DEFAULT.as_slice(), &[3, 5, 6, 11], &[10, 30]] {
        let planned = planned(looks);
        let mut draws = Draws::seeded(4711);
        let mut ended = vec![0_u32; looks.len()];
        for _ in 0..EXPERIMENTS {
            if let Some(index) = first_outside(&planned, looks, &mut draws) {
                ended[index] += 1;
            }
        }
        let last = f64::from(*looks.last().unwrap());
        let mut by_now = 0;
        for (pairs, ended) in looks.iter().zip(ended) {
            by_now += ended;
            let result = f64::from(by_now) / f64::from(EXPERIMENTS);
            let share = 0.95 * 0.05 * (2.0 * f64::from(*pairs) / last).exp_m1() / 2.0_f64.exp_m1();
            let error = (share / f64::from(EXPERIMENTS)).sqrt();
            assert!(
                (result - share).abs() < 4.0 * error,
                "{pairs}: {result}, {share}"
            );
        }
    }
}

/// The index of the first look whose interval does not hold the truth.
fn first_outside(planned: &Looks, looks: &[u32], draws: &mut Draws) -> Option<usize> {
    let (mut sum, mut squares, mut pairs) = (0.0, 0.0, 0);
    looks.iter().position(|&look| {
        while pairs < look {
            let value = draws.normal();
            sum += value;
            squares += value * value;
            pairs += 1;
        }
        let count = f64::from(pairs);
        let variance = (squares - sum * sum / count) / (count - 1.0);
        let t = sum / (count * variance).sqrt();
        t.abs() > planned.critical(look).unwrap()
    })
}

#[test]
fn one_look_is_the_plain_t() {
    for pairs in [3, 4, 10, 57] {
        let plain = Looks::fixed(pairs, Level::NINETY_FIVE);
        let plain = plain.critical(pairs).unwrap();
        let [critical] = Boundaries::DEFAULT.criticals(&[pairs], 0.05)[..] else {
            panic!("one look has one boundary");
        };
        assert!(
            (plain / critical - 1.0).abs() < 1e-12,
            "{plain}, {critical}"
        );
        // What is planned keeps a little back.
        let planned = planned(&[pairs]).critical(pairs).unwrap();
        assert!((1.0..1.03).contains(&(planned / plain)), "{planned}");
    }
}

/// Worked by hand: at 95 % and four pairs (√5 / 0.05)^(1/2) = 6.69 is above 5; at
/// five (√6 / 0.05)^(2/5) = 4.7439, so T² = 4 · 3.7439 / (1 − 4.7439 / 6).
#[test]
fn open_looks_by_hand() {
    let open = Looks::open(Level::NINETY_FIVE);
    assert_eq!(open.critical(4), None);
    assert_eq!(open.last_at_most(4), None);
    let result = open.critical(5).unwrap();
    let needed = (6.0_f64.sqrt() / 0.05).powf(0.4);
    let by_hand = (4.0 * (needed - 1.0) / (1.0 - needed / 6.0)).sqrt();
    assert!(
        (result - by_hand).abs() < 1e-12 && (result - 8.46).abs() < 0.01,
        "{result}"
    );
    assert_eq!(open.last_at_most(1000), Some(1000));
    assert_eq!(open.last(), None);
    // It narrows at first, and in the end grows with the logarithm of the pairs.
    assert!(open.critical(10).unwrap() < 5.0);
    assert!(open.critical(1_000_000).unwrap() > open.critical(1000).unwrap());
}

#[test]
fn looks_are_where_they_were_planned() {
    let looks = planned(&DEFAULT);
    assert_eq!(looks.critical(5), None);
    assert_eq!(looks.last_at_most(3), None);
    assert_eq!(looks.last_at_most(5), Some(4));
    assert_eq!(looks.last_at_most(99), Some(20));
    assert_eq!(looks.last(), Some(20));
    let single = Looks::fixed(1, Level::NINETY_FIVE);
    assert_eq!((single.critical(1), single.last_at_most(1)), (None, None));
}

#[test]
fn what_is_no_plan_is_refused() {
    let refused = |pairs: &[u32]| {
        let looks = Looks::group_sequential(pairs, Level::NINETY_FIVE);
        looks.unwrap_err().to_string()
    };
    assert_eq!(refused(&[]), "no look is given");
    assert_eq!(
        refused(&[4, 6, 6]),
        "a look after 6 pairs follows one after 6"
    );
    assert_eq!(
        refused(&[2, 4]),
        "a look after 2 pairs is not within 3 and 10000"
    );
    assert_eq!(
        refused(&[4, 10_001]),
        "a look after 10001 pairs is not within 3 and 10000"
    );
}

/// For all plans: a higher level reaches further, and so does every look that is
/// followed by more.
#[test]
fn intervals_widen_with_the_level_and_with_looks() {
    let ninety = Level::try_new(0.9).unwrap();
    let narrow = Looks::group_sequential(&DEFAULT, ninety).unwrap();
    let wide = planned(&DEFAULT);
    for pairs in DEFAULT {
        let plain = Looks::fixed(pairs, Level::NINETY_FIVE);
        let plain = plain.critical(pairs).unwrap();
        let [narrow, wide] = [&narrow, &wide].map(|looks| looks.critical(pairs).unwrap());
        assert!(
            narrow < wide && plain < wide,
            "{pairs}: {narrow}, {wide}, {plain}"
        );
    }
}
