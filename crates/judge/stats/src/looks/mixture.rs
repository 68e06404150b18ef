//! The anytime-valid t interval.

use crate::level::Level;
use crate::number::float;

/// The multiplier after `pairs` pairs, at least two; infinite where even the
/// wildest mean would not be distinguished from zero.
///
/// Under a normal prior with the variance of the noise on the effect, in
/// standard deviations, and the right Haar prior on the noise, the odds against
/// a mean that lies T standard errors away, with ν = n − 1, are
/// (1 + n)^(−1/2) · [(1 + T²/ν) / (1 + T²/(ν (1 + n)))]^(n/2). By Ville's
/// inequality they ever reach 1/α with probability α at most where it is the
/// true one; this is the T at which they do.
pub(super) fn critical(pairs: usize, level: Level) -> f64 {
    let pairs = float(pairs);
    let widened = 1.0 + pairs;
    let needed = (widened.sqrt() / level.error_rate()).powf(2.0 / pairs);
    if needed >= widened {
        return f64::INFINITY;
    }
    ((pairs - 1.0) * (needed - 1.0) / (1.0 - needed / widened)).sqrt()
}
