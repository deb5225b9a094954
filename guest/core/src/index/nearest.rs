//! The documents whose vectors are nearest to a query's.
//!
//! The built-in model's dimensions are ordered by what they tell, so the first ones decide most of a cosine. In
//! large spaces only those are scanned; the best by them, many more than are wanted, are compared in full.

use super::Loaded;
use super::matches::{Best, Scored};
use crate::embed::{DIMENSIONS, dot};

/// Dimensions that are scanned first.
pub const HEAD: usize = 48;

/// The other dimensions.
pub const TAIL: usize = DIMENSIONS - HEAD;

/// Documents up to which all are compared in full.
const SMALL: usize = 16_384;

/// Of so many documents one is looked at to find the value that the wanted share exceeds.
const SAMPLE: usize = 16;

/// Fewest documents that are compared in full, and one of how many.
///
/// Of 100,000 sentences 1,560 are compared, which hold 99.7 % of the ten nearest.
const FEWEST: usize = 1024;
const SHARE: usize = 64;

/// A query's vector as codes.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    head: [i8; HEAD],
    tail: [i8; TAIL],
    scale: f32,
}

impl Codes {
    /// Returns the codes of a vector.
    pub fn new(vector: &[f32; DIMENSIONS]) -> Self {
        let mut codes = [0; DIMENSIONS];
        let scale = dot::quantize(vector, &mut codes);
        let (mut head, mut tail) = ([0; HEAD], [0; TAIL]);
        head.copy_from_slice(&codes[..HEAD]);
        tail.copy_from_slice(&codes[HEAD..]);
        Self { head, tail, scale }
    }

    /// Returns the cosine of a document, as its codes give it; 0 if it is gone.
    pub fn cosine(&self, index: &Loaded, doc: u32) -> f32 {
        let doc = doc as usize;
        let (heads, tails) = (index.heads.as_chunks::<HEAD>().0, index.tails.as_chunks::<TAIL>().0);
        (dot::dot(&heads[doc], &self.head) + dot::dot(&tails[doc], &self.tail)) as f32 * self.scale * index.scales[doc]
    }

    /// Returns the `count` documents of the largest cosines above 0 that `passes` lets through.
    pub fn nearest(&self, index: &Loaded, passes: impl Fn(u32) -> bool, count: usize) -> Vec<Scored> {
        let documents = index.documents();
        let mut best = Best::new(count);
        let mut compare = |doc: u32| best.offer(doc, self.cosine(index, doc));
        if documents <= SMALL {
            (0..documents as u32).filter(|doc| passes(*doc)).for_each(compare);
            return best.done();
        }
        // By the head alone, without the query's scale.
        let heads = index.heads.as_chunks::<HEAD>().0;
        let rough = |doc: usize| dot::dot(&heads[doc], &self.head) as f32 * index.scales[doc];
        let mut sample: Vec<f32> = (0..documents).step_by(SAMPLE).filter(|doc| passes(*doc as u32)).map(rough).collect();
        let wanted = FEWEST.max(documents / SHARE).max(count * 4) / SAMPLE;
        let floor = if sample.len() > wanted * 2 { *sample.select_nth_unstable_by(wanted, |one, other| other.total_cmp(one)).1 } else { f32::NEG_INFINITY };
        for (doc, (head, scale)) in heads.iter().zip(&index.scales).enumerate() {
            if dot::dot(head, &self.head) as f32 * scale >= floor && passes(doc as u32) {
                compare(doc as u32);
            }
        }
        best.done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::VECTOR_BYTES;
    use crate::index::facts::Facts;

    /// Returns unit vectors whose dimensions tell less and less, as the model's do; drawn by a linear congruential
    /// generator (Knuth's MMIX).
    fn vectors(count: usize) -> Vec<[f32; DIMENSIONS]> {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let vector = |_| {
            let mut vector = [0.0; DIMENSIONS];
            vector.iter_mut().enumerate().for_each(|(place, value)| *value = (draw() + draw() + draw()) / (1.0 + place as f32 / 3.0).sqrt());
            dot::normalize(&mut vector);
            vector
        };
        (0..count).map(vector).collect()
    }

    #[test]
    fn a_large_space_gives_the_nearest_and_a_filter_costs_none() {
        let vectors = vectors(SMALL * 2);
        let mut index = Loaded::default();
        for (place, vector) in vectors.iter().enumerate() {
            let mut codes = [0; DIMENSIONS];
            let mut bytes = dot::quantize(vector, &mut codes).to_le_bytes().to_vec();
            bytes.extend(codes.iter().map(|code| *code as u8));
            assert_eq!(bytes.len(), VECTOR_BYTES);
            index.push(Facts { row: place as i64 + 1, session: 1, scope: 1, ..Facts::default() }, &bytes);
        }
        // One of three, and one of five hundred: fewer than are compared in full.
        for every in [1, 3, 500] {
            let (mut held, mut all) = (0, 0);
            for query in vectors.iter().step_by(SMALL / 8) {
                let passes = |doc: u32| doc.is_multiple_of(every);
                let exact = |doc: u32| vectors[doc as usize].iter().zip(query).map(|(one, other)| one * other).sum::<f32>();
                let mut nearest: Vec<Scored> = (0..vectors.len() as u32).filter(|doc| passes(*doc)).map(|doc| (doc, exact(doc))).collect();
                nearest.sort_by(super::super::matches::better);
                // Twelve by codes hold the ten; the order among them is found from the texts.
                let found = Codes::new(query).nearest(&index, passes, 12);
                assert!(found.iter().all(|(doc, _)| passes(*doc)));
                held += nearest[..10].iter().filter(|(doc, _)| found.iter().any(|(found, _)| found == doc)).count();
                all += 10;
            }
            assert!(held * 100 >= all * 99, "{held} of {all} with one of {every}");
        }
    }
}
