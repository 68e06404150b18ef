//! Integrals of smooth functions.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::number::float;

/// Newton's steps to a root of a Legendre polynomial; four suffice.
const STEPS: u32 = 8;

/// A place between −1 and 1, and its weight in an integral over them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) place: f64,
    pub(crate) weight: f64,
}

/// Gauss and Legendre's rule with `count` nodes: exact for polynomials of degree
/// below twice as many.
pub(crate) fn gauss_legendre(count: usize) -> Vec<Node> {
    (0..count).map(|index| node(index, count)).collect()
}

fn node(index: usize, count: usize) -> Node {
    // Tricomi's start is good to four digits.
    let mut place = (PI * (float(index) + 0.75) / (float(count) + 0.5)).cos();
    let mut slope = 1.0;
    for _ in 0..STEPS {
        let (value, derivative) = legendre(count, place);
        slope = derivative;
        place -= value / derivative;
    }
    let weight = 2.0 / ((1.0 - place * place) * slope * slope);
    Node { place, weight }
}

/// The Legendre polynomial of this degree at `place`, and its derivative there.
fn legendre(degree: usize, place: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for index in 0..degree {
        let order = float(index);
        let next = ((2.0 * order + 1.0) * place * value - order * before) / (order + 1.0);
        before = value;
        value = next;
    }
    let derivative = float(degree) * (place * value - before) / (place * place - 1.0);
    (value, derivative)
}

/// The same rule over the sine of an angle: still over −1 to 1, and accurate for
/// functions that end in a square root at either end.
pub(crate) fn gauss_legendre_of_sine(count: usize) -> Vec<Node> {
    let nodes = gauss_legendre(count).into_iter();
    nodes
        .map(|node| {
            let angle = FRAC_PI_2 * node.place;
            Node {
                place: angle.sin(),
                weight: FRAC_PI_2 * node.weight * angle.cos(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integral(nodes: &[Node], value: impl Fn(f64) -> f64) -> f64 {
        nodes
            .iter()
            .map(|node| node.weight * value(node.place))
            .sum()
    }

    #[test]
    fn polynomials_are_exact() {
        for count in [1, 2, 5, 20, 48] {
            let nodes = gauss_legendre(count);
            let power = 2 * i32::try_from(count).unwrap() - 2;
            let exact = 2.0 / f64::from(power + 1);
            let result = integral(&nodes, |x| x.powi(power) + x.powi(power + 1));
            assert!((result - exact).abs() < 1e-13, "{count}: {result} {exact}");
        }
    }

    #[test]
    fn square_roots_at_the_ends_are_accurate() {
        let result = integral(&gauss_legendre_of_sine(20), |x| {
            (1.0 - x * x).max(0.0).sqrt()
        });
        assert!((result - 0.5 * PI).abs() < 1e-13, "{result}");
    }
}
