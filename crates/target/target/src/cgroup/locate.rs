//! Hierarchies, and this process's group in each.

use std::path::{Path, PathBuf};

/// This process's group in one hierarchy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct GroupMembership {
    /// The controllers of a v1 hierarchy; empty for v2.
    pub(crate) controllers: Vec<String>,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Mount point of the hierarchy; accessible groups are below it.
    pub(crate) mount: PathBuf,
}

/// Our group in every hierarchy that is mounted, from the texts of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
pub(crate) fn cgroup_memberships(mountinfo: &str, cgroup: &str) -> Vec<GroupMembership> {
    mountinfo
        .lines()
        .filter_map(|line| cgroup_membership(line, cgroup))
        .collect()
}

fn cgroup_membership(mount_line: &str, cgroup: &str) -> Option<GroupMembership> {
    let (fields_before, right) = mount_line.split_once(" - ")?;
    let mut fields = fields_before.split(' ').skip(3);
    let (root, mount) = (fields.next()?, fields.next()?);
    let mut fields = right.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let controllers: Vec<String> = match kind {
        "cgroup2" => Vec::new(),
        "cgroup" => options.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    let is_this = |names: &str| match names {
        "" => controllers.is_empty(),
        names => names
            .split(',')
            .all(|name| controllers.iter().any(|c| c == name)),
    };
    let path = cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        is_this(names).then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    // A path outside the cgroup namespace is not accessible.
    if below.components().any(|part| part.as_os_str() == "..") {
        return None;
    }
    let mount = PathBuf::from(unescaped(mount));
    Some(GroupMembership {
        controllers,
        folder: mount.join(below),
        mount,
    })
}

/// Decodes the octal escapes of `mountinfo`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memberships_of_control_groups_are_found() {
        let mountinfo = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 /docker/one /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw
";
        let cgroup = "\
4:memory:/a/b
2:cpu,cpuacct:/
1:name=systemd:/../c
0::/docker/one/two
";
        let groups = cgroup_memberships(mountinfo, cgroup);
        let folders: Vec<&str> = groups.iter().filter_map(|o| o.folder.to_str()).collect();
        assert_eq!(
            folders,
            [
                "/sys/fs/cgroup/cpu,cpuacct/",
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/uni fied/two"
            ]
        );
        assert!(groups[0].controllers.iter().any(|name| name == "cpuacct"));
        assert!(groups[2].controllers.is_empty());
    }

    proptest! {
        #[test]
        fn for_all_texts_nothing_panics(a in "[a-z0-9/:, -]{0,80}", b in "[0-9:/a-z,.\n]{0,80}") {
            let mount = format!("1 2 3 {a} - cgroup2 c rw");
            cgroup_memberships(&mount, &b);
        }
    }
}
