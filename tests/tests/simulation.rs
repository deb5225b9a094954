//! Lives of a space at random: the same seed is the same life to the byte, and whatever happens nothing that was
//! acknowledged is lost, nothing comes twice, what was forgotten stays away, and every layer can be derived again.
//!
//! `STRATA_SEEDS=FROM..TO` chooses the lives (`make proof-simulation`); a failure names its seed and step.

use strata_tests::life::{Counts, Life};

/// Lives of an ordinary run.
const SEEDS: std::ops::Range<u64> = 0..24;
/// Steps of one life.
const STEPS: u32 = 150;
/// Every so many lives one is lived twice and compared.
const COMPARED: u64 = 8;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("STRATA_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").expect("STRATA_SEEDS is FROM..TO");
    from.parse().expect("FROM is a number")..to.parse().expect("TO is a number")
}

#[test]
fn whatever_happens_nothing_acknowledged_is_lost() {
    let mut all = Counts::default();
    let mut lives = 0;
    for seed in seeds() {
        let (hash, counts) = Life::new(seed).live(STEPS);
        if seed % COMPARED == 0 {
            let (again, _) = Life::new(seed).live(STEPS);
            assert_eq!(again, hash, "seed {seed}: the same life went another way");
        }
        lives += 1;
        all.calls += counts.calls;
        all.refused += counts.refused;
        all.crashes += counts.crashes;
        all.answers += counts.answers;
        all.forgettings += counts.forgettings;
        all.messages += counts.messages;
        all.atoms += counts.atoms;
    }
    println!("{lives} lives of {STEPS} steps: {all:?}");
    assert!(2 * all.crashes >= lives && all.forgettings > 0 && all.atoms > 0 && all.refused > 0, "the lives are too quiet to show anything: {all:?}");
}
