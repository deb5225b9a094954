//! The embedder gives what its Python recipe gives: `tokenizers` with the model's pieces, the rows of the compiled-in
//! table summed and normalized.
//!
//! `embedder/texts.json` holds 200 texts; `embedder/vectors.i16` the recipe's unit vector of each, 128 little-endian
//! numbers of 16 bits, each a component times 32,767.

use strata_core::embed::{DIMENSIONS, Embedder};

#[test]
fn two_hundred_texts_agree_within_a_ten_thousandth_of_cosine() {
    let texts: Vec<String> = serde_json::from_str(include_str!("embedder/texts.json")).expect("a list of texts");
    let expected: Vec<Vec<f64>> = include_bytes!("embedder/vectors.i16")
        .chunks_exact(DIMENSIONS * 2)
        .map(|vector| vector.as_chunks().0.iter().map(|two| f64::from(i16::from_le_bytes(*two))).collect())
        .collect();
    assert_eq!((texts.len(), expected.len()), (200, 200));
    let embedder = Embedder::new();
    let mut least = 1.0_f64;
    for (text, expected) in texts.iter().zip(&expected) {
        let vector = embedder.embed(text);
        let dot: f64 = vector.iter().zip(expected).map(|(one, other)| f64::from(*one) * other).sum();
        let length = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let cosine = dot / (length(&mut vector.iter().map(|value| f64::from(*value))) * length(&mut expected.iter().copied()));
        assert!(cosine > 1.0 - 1e-4, "{cosine} {text:?}");
        least = least.min(cosine);
    }
    println!("the least cosine of 200 texts is {least}");
}
