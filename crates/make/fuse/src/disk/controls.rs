//! Settings of a disk that may change while it is in use.

use std::sync::atomic::{AtomicU64, Ordering};

use stillwell_plan::disk::FolderDiskPlan;
use stillwell_plan::step::{DiskChange, DiskLimits};
use stillwell_units::{ByteRate, ByteSize, Nanos};

/// No limit.
const NONE: u64 = u64::MAX;
const MIB: u64 = 1 << 20;

/// Speed and size of a disk. Any thread may change them at any time. A request that waits already
/// keeps its delay until the disk is restored.
#[derive(Debug)]
pub struct DiskControls {
    /// The initial settings.
    plan: FolderDiskPlan,
    /// Number of restores.
    restored: AtomicU64,
    fsync_delay: AtomicU64,
    fsync_delay_per_mib: AtomicU64,
    /// Bytes each second.
    write_rate: AtomicU64,
    /// Bytes.
    limit: AtomicU64,
}

impl DiskControls {
    /// As `plan` has it.
    #[must_use]
    pub fn new(plan: &FolderDiskPlan) -> Self {
        let rate = plan.write_rate.map_or(NONE, ByteRate::bytes_per_second);
        Self {
            plan: plan.clone(),
            restored: AtomicU64::new(0),
            fsync_delay: plan.fsync_delay.as_u64().into(),
            fsync_delay_per_mib: plan.fsync_delay_per_mib.as_u64().into(),
            write_rate: rate.into(),
            limit: plan.limit.map_or(NONE, ByteSize::bytes).into(),
        }
    }

    /// From now on each `fsync` takes so much longer.
    pub fn set_fsync_delay(&self, delay: Nanos) {
        self.fsync_delay.store(delay.as_u64(), Ordering::Relaxed);
    }

    /// Additional time for each MiB that `fsync` makes durable.
    pub fn set_fsync_delay_per_mib(&self, delay: Nanos) {
        self.fsync_delay_per_mib
            .store(delay.as_u64(), Ordering::Relaxed);
    }

    /// From now on it takes so many bytes each second; `None` for as many as the
    /// folder does.
    pub fn set_write_rate(&self, rate: Option<ByteRate>) {
        let rate = rate.map_or(NONE, ByteRate::bytes_per_second);
        self.write_rate.store(rate, Ordering::Relaxed);
    }

    /// From now on it holds so many bytes; `None` for as many as the folder does.
    pub fn set_limit(&self, limit: Option<ByteSize>) {
        let limit = limit.map_or(NONE, ByteSize::bytes);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Does what a step says, on a disk that holds `used`.
    pub fn change(&self, change: &DiskChange, used: ByteSize) {
        match change {
            DiskChange::Full => self.set_limit(Some(used)),
            DiskChange::Limits(limits) => self.set(limits),
            DiskChange::Restore => self.restore(),
        }
    }

    fn set(&self, limits: &DiskLimits) {
        if let Some(delay) = limits.fsync_delay {
            self.set_fsync_delay(delay);
        }
        if let Some(delay) = limits.fsync_delay_per_mib {
            self.set_fsync_delay_per_mib(delay);
        }
        if limits.write_rate.is_some() {
            self.set_write_rate(limits.write_rate);
        }
        if limits.limit.is_some() {
            self.set_limit(limits.limit);
        }
    }

    /// It is as it was at first, and what waits waits no longer.
    fn restore(&self) {
        self.set_fsync_delay(self.plan.fsync_delay);
        self.set_fsync_delay_per_mib(self.plan.fsync_delay_per_mib);
        self.set_write_rate(self.plan.write_rate);
        self.set_limit(self.plan.limit);
        // A reader of the count also sees all earlier stores.
        self.restored.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of restores.
    pub(super) fn restored(&self) -> u64 {
        self.restored.load(Ordering::Acquire)
    }

    /// Returns the additional time of an `fsync` of `bytes`.
    pub(super) fn fsync_delay_of(&self, bytes: u64) -> Nanos {
        let each = u128::from(self.fsync_delay_per_mib.load(Ordering::Relaxed));
        let more = u64::try_from(each * u128::from(bytes) / u128::from(MIB)).unwrap_or(u64::MAX);
        Nanos::new(
            self.fsync_delay
                .load(Ordering::Relaxed)
                .saturating_add(more),
        )
    }

    /// Returns the time of a write of `bytes`.
    pub(super) fn write_time_of(&self, bytes: u64) -> Nanos {
        let rate = self.write_rate.load(Ordering::Relaxed);
        if rate == NONE {
            return Nanos::ZERO;
        }
        let time = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        Nanos::new(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Bytes that it holds at most.
    pub(super) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_what_is_made_durable() {
        let controls = DiskControls::new(&FolderDiskPlan {
            fsync_delay: Nanos::from_millis(20),
            fsync_delay_per_mib: Nanos::from_millis(4),
            ..FolderDiskPlan::default()
        });
        let delay = |bytes| controls.fsync_delay_of(bytes);
        assert_eq!(delay(0), Nanos::from_millis(20));
        assert_eq!(delay(MIB * 5 / 2), Nanos::from_millis(30));
        controls.set_fsync_delay(Nanos::ZERO);
        assert_eq!(delay(MIB), Nanos::from_millis(4));
        assert_eq!(controls.write_time_of(u64::MAX), Nanos::ZERO);
        controls.set_write_rate(ByteRate::try_new(1_000_000).ok());
        assert_eq!(controls.write_time_of(2_000), Nanos::from_millis(2));
    }

    /// Microseconds of an `fsync` of a MiB and of a write of 1,000 bytes, and what it holds.
    fn figures(controls: &DiskControls) -> (u64, u64, Option<u64>) {
        let micros = |time: Nanos| time.as_u64() / 1000;
        let (fsync, write) = (controls.fsync_delay_of(MIB), controls.write_time_of(1_000));
        (micros(fsync), micros(write), controls.limit())
    }

    #[test]
    fn steps_change_what_they_name_and_restore_all() {
        let controls = DiskControls::new(&FolderDiskPlan {
            fsync_delay: Nanos::from_millis(2),
            write_rate: ByteRate::try_new(1_000_000).ok(),
            ..FolderDiskPlan::default()
        });
        let limits = |change: DiskLimits| DiskChange::Limits(change);
        let none = DiskLimits::default();
        let used = ByteSize::new(700);
        for (change, expected) in [
            (limits(none), (2_000, 1_000, None)),
            (DiskChange::Full, (2_000, 1_000, Some(700))),
            (
                limits(DiskLimits {
                    fsync_delay: Some(Nanos::from_millis(50)),
                    fsync_delay_per_mib: Some(Nanos::from_millis(3)),
                    ..none
                }),
                (53_000, 1_000, Some(700)),
            ),
            (
                limits(DiskLimits {
                    write_rate: ByteRate::try_new(10_000).ok(),
                    ..none
                }),
                (53_000, 100_000, Some(700)),
            ),
            (
                limits(DiskLimits {
                    limit: Some(ByteSize::new(900)),
                    ..none
                }),
                (53_000, 100_000, Some(900)),
            ),
            (DiskChange::Restore, (2_000, 1_000, None)),
            (DiskChange::Restore, (2_000, 1_000, None)),
        ] {
            let before = controls.restored();
            controls.change(&change, used);
            assert_eq!(figures(&controls), expected, "{change:?}");
            let is_restored = controls.restored() > before;
            assert_eq!(is_restored, change == DiskChange::Restore);
        }
    }
}
