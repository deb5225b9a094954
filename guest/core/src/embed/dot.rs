//! Arithmetic of vectors: codes of 8 bits, scanned with SIMD.

/// Scales a vector to length one; a zero vector stays.
pub fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
}

/// Writes a vector's codes: each value over the largest one's magnitude, times 127. Returns what a
/// code of one stands for.
pub fn quantize(vector: &[f32], codes: &mut [i8]) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 || !largest.is_finite() {
        codes.fill(0);
        return 0.0;
    }
    for (code, value) in codes.iter_mut().zip(vector) {
        *code = (value / largest * 127.0).round() as i8;
    }
    largest / 127.0
}

/// Returns the dot product of two vectors of codes, the one as stored bytes; the length is a multiple of 16.
#[cfg(target_arch = "wasm32")]
#[inline]
pub fn dot<const LENGTH: usize>(one: &[u8; LENGTH], other: &[i8; LENGTH]) -> i32 {
    use core::arch::wasm32::{i16x8_load_extend_i8x8, i32x4_add, i32x4_dot_i16x8, i32x4_extract_lane, i32x4_shuffle, i32x4_splat};
    const { assert!(LENGTH.is_multiple_of(16)) };
    let (mut low, mut high) = (i32x4_splat(0), i32x4_splat(0));
    let mut at = 0;
    while at < LENGTH {
        // SAFETY: `at + 16` is within both arrays, and eight bytes may be loaded from any address.
        unsafe {
            let (one, other) = (one.as_ptr().cast::<i8>().add(at), other.as_ptr().add(at));
            low = i32x4_add(low, i32x4_dot_i16x8(i16x8_load_extend_i8x8(one), i16x8_load_extend_i8x8(other)));
            high = i32x4_add(high, i32x4_dot_i16x8(i16x8_load_extend_i8x8(one.add(8)), i16x8_load_extend_i8x8(other.add(8))));
        }
        at += 16;
    }
    let sum = i32x4_add(low, high);
    let sum = i32x4_add(sum, i32x4_shuffle::<2, 3, 0, 1>(sum, sum));
    i32x4_extract_lane::<0>(sum) + i32x4_extract_lane::<1>(sum)
}

/// Returns the dot product of two vectors of codes, the one as stored bytes.
#[cfg(not(target_arch = "wasm32"))]
#[inline]
pub fn dot<const LENGTH: usize>(one: &[u8; LENGTH], other: &[i8; LENGTH]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(*one as i8) * i32::from(*other)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_the_cosine() {
        let mut vector: Vec<f32> = (0..128).map(|index| ((index * 37 % 101) as f32 - 50.0) / 50.0).collect();
        normalize(&mut vector);
        let mut codes = [0; 128];
        let scale = quantize(&vector, &mut codes);
        let cosine = dot(&codes.map(|code| code as u8), &codes) as f32 * scale * scale;
        assert!((cosine - 1.0).abs() < 0.01, "{cosine}");
        assert_eq!(quantize(&[0.0, 0.0], &mut codes[..2]), 0.0);
    }
}
