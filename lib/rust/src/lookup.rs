// SPDX-License-Identifier: Apache-2.0

//! Which kernel of an archive serves a host.

use crate::key::{
    canonical_arch, canonical_id, compare_versions, Kernels, Key, Parts, System, ARCH, ID, RELEASE, VERSION_ID,
};
use crate::rules::{is_built_by, is_distinctive, is_one_build, series};
use crate::text::printable;
use std::cmp::Ordering;

/// The rule by which a kernel was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No kernel in the archive matches.
    None = 0,
    /// Distribution, version, arch and release are equal.
    Exact = 1,
    /// All kernels with this arch and release have the same BTF.
    Release = 2,
    /// The builds next to the kernel have the same BTF; only with `neighbours` above 0. The BTF may be wrong.
    Neighbour = 3,
    /// A distribution that the host's is derived from has this arch and release.
    Derived = 4,
}

/// The result of a look-up.
#[derive(Clone, Debug)]
pub struct Match {
    /// How it was found, or that it was not.
    pub rule: Rule,
    /// The kernel to find, canonical.
    pub want: Key,
    /// The kernel that was found, as the archive spells it; empty on a miss.
    pub key: Key,
    /// On a miss, the nearest release before it of the same distribution and arch, or empty. It is advice for people.
    pub below: Key,
    /// The nearest release after it.
    pub above: Key,
    /// Whether both exist and have the same BTF.
    pub same_btf: bool,
    /// Why this kernel matches, or why none does, in one line of printable text.
    pub reason: String,
}

impl Match {
    /// Reports whether a kernel was found.
    pub fn is_found(&self) -> bool {
        self.rule != Rule::None
    }
}

fn distribution(want: &Parts) -> String {
    if want[ID].is_empty() {
        return "an unknown distribution".to_string();
    }
    let mut s = canonical_id(want[ID]).to_vec();
    if !want[VERSION_ID].is_empty() {
        s.push(b' ');
        s.extend_from_slice(want[VERSION_ID]);
    }
    printable(&s)
}

/// The builds of a series on one side of a kernel, the nearest first.
struct Side {
    builds: Vec<u32>,
    same: bool, // all have the same BTF
}

impl Side {
    fn new(k: &Kernels, builds: impl Iterator<Item = u32>, n: usize) -> Side {
        let builds: Vec<_> = builds.take(n).collect();
        let same = builds.iter().all(|&b| k.layout(b) == k.layout(builds[0]));
        Side { builds, same }
    }

    /// Describes the builds: their number, the first and the last.
    fn span(&self, k: &Kernels, which: &str, reverse: bool) -> String {
        let release = |kernel: u32| printable(k.parts(kernel)[RELEASE]);
        match self.builds.as_slice() {
            [] => format!("none {}", which),
            [one] => format!("1 {} ({})", which, release(*one)),
            [near, .., far] => {
                let (first, last) = if reverse { (far, near) } else { (near, far) };
                format!("{} {} ({} … {})", self.builds.len(), which, release(*first), release(*last))
            }
        }
    }
}

/// Turns a miss into a match if the n builds before the kernel, and those up to n after it, have one BTF. Otherwise it says
/// why not.
fn neighbours(k: &Kernels, m: &mut Match, n: usize) {
    let want = m.want.clone();
    let want = want.parts();
    let its = series(&want);
    let release = |kernel: u32| k.parts(kernel)[RELEASE];
    let mut all: Vec<u32> = (0..k.len() as u32)
        .filter(|&i| *canonical_id(k.parts(i)[ID]) == *want[ID] && series(&k.parts(i)) == its)
        .collect();
    // Sorting keeps the order of equal releases.
    all.sort_by(|&i, &j| compare_versions(release(j), release(i)));
    let order = |kernel: u32| compare_versions(release(kernel), want[RELEASE]);
    let before = Side::new(k, all.iter().copied().filter(|&i| order(i) == Ordering::Less), n);
    if before.builds.len() < n {
        m.reason += &format!("; builds of its series before it: {}, want {}", before.builds.len(), n);
        return;
    }
    all.sort_by(|&i, &j| compare_versions(release(i), release(j)).then_with(|| i.cmp(&j)));
    let after = Side::new(k, all.iter().copied().filter(|&i| order(i) == Ordering::Greater), n);
    let differ = match after.builds.first() {
        Some(&a) => k.layout(before.builds[0]) != k.layout(a),
        None => false,
    };
    if !before.same || !after.same || differ {
        m.reason += &format!("; the BTFs of the {} builds next to it differ", before.builds.len() + after.builds.len());
        return;
    }
    m.reason += &format!(
        "; the builds next to it have one BTF: {}, {}",
        before.span(k, "before it", true),
        after.span(k, "after it", false)
    );
    m.rule = Rule::Neighbour;
    m.key = k.key(before.builds[0]);
    m.below = Key::default();
    m.above = Key::default();
    m.same_btf = false;
}

/// Finds the nearest releases, and explains a miss unless a reason is given.
fn advise(k: &Kernels, m: &mut Match) {
    let want = m.want.clone();
    let want = want.parts();
    let (mut below, mut above): (Option<u32>, Option<u32>) = (None, None);
    let (mut id, mut arch, mut both) = (false, false, false);
    for kernel in 0..k.len() as u32 {
        let p = k.parts(kernel);
        let same_id = &*canonical_id(p[ID]) == want[ID];
        let same_arch = canonical_arch(p[ARCH]) == want[ARCH];
        id |= same_id;
        arch |= same_arch;
        if !same_id || !same_arch {
            continue;
        }
        both = true;
        let nearer = |old: Option<u32>, order| {
            old.map_or(true, |old| compare_versions(p[RELEASE], k.parts(old)[RELEASE]) == order)
        };
        match compare_versions(p[RELEASE], want[RELEASE]) {
            Ordering::Less if nearer(below, Ordering::Greater) => below = Some(kernel),
            Ordering::Greater if nearer(above, Ordering::Less) => above = Some(kernel),
            _ => {}
        }
    }
    m.below = below.map_or_else(Key::default, |b| k.key(b));
    m.above = above.map_or_else(Key::default, |a| k.key(a));
    m.same_btf = below.zip(above).map_or(false, |(b, a)| k.layout(b) == k.layout(a));
    if !m.reason.is_empty() {
        return;
    }
    let release_arch = format!("no kernel {} for {}", printable(want[RELEASE]), printable(want[ARCH]));
    m.reason = if want[RELEASE].is_empty() {
        "the release of the kernel is unknown".to_string()
    } else if want[ARCH].is_empty() {
        "the arch of the kernel is unknown".to_string()
    } else if both {
        release_arch
    } else if !arch {
        format!("no kernels for {}", printable(want[ARCH]))
    } else if !id {
        format!("{}, and none of {} at all", release_arch, distribution(&want))
    } else {
        format!("{}, and none of {} for that arch", release_arch, printable(want[ID]))
    };
}

/// Takes the first of some kernels, if all of them have the same BTF. Otherwise it is a miss. Reports whether there are any.
fn choose(k: &Kernels, m: &mut Match, rule: Rule, of: &[u32]) -> bool {
    let first = match of.first() {
        Some(&first) => first,
        None => return false,
    };
    let host = distribution(&m.want.parts());
    let name = distribution(&k.parts(first));
    if let Some(&other) = of.iter().find(|&&i| k.layout(i) != k.layout(first)) {
        let other = distribution(&k.parts(other));
        m.reason = format!("{}: {} and {} have this release and arch, and their BTFs differ", host, name, other);
        advise(k, m);
        return true;
    }
    m.rule = rule;
    m.key = k.key(first);
    m.reason = match rule {
        Rule::Derived => format!("{} is derived from {}, which has this release and arch", host, name),
        _ => format!("not under {}, but {} has this release and arch", host, name),
    };
    true
}

pub(crate) fn lookup(k: &Kernels, system: &System, n_neighbours: usize) -> Match {
    let mut m = Match {
        rule: Rule::None,
        want: system.key.canonical(),
        key: Key::default(),
        below: Key::default(),
        above: Key::default(),
        same_btf: false,
        reason: String::new(),
    };
    let want = m.want.clone();
    let want = want.parts();
    if let Some(found) = k.find(&want) {
        m.rule = Rule::Exact;
        m.key = k.key(found);
        m.reason = "the archive has this kernel".to_string();
        return m;
    }
    let id = |i: u32| canonical_id(k.parts(i)[ID]);
    let (own, others): (Vec<u32>, Vec<u32>) = (0..k.len() as u32)
        .filter(|&i| {
            let p = k.parts(i);
            !want[ARCH].is_empty() && p[RELEASE] == want[RELEASE] && canonical_arch(p[ARCH]) == want[ARCH]
        })
        .partition(|&i| *id(i) == *want[ID] && !is_one_build(&id(i), k.parts(i)[VERSION_ID]));
    if choose(k, &mut m, Rule::Release, &own) {
        return m;
    }
    if is_distinctive(want[RELEASE]) && !is_built_by(want[ID], want[RELEASE]) {
        for l in &system.like {
            let of: Vec<u32> = others.iter().copied().filter(|&i| *id(i) == *l.id).collect();
            let version = |i: &u32| !l.version_id.is_empty() && *k.parts(*i)[VERSION_ID] == *l.version_id;
            let exact: Vec<u32> = of.iter().copied().filter(version).collect();
            if choose(k, &mut m, Rule::Derived, &exact) || choose(k, &mut m, Rule::Derived, &of) {
                return m;
            }
        }
        let usable: Vec<u32> = others.iter().copied().filter(|&i| !is_built_by(&id(i), want[RELEASE])).collect();
        if choose(k, &mut m, Rule::Release, &usable) {
            return m;
        }
    }
    advise(k, &mut m);
    if let Some(&other) = others.first() {
        m.reason += &format!("; {} has this release, which may be another build", distribution(&k.parts(other)));
    }
    if n_neighbours > 0 && ![ID, ARCH, RELEASE].iter().any(|&i| want[i].is_empty()) {
        neighbours(k, &mut m, n_neighbours);
    }
    m
}
