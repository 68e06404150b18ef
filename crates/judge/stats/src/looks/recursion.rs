//! The multipliers of planned looks, by recursion over the pairs.
//!
//! Where there is no change the log ratios x are independent and normal, and only
//! W = Σx / √(Σx²) matters, since T = W √(n − 1) / √(n − W²). The length √(Σx²)
//! is independent of every W so far, so the W form a Markov chain: with
//! tan ψ = xₙ₊₁ / √(Σx²), whose density in ψ is proportional to cosⁿ⁻¹ψ,
//!
//! W′ = W cos ψ + sin ψ.
//!
//! What has not left the intervals after n pairs has a density f over W. Each
//! pair makes it f′(y) = C ∫ cosⁿ⁻²ψ f((y − sin ψ) / cos ψ) dψ, and each look
//! cuts off at both ends what it may spend.

use std::f64::consts::{FRAC_PI_2, PI};

use statrs::function::gamma::ln_gamma;

use crate::number::{count, float};
use crate::quadrature::{Node, gauss_legendre, gauss_legendre_of_sine};
use crate::student::StudentT;

/// Only 1e-13 of all W lie further out: their tails are at most the normal ones.
const REACH: f64 = 7.5;

/// A share of the largest density that no longer counts.
const NEGLIGIBLE: f64 = 1e-15;

/// Halvings in search of a boundary: enough for fifteen digits.
const HALVINGS: u32 = 50;

/// Resolution of densities and integrals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundaries {
    /// Places at which a density is known.
    pub(super) places: usize,
    /// Nodes of each integral.
    pub(super) nodes: usize,
}

impl Boundaries {
    /// Six digits: the tests compare with twice as many.
    pub(super) const DEFAULT: Self = Self {
        places: 40,
        nodes: 40,
    };

    /// The multiplier at each of these rising looks, the first at least 3, that
    /// together spend `error_rate`.
    pub(super) fn criticals(self, looks: &[u32], error_rate: f64) -> Vec<f64> {
        let Some((&first, later)) = looks.split_first() else {
            return Vec::new();
        };
        let last = looks.last().copied().unwrap_or(first);
        let spent = |look: u32| error_rate * spent_share(look, last);
        let degrees = float(count(first)) - 1.0;
        let start = StudentT::try_new(degrees).map_or(f64::INFINITY, |student| {
            student.upper_quantile(0.5 * spent(first))
        });
        let mut criticals = vec![start];
        let steps = Steps::new(self.nodes);
        let mut survivors = Survivors::first(self.places, count(first));
        survivors.cut = w_of_t(start, count(first));
        let mut before = first;
        for &look in later {
            for pairs in count(before)..count(look) {
                survivors = steps.next(&survivors, pairs);
            }
            survivors.cut = steps.cut(&survivors, spent(look) - spent(before));
            criticals.push(t_of_w(survivors.cut, count(look)));
            before = look;
        }
        criticals
    }
}

/// The share of the error rate that may be spent by a look.
fn spent_share(look: u32, last: u32) -> f64 {
    (2.0 * f64::from(look) / f64::from(last)).exp_m1() / 2.0_f64.exp_m1()
}

fn w_of_t(t: f64, pairs: usize) -> f64 {
    // √n · T / √(n − 1 + T²), which stays finite where T does not.
    let cotangent = (float(pairs) - 1.0).sqrt() / t;
    (float(pairs) / (1.0 + cotangent * cotangent)).sqrt()
}

fn t_of_w(w: f64, pairs: usize) -> f64 {
    let pairs = float(pairs);
    w * ((pairs - 1.0) / (pairs - w * w)).sqrt()
}

/// The density over W of what no look has ended yet; the same on both sides of
/// zero.
///
/// With W = reach · sin θ it is smooth in θ up to both ends, and even: so it is
/// kept at Chebyshev's places in θ² and interpolated in between.
struct Survivors {
    /// End of the support.
    reach: f64,
    /// Cut of the last look, at most `reach`.
    cut: f64,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    squared_angle: f64,
    /// The barycentric weight.
    weight: f64,
    density: f64,
}

impl Survivors {
    /// Samples `density` at `count` places up to `reach`.
    fn sample(count: usize, reach: f64, mut density: impl FnMut(f64) -> f64) -> Self {
        let places = (0..count).map(|index| {
            let turn = PI * (float(index) + 0.5) / float(count);
            let angle = FRAC_PI_2 * (0.5 * turn).cos();
            let sign = if index % 2 == 0 { 1.0 } else { -1.0 };
            Place {
                squared_angle: angle * angle,
                weight: sign * turn.sin(),
                density: density(reach * angle.sin()),
            }
        });
        Self {
            reach,
            cut: reach,
            places: places.collect(),
        }
    }

    /// Before any look: W² / n follows a beta distribution.
    fn first(places: usize, pairs: usize) -> Self {
        let pairs = float(pairs);
        let ln_scale =
            ln_gamma(0.5 * pairs) - ln_gamma(0.5 * (pairs - 1.0)) - 0.5 * (PI * pairs).ln();
        Self::sample(places, pairs.sqrt().min(REACH), |w| {
            let power = 0.5 * (pairs - 3.0) * (-w * w / pairs).ln_1p();
            (ln_scale + power).exp()
        })
    }

    /// The density at `w`, which must lie within the reach, cut or not.
    fn density(&self, w: f64) -> f64 {
        let angle = (w / self.reach).clamp(-1.0, 1.0).asin();
        let squared_angle = angle * angle;
        let (mut above, mut below) = (0.0, 0.0);
        for place in &self.places {
            let share = place.weight / (squared_angle - place.squared_angle);
            above += share * place.density;
            below += share;
        }
        let density = above / below;
        if density.is_nan() {
            self.density_at_place(squared_angle)
        } else {
            density
        }
    }

    /// The density just at one of the places, where the interpolation divides by
    /// zero.
    fn density_at_place(&self, squared_angle: f64) -> f64 {
        let distance = |place: &Place| (place.squared_angle - squared_angle).abs();
        let places = self.places.iter();
        let nearest = places.min_by(|left, right| distance(left).total_cmp(&distance(right)));
        nearest.map_or(0.0, |place| place.density)
    }
}

/// The integration rules, made once.
struct Steps {
    smooth: Vec<Node>,
    rooted: Vec<Node>,
}

impl Steps {
    fn new(nodes: usize) -> Self {
        Self {
            smooth: gauss_legendre(nodes),
            rooted: gauss_legendre_of_sine(nodes),
        }
    }

    /// The survivors after one pair more than `pairs`.
    fn next(&self, now: &Survivors, pairs: usize) -> Survivors {
        let reach = (1.0 + now.cut * now.cut).sqrt();
        let power = float(pairs) - 2.0;
        let half = 0.5 * float(pairs);
        let scale = (ln_gamma(half + 0.5) - ln_gamma(half) - 0.5 * PI.ln()).exp();
        let widest = NEGLIGIBLE.powf(1.0 / power.max(1.0)).acos();
        let lean = now.cut.atan();
        Survivors::sample(now.places.len(), reach.min(REACH), |y| {
            // Where (y − sin ψ) / cos ψ lies within the cut.
            let turned = (y / reach).min(1.0).asin();
            let upper = if y <= 1.0 {
                turned + lean
            } else {
                PI - turned - lean
            };
            let (from, to) = ((turned - lean).max(-widest), upper.min(widest));
            let (middle, radius) = (0.5 * (from + to), 0.5 * (to - from));
            if radius <= 0.0 {
                return 0.0;
            }
            // A density ends in a square root where it was cut.
            let whole = from <= -widest && to >= widest;
            let nodes = if whole { &self.smooth } else { &self.rooted };
            let parts = nodes.iter().map(|node| {
                let (sine, cosine) = (middle + radius * node.place).sin_cos();
                let w = ((y - sine) / cosine).clamp(-now.cut, now.cut);
                node.weight * cosine.powf(power) * now.density(w)
            });
            scale * radius * parts.sum::<f64>()
        })
    }

    /// Place of the cut at which both tails together hold `share`.
    fn cut(&self, survivors: &Survivors, share: f64) -> f64 {
        let tails = |from: f64| {
            let radius = 0.5 * (FRAC_PI_2 - from);
            let parts = self.smooth.iter().map(|node| {
                let (sine, cosine) = (FRAC_PI_2 - radius * (1.0 - node.place)).sin_cos();
                let reach = survivors.reach;
                node.weight * reach * cosine * survivors.density(reach * sine)
            });
            2.0 * radius * parts.sum::<f64>()
        };
        let (mut low, mut high) = (0.0, FRAC_PI_2);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if tails(middle) > share {
                low = middle;
            } else {
                high = middle;
            }
        }
        survivors.reach * high.sin()
    }
}
